package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/base/crash"
	"github.com/slipway-run/slipway/internal/test/check"
)

// In a child process, these variables name the file of the report and the way in which the process
// ends.
const (
	reportFile = "SLIPWAY_TEST_CRASH_FILE"
	ending     = "SLIPWAY_TEST_CRASH_ENDING"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(reportFile); file != "" {
		crashed, err := crash.Watch(file)
		if err != nil {
			panic(err)
		}
		fmt.Print(crashed)
		endings[os.Getenv(ending)]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var endings = map[string]func(){
	"normally":             func() {},
	"killed":               func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
	"asked for its stacks": func() { _ = syscall.Kill(os.Getpid(), syscall.SIGQUIT); select {} },
	"aborted":              func() { _ = syscall.Kill(os.Getpid(), syscall.SIGABRT); select {} },
	"panic": func() {
		go panic("poison")
		select {}
	},
	"fatal error": func() {
		shared := map[int]int{}
		for range 4 {
			go func() {
				for {
					shared[0]++
				}
			}()
		}
		select {}
	},
}

// TestACrashIsKnownToTheNextProcess only, and an end of another kind is no crash.
func TestACrashIsKnownToTheNextProcess(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"normally": "", "killed": "", "asked for its stacks": "SIGQUIT", "aborted": "SIGABRT", "panic": "poison", "fatal error": "maps.fatal"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "crash")
			process := exec.Command(os.Args[0])
			process.Env = append(os.Environ(), reportFile+"="+file, ending+"="+name)
			if err := process.Run(); (err == nil) != (name == "normally") {
				t.Fatalf("the process ended with %v", err)
			}
			// Each look begins the watch of another process.
			for i, reported := range []bool{want != "", false} {
				look := exec.Command(os.Args[0])
				look.Env = append(os.Environ(), reportFile+"="+file, ending+"=normally")
				info, err := os.Stat(file)
				check.Must(t, err)
				if (info.Size() > 0) != reported || info.Mode().Perm() != 0o600 {
					t.Errorf("look %d: the report has %d bytes and mode %v", i, info.Size(), info.Mode())
				}
				crashed, err := look.Output()
				check.Must(t, err)
				if want := fmt.Sprint(reported && !strings.HasPrefix(want, "SIG")); string(crashed) != want {
					t.Errorf("look %d: crashed is %s, want %s", i, crashed, want)
				}
			}
			kept, err := os.ReadFile(file + crash.Kept)
			if (err == nil) != (want != "") || !strings.Contains(string(kept), want) {
				t.Errorf("kept (%v): %s", err, kept)
			}
		})
	}
}

package child

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
	"golang.org/x/sys/unix"
)

// TestTheLimitIsReadInBothWays reads the limit of a process before and after it is marked.
func TestTheLimitIsReadInBothWays(t *testing.T) {
	t.Parallel()
	pid := sleeper(t)
	for _, want := range []uint64{unix.RLIM_INFINITY, markOf("a child")} {
		limit(t, pid, want)
		for name, read := range map[string]func(int) (uint64, error){"limitOf": limitOf, "readLimit": readLimit} {
			if got, err := read(pid); err != nil || got != want {
				t.Errorf("%s: got %d (%v), want %d", name, got, err, want)
			}
		}
	}
}

// TestAProcessIsFoundByEitherMark looks for a process that has the mark of a child in its
// environment, while its limits become lower, as a program may make them.
func TestAProcessIsFoundByEitherMark(t *testing.T) {
	t.Parallel()
	pid := sleeper(t, markVariable+"=a child")
	wanted := marksOf("another child", "a child")
	for deadline := time.Now().Add(10 * time.Second); wanted.of(pid) < 0 && time.Now().Before(deadline); {
		runtime.Gosched() // the kernel shows a new program's environment a moment after its start
	}
	limited := wanted
	limited.limited = true
	for _, step := range []struct {
		limit                  uint64
		wantAll, wantOfLimited int
	}{{unix.RLIM_INFINITY, 1, -1}, {markOf("another child"), 0, 0}, {1000, 1, 1}} {
		limit(t, pid, step.limit)
		if all, ofLimited := wanted.of(pid), limited.of(pid); all != step.wantAll || ofLimited != step.wantOfLimited {
			t.Errorf("with the limit %d: found as %d, and among limited children as %d", step.limit, all, ofLimited)
		}
	}
}

// sleeper starts a program with an environment, which ends with the test, and returns its id.
func sleeper(t *testing.T, env ...string) (pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Env = env
	check.Must(t, cmd.Start())
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	})
	return cmd.Process.Pid
}

// limit sets the limit that marks a process.
func limit(t *testing.T, pid int, value uint64) {
	t.Helper()
	check.Must(t, unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: value, Max: value}, nil))
}

package child

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTheLimitIsReadInBothWays reads the limit of a process before and after it is marked.
func TestTheLimitIsReadInBothWays(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	}()
	for _, want := range []uint64{unix.RLIM_INFINITY, markOf("a child")} {
		if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: want, Max: want}, nil); err != nil {
			t.Fatal(err)
		}
		for name, read := range map[string]func(int) (uint64, error){"limitOf": limitOf, "readLimit": readLimit} {
			if got, err := read(pid); err != nil || got != want {
				t.Errorf("%s: got %d (%v), want %d", name, got, err, want)
			}
		}
	}
}

package standalone

import (
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestALockThatIsClosedIsFree closes a lock while a starting process still has its file open,
// together with all other files that were open.
func TestALockThatIsClosedIsFree(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	lock, err := LockDirectory(data)
	check.Must(t, err)
	inherited, err := syscall.Dup(int(lock.File.Fd()))
	check.Must(t, err)
	defer syscall.Close(inherited)
	if _, err := LockDirectory(data); err == nil {
		t.Error("two have the directory")
	}
	check.Must(t, lock.Close())
	if lock, err = LockDirectory(data); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

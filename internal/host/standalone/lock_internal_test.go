package standalone

import (
	"syscall"
	"testing"
)

// TestALockThatIsClosedIsFree closes a lock while a starting process still has its file open,
// together with all other files that were open.
func TestALockThatIsClosedIsFree(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	lock, err := LockDirectory(data)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := syscall.Dup(int(lock.File.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	if _, err := LockDirectory(data); err == nil {
		t.Error("two have the directory")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if lock, err = LockDirectory(data); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

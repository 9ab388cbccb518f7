package standalone

import (
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestALockThatIsClosedIsFree closes a lock while a starting process still has its file open,
// together with all other files that were open.
func TestALockThatIsClosedIsFree(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// TestALockOfAKilledServerIsAwaited starts a server while a process that a killed server was
// starting still has the lock open.
func TestALockOfAKilledServerIsAwaited(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		killed, err := LockDirectory(data)
		check.Must(t, err)
		inherited, err := syscall.Dup(int(killed.File.Fd()))
		check.Must(t, err)
		check.Must(t, killed.File.Close())
		result := make(chan error)
		go func() {
			lock, err := LockDirectory(data)
			if err == nil {
				err = lock.Close()
			}
			result <- err
		}()
		synctest.Wait()
		check.Must(t, syscall.Close(inherited))
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

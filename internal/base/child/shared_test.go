package child_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackByFilesInSharedMemory checks that the files that a user leaves there are counted, and
// removed when the last of the user's agents and builds has ended. The files of other users stay.
func TestAttackByFilesInSharedMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(child.SharedMemory); err != nil || os.Getuid() != 0 {
		return // only root gives workspaces users of their own
	}
	const user, size = 1_999_999_931, 1 << 20 // no machine has such a user
	leave := func(owner int) string {
		dir, err := os.MkdirTemp(child.SharedMemory, "shared-test-") //nolint:usetesting // the test is about this directory
		check.Must(t, err)
		t.Cleanup(func() { check.Must(t, os.RemoveAll(dir)) })
		file := filepath.Join(dir, "file")
		check.Must(t, os.WriteFile(file, make([]byte, size), 0o600))
		check.Must(t, os.Chown(file, owner, owner))
		check.Must(t, os.Chown(dir, owner, owner))
		return file
	}
	left, other := leave(user), leave(user+1)
	if taken := child.SharedBy(user); taken < size || taken > 2*size {
		t.Errorf("the files of the user take %d bytes, want about %d", taken, size)
	}
	users, err := child.OpenUsers(filepath.Join(t.TempDir(), "users.json"), child.DefaultUsers)
	check.Must(t, err)
	agent, build := users.Enter(user), users.Enter(user)
	check.Must(t, agent())
	check.Must(t, agent()) // a second call does nothing
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the file of a build that runs is gone: %v", err)
	}
	check.Must(t, build())
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the file of the user is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("the file of another user is gone: %v", err)
	}
	if taken := child.SharedBy(user); taken != 0 {
		t.Errorf("the files of the user take %d bytes in the end", taken)
	}
}

// TestAttackByDirectoriesInSharedMemory makes empty directories, which take the memory of the
// kernel and the places for files of all other programs.
func TestAttackByDirectoriesInSharedMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(child.SharedMemory); err != nil || os.Getuid() != 0 {
		return // only root gives workspaces users of their own
	}
	const user, many = 1_999_999_933, 100
	dir, err := os.MkdirTemp(child.SharedMemory, "shared-test-") //nolint:usetesting // the test is about this directory
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, os.RemoveAll(dir)) })
	for i := range many {
		check.Must(t, os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700))
	}
	check.Must(t, os.Chown(dir, user, user))
	if taken := child.SharedBy(user); taken < many<<12 {
		t.Errorf("%d directories of the user take %d bytes", many, taken)
	}
}

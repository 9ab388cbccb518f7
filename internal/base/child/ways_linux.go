package child

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// enter is the permission that other users need to go through a directory. groupReads and
// othersRead are the permissions that the group and others need to read a file or a directory.
const enter, groupReads, othersRead = 0o001, 0o050, 0o005

// openWays lets the user of a confined program through the server's directories that lead to
// the paths which the program may reach. It also gives the paths that the program may read to
// the program's group, unless every user may read them. The names of other entries in these
// directories stay hidden.
func (c Confinement) openWays() (err error) {
	if c.User == 0 {
		return nil
	}
	private, err := resolve(c.Private)
	if err != nil {
		return err
	}
	// No file outside is touched, even if a program changes something meanwhile.
	root, err := os.OpenRoot(private)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, path := range slices.Concat(c.Write, c.Read) {
		resolved, err := resolve(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !contains(private, resolved) {
			continue
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(private, resolved)
		if err != nil {
			return err
		}
		if slices.Contains(c.Read, path) {
			err = c.lend(root, name)
		}
		for err == nil && name != "." {
			name = filepath.Dir(name)
			err = c.letThrough(root, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// letThrough lets the user enter a directory of the server's: by the group, if the directory's
// group is the user's, and otherwise as another user.
func (c Confinement) letThrough(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	status, needed := statusOf(info), fs.FileMode(enter)
	if int(status.Gid) == c.User {
		needed = enter << 3
	}
	if int(status.Uid) != os.Geteuid() || info.Mode()&needed == needed {
		return nil
	}
	return root.Chmod(name, info.Mode().Perm()|needed)
}

// lend lets the user read a file or a directory of the server's.
func (c Confinement) lend(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	status := statusOf(info)
	if int(status.Uid) != os.Geteuid() || info.Mode()&othersRead == othersRead || int(status.Gid) == c.User && info.Mode()&groupReads == groupReads {
		return nil
	}
	if err := root.Lchown(name, -1, c.User); err != nil {
		return err
	}
	return root.Chmod(name, info.Mode().Perm()|groupReads)
}

// closedAbove returns the first directory above a path that others may not enter, "" if there
// is no such directory. The path need not exist yet.
func closedAbove(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for dir := "/"; ; {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&enter == 0 {
			return dir, nil
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return "", err
		}
		next, deeper, _ := strings.Cut(below, "/")
		if deeper == "" {
			return "", nil
		}
		dir = filepath.Join(dir, next)
	}
}

// Reaches reports whether users of their own may come to a file or a directory, also through
// links in its path, and read it, or run it if it is a program.
func Reaches(name string) bool {
	resolved, err := filepath.EvalSymlinks(name)
	if err != nil {
		return false
	}
	for _, path := range []string{name, resolved} {
		if closed, err := closedAbove(path); err != nil || closed != "" {
			return false
		}
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return false
	}
	needed := fs.FileMode(othersRead)
	if info.Mode()&0o111 == 0 {
		needed &^= enter
	}
	return info.Mode()&needed == needed
}

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/child"
)

// homeRest is how long a home that no build has used any more is kept for one that comes.
const homeRest = 24 * time.Hour

// home is a home directory of builds. Those of a workspace share one, so that a second build finds what the first downloaded and compiled; other workspaces do not, as a
// build could plant something in it.
//
// A home is there as long as a build that has used it, since an agent may run what is in it: an interpreter, say. One that takes more disk than it may gets no more builds:
// the next begins another. With the last home of a workspace goes what is kept for its builds.
type home struct {
	workspace string
	number    int
}

// homes tell which home each build has used.
type homes struct {
	mu sync.Mutex
	of map[string]home // by revision
}

// openHomes reads which homes are used, and erases what a server before has left.
func (b *Builder) openHomes() error {
	b.homes.of = map[string]home{}
	records, err := listed(filepath.Join(b.cfg.Dir, "records"))
	if err != nil {
		return err
	}
	for _, record := range records {
		note, err := os.ReadFile(b.homeNote(record.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the build had ended before it had one
		}
		if err != nil {
			return err
		}
		workspace, number := filepath.Split(string(note))
		used := home{workspace: filepath.Clean(workspace)}
		if used.number, err = strconv.Atoi(number); err != nil {
			return fmt.Errorf("read home of revision %s: %w", record.Name(), err)
		}
		b.homes.of[record.Name()] = used
	}
	return errors.Join(child.RemoveFiles(b.erasedDir()), b.eraseHomes())
}

// enterHome gives a build the newest home of its workspace, and makes it and the directory of what is kept for the workspace.
func (b *Builder) enterHome(workspace, revision string) (dir string, err error) {
	entered := home{workspace, 1}
	there, err := b.homesOf(workspace)
	if err != nil {
		return "", err
	}
	for number := range there {
		entered.number = max(entered.number, number)
	}
	if takesMore(b.homeDir(entered), b.cfg.HomeMB) {
		entered.number++
	}
	dir = b.homeDir(entered)
	b.homes.mu.Lock()
	defer b.homes.mu.Unlock()
	if err := makeDirs(dir, b.keptOf(workspace)); err != nil {
		return "", err
	}
	b.homes.of[revision] = entered
	return dir, replaceFile(b.homeNote(revision), []byte(filepath.Join(workspace, strconv.Itoa(entered.number))))
}

// leaveHome notes that a build is gone, and erases what has not been used for long.
func (b *Builder) leaveHome(revision string) error {
	b.homes.mu.Lock()
	left, used := b.homes.of[revision]
	delete(b.homes.of, revision)
	b.homes.mu.Unlock()
	if !used {
		return nil
	}
	if err := touch(b.homeDir(left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return b.eraseHomes()
}

// eraseHomes erases the homes that no build uses, and has not for long.
func (b *Builder) eraseHomes() error {
	b.homes.mu.Lock()
	unused, err := b.unusedHomes()
	// What is erased is out of the way before another build may enter.
	aside, failed := b.setAside(unused...)
	b.homes.mu.Unlock()
	return errors.Join(err, failed, child.RemoveFiles(aside))
}

// unusedHomes are the directories to erase. The caller holds the lock.
func (b *Builder) unusedHomes() (unused []string, err error) {
	workspaces, err := listed(filepath.Join(b.cfg.Dir, "cache"))
	if err != nil {
		return nil, err
	}
	for _, workspace := range workspaces {
		there, err := b.homesOf(workspace.Name())
		if err != nil {
			return nil, err
		}
		for _, used := range b.homes.of {
			if used.workspace == workspace.Name() {
				there[used.number] = time.Now()
			}
		}
		resting := len(there)
		for number, used := range there {
			if time.Since(used) >= homeRest {
				unused = append(unused, b.homeDir(home{workspace.Name(), number}))
				resting--
			}
		}
		if resting == 0 && len(there) > 0 {
			unused = append(unused, b.keptOf(workspace.Name()), filepath.Join(b.cfg.Dir, "cache", workspace.Name()))
		}
	}
	return unused, nil
}

// homesOf are the numbers of the homes that a workspace has, with when each was entered or left last, or later.
func (b *Builder) homesOf(workspace string) (map[int]time.Time, error) {
	entries, err := listed(filepath.Join(b.cfg.Dir, "cache", workspace))
	if err != nil {
		return nil, err
	}
	there := map[int]time.Time{}
	for _, entry := range entries {
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a home
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another build's end has just erased it
		}
		if err != nil {
			return nil, err
		}
		there[number] = info.ModTime()
	}
	return there, nil
}

// listed are the entries of a directory that need not be there.
func listed(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// setAside moves what is to be erased to where nobody looks for it, so that others find all of it or nothing. It returns the directory to remove, "" for none.
func (b *Builder) setAside(paths ...string) (aside string, err error) {
	if len(paths) == 0 {
		return "", nil
	}
	if err := makeDirs(b.erasedDir()); err != nil {
		return "", err
	}
	if aside, err = os.MkdirTemp(b.erasedDir(), ""); err != nil {
		return "", err
	}
	for i, path := range paths {
		if err := os.Rename(path, filepath.Join(aside, strconv.Itoa(i))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, err
		}
	}
	return aside, nil
}

// keepNewest erases what was used longest ago of what is kept in a directory, but for so many.
func (b *Builder) keepNewest(dir string, count int) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= count {
		return err
	}
	used := map[string]time.Time{}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another build has erased it
		}
		if err != nil {
			return err
		}
		used[filepath.Join(dir, entry.Name())] = info.ModTime()
	}
	paths := make([]string, 0, len(used))
	for path := range used {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int { return used[b].Compare(used[a]) })
	aside, err := b.setAside(paths[min(count, len(paths)):]...)
	return errors.Join(err, child.RemoveFiles(aside))
}

// touch notes that something that is kept was used.
func touch(path string) error {
	now := time.Now()
	return os.Chtimes(path, now, now)
}

func (b *Builder) homeDir(h home) string {
	return filepath.Join(b.cfg.Dir, "cache", h.workspace, strconv.Itoa(h.number))
}

// homeNote is the file that says which home a build has used.
func (b *Builder) homeNote(revision string) string {
	return filepath.Join(b.recordOf(revision), "home")
}

func (b *Builder) erasedDir() string { return filepath.Join(b.cfg.Dir, "erased") }

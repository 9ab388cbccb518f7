package local

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
)

// homeRest is how long a home is kept for the next build after the last build that used it is
// gone.
const homeRest = 24 * time.Hour

// homeNote is the file of a build's record that names the home that the build has used.
const homeNote = "home"

// The builds of a workspace share a home, so that a second build finds the files that the first
// build downloaded and compiled. Other workspaces do not share it, because a build could plant
// something in it. The name of a home is the id of its workspace and a number.
//
// A home is there as long as a build that has used it, because an agent may run programs from
// it, for example an interpreter. A home that takes more disk than it may gets no more builds:
// the next build begins another home. When the last home of a workspace is erased, the files
// that are kept for its builds are erased, too.

// noted stores what a note of each build's record says.
type noted[T any] struct {
	mu sync.Mutex
	of map[string]T // by revision
}

// leave forgets the note of a build that is gone.
func (n *noted[T]) leave(revision string) (left T, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	left, known = n.of[revision]
	delete(n.of, revision)
	return left, known
}

// openHomes reads which homes are used, and erases the files that an earlier server has left.
func (b *Builder) openHomes() (err error) {
	if b.homes.of, err = b.notes(homeNote); err != nil {
		return err
	}
	// Any build could have left a file that cannot be erased.
	if err := errors.Join(child.RemoveFiles(b.erasedDir()), b.eraseHomes()); err != nil {
		b.cfg.Log.Error("the files of earlier builds cannot be erased", "directory", b.erasedDir(), "error", err)
	}
	return nil
}

// notes reads a note from the records of all builds that have the note, by revision.
func (b *Builder) notes(name string) (map[string]string, error) {
	records, err := listed(filepath.Join(b.cfg.Dir, "records"))
	if err != nil {
		return nil, err
	}
	notes := map[string]string{}
	for _, record := range records {
		note, err := os.ReadFile(filepath.Join(b.recordOf(record.Name()), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the build had ended before it had the note
		}
		if err != nil {
			return nil, err
		}
		notes[record.Name()] = string(note)
	}
	return notes, nil
}

// enterHome gives a build the newest home of its workspace. It makes the home, and the
// directory of the files that are kept for the workspace.
func (b *Builder) enterHome(workspace, revision string) (dir string, err error) {
	_, number, err := b.homesOf(workspace)
	if err != nil {
		return "", err
	}
	name := homeName(workspace, number)
	if takesMore(b.homeDir(name), b.cfg.HomeMB) {
		name = homeName(workspace, number+1)
	}
	dir = b.homeDir(name)
	b.homes.mu.Lock()
	defer b.homes.mu.Unlock()
	if err := b.makeHome(dir); err != nil {
		return "", err
	}
	if err := makeDirs(b.keptOf(workspace)); err != nil {
		return "", err
	}
	b.homes.of[revision] = name
	return dir, replaceFile(filepath.Join(b.recordOf(revision), homeNote), []byte(name))
}

// makeHome makes a home if it is not there yet, with the settings of tools that would disturb each
// other. Two builds of a workspace may run at a time, and two yarns of the first generation spoil
// their cache if they both fill it: one of them waits. If the user is root, its cache would be
// outside of the home. Other tools do not read these settings.
//
// The home appears with its settings or not at all, because nothing is added to a home that is
// there: its files belong to builds.
func (b *Builder) makeHome(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDirs(filepath.Dir(dir), b.erasedDir()); err != nil {
		return err
	}
	// If this server dies here, the next server erases the directory.
	temp, err := os.MkdirTemp(b.erasedDir(), "")
	if err != nil {
		return err
	}
	settings := fmt.Appendf(nil, "--mutex %q\n--cache-folder %q\n", "file:"+filepath.Join(dir, ".yarn-mutex"), filepath.Join(dir, ".cache", "yarn"))
	if err := replaceFile(filepath.Join(temp, ".yarnrc"), settings); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return os.Rename(temp, dir)
}

// leaveHome notes that a build is gone, and erases the homes that have not been used for long.
func (b *Builder) leaveHome(revision string) error {
	left, used := b.homes.leave(revision)
	if !used {
		return nil
	}
	if err := touch(b.homeDir(left)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return b.eraseHomes()
}

// eraseHomes erases the homes that no build uses, and that no build has used for long.
func (b *Builder) eraseHomes() error {
	b.homes.mu.Lock()
	unused, err := b.unusedHomes()
	// The directories to erase are moved away before another build may enter them.
	aside, failed := b.setAside(unused...)
	b.homes.mu.Unlock()
	return errors.Join(err, failed, child.RemoveFiles(aside))
}

// unusedHomes returns the directories to erase. The caller holds the lock.
func (b *Builder) unusedHomes() (unused []string, err error) {
	workspaces, err := listed(filepath.Join(b.cfg.Dir, "cache"))
	if err != nil {
		return nil, err
	}
	for _, workspace := range workspaces {
		homes, _, err := b.homesOf(workspace.Name())
		if err != nil {
			return nil, err
		}
		for _, name := range b.homes.of {
			if filepath.Dir(name) == workspace.Name() {
				homes[name] = time.Now()
			}
		}
		resting := len(homes)
		for name, used := range homes {
			if time.Since(used) >= homeRest {
				unused = append(unused, b.homeDir(name))
				resting--
			}
		}
		if resting == 0 && len(homes) > 0 {
			unused = append(unused, b.keptOf(workspace.Name()), filepath.Join(b.cfg.Dir, "cache", workspace.Name()))
		}
	}
	return unused, nil
}

// homesOf returns the homes that a workspace has, each with the time at which a build last entered
// or left it, or a later time, and the number of the newest home, 1 if there is no home yet.
func (b *Builder) homesOf(workspace string) (homes map[string]time.Time, newest int, err error) {
	entries, err := listed(filepath.Join(b.cfg.Dir, "cache", workspace))
	if err != nil {
		return nil, 0, err
	}
	homes, newest = map[string]time.Time{}, 1
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
			return nil, 0, err
		}
		homes[homeName(workspace, number)] = info.ModTime()
		newest = max(newest, number)
	}
	return homes, newest, nil
}

func homeName(workspace string, number int) string {
	return filepath.Join(workspace, strconv.Itoa(number))
}

// listed returns the entries of a directory. The directory may be absent.
func listed(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// setAside moves the paths to erase into a directory that no build reads, so that other builds
// find all of a path or nothing. It returns the directory to remove, "" if there is nothing to
// remove.
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

// keepNewest erases the entries of a directory that were used longest ago, and keeps so many
// entries.
func (b *Builder) keepNewest(dir string, count int) error {
	aside, err := b.asideButNewest(dir, count, nil)
	return errors.Join(err, child.RemoveFiles(aside))
}

// asideButNewest sets aside the entries of a directory that were used longest ago. It keeps so
// many entries, the entries in stay, and what builds are about to publish.
func (b *Builder) asideButNewest(dir string, count int, stay map[string]bool) (aside string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= count {
		return "", err
	}
	used := map[string]time.Time{}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another build has erased it
		}
		if err != nil {
			return "", err
		}
		unpublished := strings.HasPrefix(entry.Name(), disk.Unfinished) && time.Since(info.ModTime()) < homeRest
		if path := filepath.Join(dir, entry.Name()); !stay[path] && !unpublished {
			used[path] = info.ModTime()
		}
	}
	paths := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	return b.setAside(paths[min(count, len(paths)):]...)
}

// touch notes that a kept file or directory was used.
func touch(path string) error {
	now := time.Now()
	return os.Chtimes(path, now, now)
}

func (b *Builder) homeDir(name string) string { return filepath.Join(b.cfg.Dir, "cache", name) }

func (b *Builder) erasedDir() string { return filepath.Join(b.cfg.Dir, "erased") }

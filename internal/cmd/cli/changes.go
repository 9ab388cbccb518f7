package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long files must stay unchanged before a change counts, because editors write
// several times.
const settle = 100 * time.Millisecond

// restless is how long a change may wait for files that do not stay unchanged.
const restless = 5 * time.Second

// changes reports that files of a directory have changed.
type changes struct {
	watcher *fsnotify.Watcher
	// except is a directory whose changes do not count.
	except string
	// seen has an entry if something has changed since seen was last read.
	seen chan struct{}
	done chan struct{}
}

// watch watches a directory and the directories below it, except directories that are never
// uploaded and the directory except.
func watch(dir, except string) (*changes, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	c := &changes{watcher: watcher, seen: make(chan struct{}, 1), done: make(chan struct{})}
	if c.except, err = filepath.Abs(except); err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		err = c.add(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch %s: %w", dir, err), watcher.Close())
	}
	go c.collect()
	return c, nil
}

// add watches a directory and the directories below it.
func (c *changes) add(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed again
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case path == c.except || path != dir && isLeft(entry.Name()):
			return filepath.SkipDir
		}
		return c.watcher.Add(path)
	})
}

// collect turns the events of files into changes.
func (c *changes) collect() {
	defer close(c.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var first time.Time // of the changes that wait
	change := func() {
		if first.IsZero() {
			first = time.Now()
		}
		timer.Reset(min(settle, restless-time.Since(first)))
	}
	for {
		select {
		case event, ok := <-c.watcher.Events:
			if !ok {
				return
			}
			if isLeft(filepath.Base(event.Name)) || event.Name == c.except || event.Op == fsnotify.Chmod {
				continue
			}
			if info, err := os.Lstat(event.Name); err == nil && info.IsDir() {
				// A directory that cannot be watched may have been removed again; a later
				// change finds it.
				_ = c.add(event.Name)
			}
			change()
		case _, ok := <-c.watcher.Errors:
			if !ok {
				return
			}
			change() // events were lost: something has changed
		case <-timer.C:
			first = time.Time{}
			select {
			case c.seen <- struct{}{}:
			default:
			}
		}
	}
}

// Close ends the watch.
func (c *changes) Close() error {
	err := c.watcher.Close()
	<-c.done
	return err
}

// Package revisionlog keeps the output of revisions: what a build printed and what the agent's process prints while it runs.
//
// A log is a sequence of lines, one JSON object each, in files of bounded size; the oldest file is dropped when there are too many.
// A line is named by its offset from the beginning of the log, which stays the same when older lines are dropped, so a reader can
// go on where it stopped.
package revisionlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/id"
)

// Kind tells the two logs of a revision apart.
type Kind string

const (
	// Build is the output of the build.
	Build Kind = "build"
	// Deploy is the output of the running agent.
	Deploy Kind = "deploy"
)

// Level is how serious a line is. Output of programs is Info; only the server's own lines have other levels.
type Level string

const (
	Info  Level = "INFO"
	Error Level = "ERROR"
)

// Line is one line of a log.
type Line struct {
	// Offset is the line's place in the log.
	Offset    int64     `json:"-"`
	Timestamp time.Time `json:"timestamp"`
	Level     Level     `json:"level"`
	Message   string    `json:"message"`
}

const (
	// segmentSize and segmentCount bound a log to about 30 MB.
	segmentSize  = 10 << 20
	segmentCount = 3
)

// Logs are the logs of all revisions under one directory. All methods may be called concurrently.
type Logs struct {
	dir string
	now clock.Clock

	mu   sync.Mutex
	open map[key]*appender
}

type key struct {
	revision string
	kind     Kind
}

// Open returns the logs kept under dir, which is created if it is missing.
func Open(dir string, now clock.Clock) (*Logs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	return &Logs{dir: dir, now: now, open: map[key]*appender{}}, nil
}

// Writer returns a writer that appends to a log of a revision. Each of the secrets is replaced in what it writes. Several writers of
// one log may be open at a time; each keeps its lines whole.
func (l *Logs) Writer(revision string, kind Kind, secrets ...string) (*Writer, error) {
	k, err := newKey(revision, kind)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.open[k]
	if log == nil {
		if log, err = openAppender(l.revisionDir(k), kind); err != nil {
			return nil, fmt.Errorf("open %s log of revision %s: %w", kind, revision, err)
		}
		l.open[k] = log
	}
	log.writers++
	return newWriter(log, l.now, secrets, func() error { return l.release(k, log) }), nil
}

// Remove erases both logs of a revision. Lines that are written afterwards by writers still open are dropped.
func (l *Logs) Remove(revision string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var failed error
	for _, kind := range []Kind{Build, Deploy} {
		k, err := newKey(revision, kind)
		if err != nil {
			return err
		}
		if log := l.open[k]; log != nil {
			delete(l.open, k)
			failed = errors.Join(failed, log.close())
		}
	}
	return errors.Join(failed, os.RemoveAll(filepath.Join(l.dir, revision)))
}

// release closes the files of a log with its last writer.
func (l *Logs) release(k key, log *appender) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	log.writers--
	if log.writers > 0 || l.open[k] != log {
		return nil
	}
	delete(l.open, k)
	return log.close()
}

func (l *Logs) revisionDir(k key) string { return filepath.Join(l.dir, k.revision) }

// newKey checks what becomes part of a path.
func newKey(revision string, kind Kind) (key, error) {
	if !id.Valid(revision) {
		return key{}, fmt.Errorf("log of revision %q: not an id", revision)
	}
	if kind != Build && kind != Deploy {
		return key{}, fmt.Errorf("log of revision %s: no such kind: %q", revision, kind)
	}
	return key{revision, kind}, nil
}

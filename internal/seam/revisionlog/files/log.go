// Package files keeps the logs of revisions in files, on the machine where builds and agents
// are processes.
//
// A line is one JSON object, in files of bounded size. The oldest file is dropped when there
// are too many, and readers then find a line in its place that says so. A line's ID is its
// end, counted from the beginning of the log. It stays the same when older lines are dropped.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/watch"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

const (
	// segmentSize and segmentCount bound a log to about 30 MB.
	segmentSize  = 10 << 20
	segmentCount = 3
)

// Logs are the logs of all revisions under one directory. All methods may be called concurrently.
type Logs struct {
	dir      string
	now      clock.Clock
	watchers *watch.Watchers[revisionlog.Log, struct{}]

	mu   sync.Mutex
	open map[revisionlog.Log]*appender
}

var (
	_ revisionlog.Reader   = (*Logs)(nil)
	_ revisionlog.Appender = (*Logs)(nil)
)

// Open returns the logs kept under dir, which is created if it is missing.
func Open(dir string, now clock.Clock) (*Logs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	return &Logs{dir: dir, now: now, open: map[revisionlog.Log]*appender{}, watchers: watch.New[revisionlog.Log, struct{}](nil)}, nil
}

// Writer returns a writer that appends to a log of a revision. The writer replaces each of the
// secrets in its output. Several writers of one log may be open at a time. Each keeps its
// lines whole.
func (l *Logs) Writer(revision string, kind revisionlog.Kind, secrets ...string) (*Writer, error) {
	name := revisionlog.Log{Revision: revision, Kind: kind}
	if err := check(name); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.open[name]
	if log == nil {
		var err error
		if log, err = openAppender(l.dirOf(name), kind, func() { l.watchers.Wake(name) }); err != nil {
			return nil, fmt.Errorf("open %s log of revision %s: %w", kind, revision, err)
		}
		l.open[name] = log
	}
	log.writers++
	return &Writer{log: log, now: l.now, secrets: revisionlog.NewSecrets(secrets), release: func() error { return l.release(name, log) }}, nil
}

// Append adds lines to a log.
func (l *Logs) Append(_ context.Context, log revisionlog.Log, lines []string) error {
	w, err := l.Writer(log.Revision, log.Kind)
	if err != nil {
		return err
	}
	for _, line := range lines {
		_, err = io.WriteString(w, line+"\n")
	}
	return errors.Join(err, w.Close())
}

// Remove erases both logs of a revision. Lines that open writers write afterwards are dropped.
func (l *Logs) Remove(revision string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var failed error
	for _, kind := range []revisionlog.Kind{revisionlog.Build, revisionlog.Deploy} {
		name := revisionlog.Log{Revision: revision, Kind: kind}
		if err := check(name); err != nil {
			return err
		}
		if log := l.open[name]; log != nil {
			delete(l.open, name)
			failed = errors.Join(failed, log.close())
		}
	}
	return errors.Join(failed, os.RemoveAll(filepath.Join(l.dir, revision)))
}

// MaxDelay is zero: a line can be read as soon as it is written.
func (l *Logs) MaxDelay() time.Duration { return 0 }

// release closes the files of a log when its last writer is closed.
func (l *Logs) release(name revisionlog.Log, log *appender) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	log.writers--
	if log.writers > 0 || l.open[name] != log {
		return nil
	}
	delete(l.open, name)
	return log.close()
}

// written reports whether a writer of a log is open.
func (l *Logs) written(name revisionlog.Log) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[name] != nil
}

func (l *Logs) dirOf(name revisionlog.Log) string { return filepath.Join(l.dir, name.Revision) }

// check looks at the parts of the name that become part of a path.
func check(name revisionlog.Log) error {
	if !id.Valid(name.Revision) {
		return fmt.Errorf("log of revision %q: not an id", name.Revision)
	}
	if name.Kind != revisionlog.Build && name.Kind != revisionlog.Deploy {
		return fmt.Errorf("log of revision %s: no such kind: %q", name.Revision, name.Kind)
	}
	return nil
}

// Watch wakes when a line was written to the log.
func (l *Logs) Watch(log revisionlog.Log) revisionlog.Watcher { return l.watchers.Add(log) }

package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

const segmentSuffix = ".jsonl"

// segment is one file of a log. Its name holds the offset of its first byte, so that offsets
// survive the loss of older files.
type segment struct {
	path  string
	start int64
}

// segments lists the files of a log, the oldest first, as their names sort.
func segments(dir string, kind revisionlog.Kind) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, entry := range entries {
		name, isSegment := strings.CutSuffix(entry.Name(), segmentSuffix)
		digits, ofKind := strings.CutPrefix(name, string(kind)+".")
		start, err := strconv.ParseInt(digits, 10, 64)
		if isSegment && ofKind && err == nil {
			all = append(all, segment{filepath.Join(dir, entry.Name()), start})
		}
	}
	return all, nil
}

// appender writes the newest file of a log and begins the next one when it is full.
type appender struct {
	dir  string
	kind revisionlog.Kind
	// wake informs the readers of the log about a new line, and about the end of the writers.
	wake func()
	// writers counts the open writers. It belongs to Logs.
	writers int

	mu     sync.Mutex
	file   *os.File
	start  int64
	size   int64
	closed bool
}

func openAppender(dir string, kind revisionlog.Kind, wake func()) (*appender, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	all, err := segments(dir, kind)
	if err != nil {
		return nil, err
	}
	a := &appender{dir: dir, kind: kind, wake: wake}
	if len(all) > 0 {
		a.start = all[len(all)-1].start
	}
	if err := a.openSegment(); err != nil {
		return nil, err
	}
	if err := a.mendTornLine(); err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	return a, nil
}

// openSegment opens the file that begins at a.start.
func (a *appender) openSegment() error {
	path := filepath.Join(a.dir, fmt.Sprintf("%s.%020d%s", a.kind, a.start, segmentSuffix))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	a.file, a.size = file, info.Size()
	return nil
}

// mendTornLine ends a line that a crash cut short. Readers skip such a line.
func (a *appender) mendTornLine() error {
	if a.size == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := a.file.ReadAt(last, a.size-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	return a.write([]byte{'\n'})
}

// append adds a line. It adds nothing to a log that was removed.
func (a *appender) append(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	if a.size > 0 && a.size+int64(len(line)) > segmentSize {
		if err := a.rotate(); err != nil {
			return err
		}
	}
	return a.write(line)
}

// write adds all of data or, when the disk is full, no part of it.
func (a *appender) write(data []byte) error {
	if _, err := a.file.Write(data); err != nil {
		return errors.Join(err, a.file.Truncate(a.size))
	}
	a.size += int64(len(data))
	a.wake()
	return nil
}

// rotate begins the next file and drops the oldest ones.
func (a *appender) rotate() error {
	full := a.file
	a.start += a.size
	if err := a.openSegment(); err != nil {
		a.start -= a.size
		return err
	}
	if err := full.Close(); err != nil {
		return err
	}
	all, err := segments(a.dir, a.kind)
	if err != nil {
		return err
	}
	for _, old := range all[:max(0, len(all)-segmentCount)] {
		if err := os.Remove(old.path); err != nil {
			return err
		}
	}
	return nil
}

// close ends the log: its readers wait for no more lines.
func (a *appender) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.wake()
	return a.file.Close()
}

package child

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/disk"
)

const recordSuffix = ".json"

// Registry starts children and keeps a record of each child in a directory for as long as the
// child lives.
type Registry struct {
	dir  string
	lock *disk.Lock
}

// record is the information about a child on disk. The child's mark is the name of the file.
type record struct {
	mark string
	PID  int `json:"pid"`
	// Started is the system's start time of the process, if the time is needed to identify the
	// process.
	Started string `json:"started,omitempty"`
	// Group is the directory of the child's control group, if it has one.
	Group string `json:"group,omitempty"`
}

// Open ends every child that an earlier server left behind in dir and returns a registry that
// keeps its records there. It fails while another server uses dir, because it would end that
// server's children.
func Open(dir string) (*Registry, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open process registry: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), disk.Handover)
	defer cancel()
	lock, err := disk.LockFile(ctx, filepath.Join(dir, "lock"))
	if errors.Is(err, disk.ErrLocked) {
		err = fmt.Errorf("another server uses %s: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open process registry: %w", err)
	}
	r := &Registry{dir: dir, lock: lock}
	if err := r.clear(); err != nil {
		return nil, errors.Join(fmt.Errorf("open process registry: %w", err), lock.Close())
	}
	return r, nil
}

// Close lets another registry use the directory. The children must have ended.
func (r *Registry) Close() error { return r.lock.Close() }

// Start runs the command as a child of its own process group.
func (r *Registry) Start(command Command) (*Process, error) {
	rec := record{mark: rand.Text()}
	rec.Group = groupOf(rec.mark, command.Limits)
	// The record is written first: if the server is killed between the two steps, there may be
	// a record without a child, but never a child without a record.
	if err := r.write(rec); err != nil {
		return nil, err
	}
	keep := func(pid int) error {
		started, err := startTime(pid)
		if err != nil {
			return err
		}
		return r.write(record{mark: rec.mark, PID: pid, Started: started, Group: rec.Group})
	}
	forget := func() error { return os.Remove(r.path(rec.mark)) }
	command.Env = append(slices.Clip(command.Env), markVariable+"="+rec.mark)
	g, err := makeGroup(rec.Group, command.Limits)
	if err != nil {
		return nil, errors.Join(err, forget())
	}
	p, err := start(command, g, rec.mark, keep, forget)
	if err != nil {
		return nil, errors.Join(err, g.remove(), forget())
	}
	return p, nil
}

func (r *Registry) path(mark string) string { return filepath.Join(r.dir, mark+recordSuffix) }

func (r *Registry) write(rec record) error {
	data, err := json.Marshal(rec)
	if err == nil {
		err = os.WriteFile(r.path(rec.mark), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record process: %w", err)
	}
	return nil
}

// clear ends the children of the existing records and removes the records.
func (r *Registry) clear() error {
	names, err := filepath.Glob(filepath.Join(r.dir, "*"+recordSuffix))
	if err != nil {
		return err
	}
	var left []record
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rec := record{mark: strings.TrimSuffix(filepath.Base(name), recordSuffix)}
		// A record cut short by a full disk still names its child by its mark.
		if err := json.Unmarshal(data, &rec); err != nil {
			rec.PID = 0
		}
		left = append(left, rec)
	}
	if len(left) == 0 {
		return nil
	}
	for _, rec := range left {
		if err := removeLeftGroup(rec); err != nil {
			return err
		}
	}
	if err := endLeftovers(left); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Package disk says whether a file system has room for more data, and writes files that outlast a
// loss of power.
//
// A part of the file system is kept free. New data is refused while less than that part is
// free: Room. Work under way may use the kept part until three quarters of it are used:
// Reserve. The last quarter is for the ends of that work, and for deletions, which write
// before they free space. The same share of the number of files that the file system can hold is
// kept, because many small files leave room for bytes and none for a file.
package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/docker/go-units"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// lookInterval is how long the result of a look at the file system is used.
const lookInterval = time.Second

// reserve is a divisor: 1/reserve of the kept space is only for ends of work and deletions.
const reserve = 4

// ErrFull is the error for callers when a write found no room.
var ErrFull = fault.New(fault.NoRoom, "The server's disk is full. Delete data that is not needed, or tell the server's operator.")

// Named returns err as ErrFull, too, if it says that a file system or a quota is full.
func Named(err error) error {
	if !fault.Is(err, fault.NoRoom) && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Keep is the space of a file system that is kept free: a share of the file system, or a
// number of bytes. It is the smaller one if both are set, and nothing if neither is set.
type Keep struct {
	Percent float64
	Bytes   int64
}

// Default is a small part of any file system.
var Default = Keep{Percent: 5, Bytes: 512 << 20}

// of is the number of bytes that are kept free of a file system with total bytes.
func (k Keep) of(total int64) int64 {
	share := int64(k.Percent / 100 * float64(total))
	if k.Percent == 0 || k.Bytes != 0 && k.Bytes < share {
		return k.Bytes
	}
	return share
}

// Usage is the size of a file system in bytes, and the number of bytes that this process may
// still fill; and how many files it can hold, and how many more this process may make. Files is 0
// if the file system has no such number.
type Usage struct{ Free, Total, FreeFiles, Files int64 }

// Look looks at the file system of a directory.
type Look func(dir string) (Usage, error)

// Cached returns a Look that looks again only after lookInterval.
func Cached(look Look, now clock.Clock) Look {
	var mu sync.Mutex
	var looked time.Time
	var usage Usage
	var err error
	return func(dir string) (Usage, error) {
		mu.Lock()
		defer mu.Unlock()
		if since := now().Sub(looked); looked.IsZero() || since < 0 || since >= lookInterval {
			looked = now()
			usage, err = look(dir)
		}
		return usage, err
	}
}

// Space is the file system of one directory. It is safe for concurrent use. A nil Space always
// has room.
type Space struct {
	dir  string
	keep Keep
	look Look
	log  *slog.Logger

	mu sync.Mutex
	// full and blind are the states that were logged last.
	full, blind bool
}

// Open returns the Space of a directory. A nil look asks the system, at most once in lookInterval.
func Open(dir string, keep Keep, look Look, log *slog.Logger) *Space {
	if look == nil {
		look = Cached(Statfs, clock.System)
	}
	return &Space{dir: dir, keep: keep, look: look, log: log}
}

// Room returns a fault while less space is free than must be kept free.
func (s *Space) Room() error { return s.atLeast(1) }

// Reserve returns a fault while also the part of the kept space is used that is for work under
// way.
func (s *Space) Reserve() error { return s.atLeast(reserve) }

func (s *Space) atLeast(part int64) error {
	if s == nil {
		return nil
	}
	usage, err := s.look(s.dir)
	kept := s.keep.of(usage.Total)
	files := keptFiles(usage, kept)
	s.logChange(usage, kept, files, err)
	// A file system that cannot be looked at counts as a file system with room: writes to it
	// fail by themselves.
	if err != nil {
		return nil //nolint:nilerr // logChange has logged it
	}
	if usage.Free < kept/part {
		return fault.New(fault.NoRoom, "The server's disk is nearly full: %s are free, and %s are kept free. Delete data that is not needed, or tell the server's operator.",
			size(usage.Free), size(kept))
	}
	if usage.FreeFiles < files/part {
		return fault.New(fault.NoRoom, "The server's disk can hold few more files: %d, and %d are kept free. Delete data that is not needed, or tell the server's operator.",
			usage.FreeFiles, files)
	}
	return nil
}

// keptFiles is the number of files for which room is kept, the same share as that of the bytes.
func keptFiles(usage Usage, kept int64) int64 {
	return int64(float64(kept) / float64(max(usage.Total, 1)) * float64(usage.Files))
}

// logChange logs when the room ends and when there is room again, each once.
func (s *Space) logChange(usage Usage, kept, files int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if !s.blind {
			s.log.Error("the free space of the data directory cannot be read", "error", err)
		}
		s.blind = true
		return
	}
	s.blind = false
	full := usage.Free < kept || usage.FreeFiles < files
	if full == s.full {
		return
	}
	s.full = full
	figures := []any{"directory", s.dir, "free", size(usage.Free), "kept_free", size(kept), "free_files", usage.FreeFiles, "kept_free_files", files}
	if full {
		s.log.Error("the disk is nearly full: requests that add data are refused until more of it is free", figures...)
		return
	}
	s.log.Info("the disk has room again", figures...)
}

func size(bytes int64) string { return units.BytesSize(float64(bytes)) }

// Statfs is the Look that asks the system each time.
func Statfs(dir string) (Usage, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return Usage{}, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	block := int64(stat.Bsize) //nolint:unconvert // other systems have other types
	return Usage{Free: int64(stat.Bavail) * block, Total: int64(stat.Blocks) * block, FreeFiles: int64(stat.Ffree), Files: int64(stat.Files)}, nil
}

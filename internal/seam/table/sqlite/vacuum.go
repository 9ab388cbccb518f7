package sqlite

import (
	"os"
	"strconv"
	"time"
)

// Pages that deletions free are given back to the file system in steps beside other work: a
// step moves the last pages of the file to the places of free pages, and cuts the file.
const (
	// vacuumStep is how many pages a step moves at most: a write that comes meanwhile waits
	// for a few milliseconds.
	vacuumStep = 32
	// idlePause and busyPause are how long the writer rests after a step, in multiples of the
	// step's duration: idlePause if nothing was written meanwhile, busyPause if something was.
	idlePause = 1
	busyPause = 9
	// vacuumLook is how often the writer looks for free pages.
	vacuumLook = 250 * time.Millisecond
	// An eighth of the pages, and at least keptPages, stay free for the next writes.
	keptPages = 512
	keptShare = 8
)

var vacuumSQL = `PRAGMA incremental_vacuum(` + strconv.Itoa(vacuumStep) + `)`

// vacuum is the state of the writer's work to give pages back.
type vacuum struct {
	// next is the time when the writer looks again, or makes the next step.
	next time.Time
	// pending is true if the last look or step has left pages to give back.
	pending bool
	// written is true if there was a write since the last look.
	written bool
}

// wait is how long the writer may be idle until the next step.
func (v *vacuum) wait() time.Duration {
	if !v.pending && !v.written {
		return eraseInterval
	}
	return max(0, time.Until(v.next))
}

// giveBack makes the next step if it is time for one. An error is only logged: the table can
// still use the free pages.
func (w *writer) giveBack() {
	now := time.Now()
	if now.Before(w.vacuum.next) {
		return
	}
	busy := w.vacuum.written
	w.vacuum.written = false
	w.vacuum.next = now.Add(vacuumLook)
	moved, more, err := w.step()
	w.vacuum.pending = more
	if err != nil {
		w.log.Warn("free pages could not be given back", "error", err)
		return
	}
	switch {
	case more:
		pause := idlePause
		if busy {
			pause = busyPause
		}
		end := time.Now()
		w.vacuum.next = end.Add(time.Duration(pause) * end.Sub(now))
	case moved:
		// The file is cut only when all of the log is folded into it.
		if err := execAll(w.conn, `PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
			w.log.Warn("the table's log could not be folded into its file", "error", err)
		}
	}
}

// step gives some pages back if there are enough. It reports whether it did so, and whether
// there are still more pages to give back.
func (w *writer) step() (moved, more bool, err error) {
	many, err := w.manyFree()
	if err != nil || !many {
		return false, false, err
	}
	if err := execAll(w.conn, vacuumSQL); err != nil {
		return false, false, err
	}
	more, err = w.manyFree()
	return true, more, err
}

// manyFree reports whether there are more free pages than the number that is kept.
func (w *writer) manyFree() (bool, error) {
	free, err := readInt(w.conn, `PRAGMA freelist_count`)
	if err != nil || free <= keptPages {
		return false, err
	}
	pages, err := readInt(w.conn, `PRAGMA page_count`)
	return free > pages/keptShare, err
}

// fileSize returns 0 if the size cannot be read.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

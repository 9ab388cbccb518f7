package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	beginSQL    = `BEGIN IMMEDIATE`
	commitSQL   = `COMMIT`
	rollbackSQL = `ROLLBACK`
)

// writer is the only goroutine that writes in this process.
type writer struct {
	conn     *sqlite.Conn
	queue    *queue
	watchers *table.Watchers
	now      clock.Clock
	log      *slog.Logger
	done     chan struct{}

	group    []*transaction
	verdicts []error // the outcome of each transaction of the group, if it is committed
	scratch  []byte
	erasedAt int64 // when the writer last looked for expired items, in Unix seconds
	vacuum   vacuum
}

// run commits groups until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.done)
	idle := time.NewTimer(eraseInterval)
	defer idle.Stop()
	for !w.queue.drained() {
		select {
		case <-w.queue.filled:
			w.commitWaiting()
		case <-idle.C:
			w.eraseExpired()
			w.giveBack()
		}
		idle.Reset(w.vacuum.wait())
	}
}

func (w *writer) commitWaiting() {
	for {
		w.group = w.queue.begin(w.group[:0])
		if len(w.group) == 0 {
			return
		}
		w.commitGroup()
		w.answer()
		w.eraseExpired()
		w.vacuum.written = true
		w.giveBack()
	}
}

// commitGroup brings every transaction of the group to its verdict. An error that is not one
// transaction's own error (a full disk, an input that the store refuses) rolls all of them
// back. Then each transaction is tried alone, so that the error fails only the transactions
// that it must fail.
func (w *writer) commitGroup() {
	w.dropGivenUp(0)
	if len(w.group) == 0 {
		return
	}
	err := exec(w.conn, beginSQL)
	begun := err == nil
	if begun {
		err = w.end(w.applyGroup())
	}
	if err == nil {
		return
	}
	if !begun || len(w.group) == 1 {
		w.failAll(err)
		return
	}
	w.verdicts = w.verdicts[:0]
	for _, tx := range w.group {
		w.verdicts = append(w.verdicts, w.commitAlone(tx))
	}
}

// applyGroup applies the group's transactions and the transactions that arrive meanwhile.
func (w *writer) applyGroup() error {
	now := w.now().Unix()
	w.verdicts = w.verdicts[:0]
	for i := 0; i < len(w.group); i++ {
		verdict, err := w.apply(w.group[i], now)
		w.verdicts = append(w.verdicts, verdict)
		if err != nil {
			return err
		}
		if i == len(w.group)-1 {
			w.group = w.queue.extend(w.group)
			w.dropGivenUp(i + 1)
		}
	}
	return nil
}

// commitAlone is commitGroup for a transaction whose group failed.
func (w *writer) commitAlone(tx *transaction) error {
	if err := exec(w.conn, beginSQL); err != nil {
		return err
	}
	verdict, err := w.apply(tx, w.now().Unix())
	if err := w.end(err); err != nil {
		return err
	}
	return verdict
}

// dropGivenUp takes transactions whose context has ended out of the group, from the i-th on,
// and answers them.
func (w *writer) dropGivenUp(i int) {
	kept := w.group[:i]
	for _, tx := range w.group[i:] {
		if tx.takeUp() {
			kept = append(kept, tx)
		} else if tx.state.CompareAndSwap(waiting, takenUp) {
			tx.done <- fmt.Errorf("transact: %w", tx.ctx.Err())
		}
	}
	w.group = kept
}

func (w *writer) failAll(err error) {
	w.verdicts = w.verdicts[:0]
	for range w.group {
		w.verdicts = append(w.verdicts, err)
	}
}

// answer wakes the watchers of the committed writes before the callers learn of the result.
func (w *writer) answer() {
	for i, tx := range w.group {
		if w.verdicts[i] == nil {
			w.wake(tx)
		}
		tx.done <- named(w.verdicts[i])
	}
	clear(w.group)
}

// named adds that the disk is full if SQLite reports this with its own error.
func named(err error) error {
	if err != nil && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultFull {
		return fmt.Errorf("%w: %w", disk.ErrFull, err)
	}
	return disk.Named(err)
}

func (w *writer) wake(tx *transaction) {
	for i := range tx.writes {
		if _, reads := tx.writes[i].Write.(table.Check); !reads {
			w.watchers.Wake(tx.writes[i].key)
		}
	}
}

// end commits the open transaction, or rolls it back if it failed. After some errors SQLite has
// rolled back by itself.
func (w *writer) end(failed error) error {
	if failed == nil {
		failed = exec(w.conn, commitSQL)
	}
	if failed != nil && !w.conn.AutocommitEnabled() {
		failed = errors.Join(failed, exec(w.conn, rollbackSQL))
	}
	return failed
}

package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Transact applies all writes or none of them. The package comment says what happens when the
// context ends.
func (t *Table) Transact(ctx context.Context, writes ...table.Write) error {
	if err := table.Validate(writes); err != nil {
		return fmt.Errorf("transact: %w", err)
	}
	tx := newTransaction(ctx, writes)
	if tx.bytes <= maxGroupBytes {
		return t.commit(tx)
	}
	bodies, err := t.stage(ctx, tx)
	if err == nil {
		err = t.commit(tx)
	}
	if err != nil {
		t.discard(ctx, bodies)
	}
	return err
}

// InOrder applies the writes in one transaction, which costs no more here.
func (t *Table) InOrder(ctx context.Context, writes ...table.Write) error {
	return t.Transact(ctx, writes...)
}

// Delete erases the items in one transaction, which costs no more here.
func (t *Table) Delete(ctx context.Context, keys ...table.Key) error {
	return t.Transact(ctx, table.Deletes(keys)...)
}

// commit hands a transaction to the writer and waits for its outcome.
func (t *Table) commit(tx *transaction) error {
	if err := t.queue.add(tx); err != nil {
		return fmt.Errorf("transact: %w", err)
	}
	return tx.wait()
}

// transaction is one call of Transact on its way through the writer. The caller's goroutine
// prepares as much as possible, because the writer's time is what limits throughput.
type transaction struct {
	ctx    context.Context
	writes []write
	attrs  []byte // holds the encoded attributes of the rows of writes
	bytes  int    // size of the bodies that it stores, which decides whether it is heavy
	part   *part  // a step of staging, which has no other writes

	state atomic.Int32
	done  chan error
}

// A transaction is taken up by the writer or given up by its caller, whichever happens first.
const (
	waiting int32 = iota
	takenUp
	givenUp
)

// write is one write of a transaction.
type write struct {
	table.Write
	key table.Key
	// row is the row to store: known from the start for a Put, computed by the writer for an
	// Update.
	row row
	// blind writes need not look at the item under their key before they are carried out.
	blind bool
	// fresh is a Put that must find no item. The insertion itself decides that.
	fresh bool
	// staged is the write's body if its pieces are already stored.
	staged *staged
	// moved is an Update that changes the item's place in an index.
	moved bool
}

// body returns the body that the write gives to its item.
func (wr *write) body() []byte {
	switch w := wr.Write.(type) {
	case table.Put:
		return w.Item.Body
	case table.Update:
		return w.Body
	}
	return nil
}

var transactions = sync.Pool{New: func() any { return &transaction{done: make(chan error, 1)} }}

func newTransaction(ctx context.Context, writes []table.Write) *transaction {
	tx := transactions.Get().(*transaction)
	tx.ctx = ctx
	tx.state.Store(waiting)
	for _, w := range writes {
		tx.prepare(w)
	}
	return tx
}

func (tx *transaction) prepare(w table.Write) {
	prepared := write{Write: w, key: w.Target()}
	tx.bytes += len(prepared.body())
	switch w := w.(type) {
	case table.Put:
		start := len(tx.attrs)
		tx.attrs = appendAttrs(tx.attrs, w.Item.Attrs)
		prepared.row = row{
			expires: expiresAt(w.Item.Expires),
			index:   newIndexKeys(w.Item.Index),
			attrs:   tx.attrs[start:],
			body:    w.Item.Body,
		}
		prepared.fresh = onlyAbsent(w.If)
		prepared.blind = prepared.fresh || len(w.If.Terms()) == 0
	case table.Delete:
		prepared.blind = len(w.If.Terms()) == 0
	}
	tx.writes = append(tx.writes, prepared)
}

func onlyAbsent(cond table.Cond) bool {
	terms := cond.Terms()
	return len(terms) == 1 && terms[0].Op == table.OpAbsent
}

// wait returns the outcome, or the context's error when the context ends before the writer
// took the transaction up.
func (tx *transaction) wait() error {
	var err error
	select {
	case err = <-tx.done:
	case <-tx.ctx.Done():
		if tx.state.CompareAndSwap(waiting, givenUp) {
			return fmt.Errorf("transact: %w", tx.ctx.Err())
		}
		err = <-tx.done
	}
	tx.recycle()
	return err
}

// takeUp reports whether the writer may carry the transaction out. If not, its caller has gone
// or is about to be answered.
func (tx *transaction) takeUp() bool {
	if tx.ctx.Err() != nil {
		return false
	}
	return tx.state.CompareAndSwap(waiting, takenUp)
}

// recycle lets another call reuse the memory. Only a transaction that was answered may call
// it.
func (tx *transaction) recycle() {
	const keep = 64 << 10
	clear(tx.writes)
	tx.writes, tx.attrs, tx.bytes, tx.part, tx.ctx = tx.writes[:0], tx.attrs[:0], 0, nil, nil
	if cap(tx.attrs) <= keep {
		transactions.Put(tx)
	}
}

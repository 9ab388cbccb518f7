package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Outbox is the result of a decision: the writes of one transaction, and the work that follows
// its commit, for example to start a workflow or to wake a reader. If the process dies after
// the commit, that work is lost and reconcile must find it, so the writes leave a trace of it.
type Outbox struct {
	Writes []table.Write
	// refusals say what a failed condition means if it is not a lost race.
	refusals map[table.Key]func(*table.Item) error
	follow   []func(context.Context)
}

// Write returns an outbox of writes.
func Write(writes ...table.Write) Outbox { return Outbox{Writes: writes} }

// Add appends writes.
func (o *Outbox) Add(writes ...table.Write) { o.Writes = append(o.Writes, writes...) }

// AddOr appends a write. When its condition fails, refuse gets the item that stood there, nil
// if there was no item, and its error is the outcome of the decision. A nil error counts as a
// lost race.
func (o *Outbox) AddOr(write table.Write, refuse func(*table.Item) error) {
	o.Add(write)
	if o.refusals == nil {
		o.refusals = map[table.Key]func(*table.Item) error{}
	}
	o.refusals[write.Target()] = refuse
}

// Always is a refusal with a fixed error for any item that stood there.
func Always(err error) func(*table.Item) error {
	return func(*table.Item) error { return err }
}

// Then appends work that follows the commit. Its context is not cancelled with the request: the
// request has succeeded by then.
func (o *Outbox) Then(work func(context.Context)) { o.follow = append(o.follow, work) }

// Join appends the writes and the work of another outbox.
func (o *Outbox) Join(other Outbox) {
	for _, write := range other.Writes {
		if refuse := other.refusals[write.Target()]; refuse != nil {
			o.AddOr(write, refuse)
		} else {
			o.Add(write)
		}
	}
	o.follow = append(o.follow, other.follow...)
}

// ErrLost says that an item was changed since it was read, so that a decision about it is
// void. A decision that returns it is made again.
var ErrLost = errors.New("an item was changed meanwhile")

// Commit applies an outbox: all of its writes in one transaction, then the work that follows.
// It returns ErrLost when a condition failed and the outbox has no refusal for it. In that
// case nothing is written and no work is done.
func Commit(ctx context.Context, t table.Table, o Outbox) error {
	return o.apply(ctx, t, table.Table.Transact)
}

// CommitInOrder is Commit for writes that need no transaction: the table's InOrder says what an
// error leaves.
func CommitInOrder(ctx context.Context, t table.Table, o Outbox) error {
	return o.apply(ctx, t, table.Table.InOrder)
}

func (o Outbox) apply(ctx context.Context, t table.Table, write func(table.Table, context.Context, ...table.Write) error) error {
	if len(o.Writes) > 0 {
		err := write(t, ctx, o.Writes...)
		if failed, lost := errors.AsType[*table.ConditionFailed](err); lost {
			return o.lost(failed)
		}
		if err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	for _, work := range o.follow {
		work(context.WithoutCancel(ctx))
	}
	return nil
}

func (o Outbox) lost(failed *table.ConditionFailed) error {
	if refuse := o.refusals[o.Writes[failed.Write].Target()]; refuse != nil {
		if err := refuse(failed.Item); err != nil {
			return err
		}
	}
	return ErrLost
}

// Try applies writes unless one of their conditions fails, and reports whether it applied
// them. It is for writes that are void once the items have changed.
func Try(ctx context.Context, t table.Table, writes ...table.Write) (applied bool, err error) {
	err = Commit(ctx, t, Write(writes...))
	if errors.Is(err, ErrLost) {
		return false, nil
	}
	return err == nil, err
}

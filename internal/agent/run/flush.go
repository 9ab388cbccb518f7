package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// The fence guards a worker's writes in one of two ways:
//
//   - Claim, HandOver, GiveBack, Finish, and a Flush that has more to store than events
//     (checkpoints, results of tasks) each commit one transaction under the fence: the events, the
//     other items, and the run's new position.
//   - A Flush that stores only events makes two writes, because a transaction costs twice as much
//     in DynamoDB (commitInOrder). The first write stores the batch of events without the fence.
//     Its only condition is that no batch of a later attempt stands in its place. The second write
//     moves the position under the fence, and so makes the batch visible. If the fence refuses the
//     move, the batch is void, and the worker erases it. void.go says how readers and later workers
//     pass over a void batch whose worker died first.

// HasUnflushed reports whether there are events or writes for the next flush.
func (d *draft) HasUnflushed() bool { return len(d.events) > 0 || len(d.writes) > 0 }

// Bounds of the data that waits for a flush. One event can add maxNodes writes to fullWrites.
// The end of a run needs five writes, and one for the message that it leaves unfinished. The
// sum is at most table.MaxWrites. One event can become an event for each node, and three more.
const (
	fullEvents = 256
	fullWrites = 60
	fullBytes  = 1 << 20
	maxNodes   = 32
	mostEvents = fullEvents + maxNodes + 3
)

// Full reports whether so much data waits that it must be flushed before more data is added.
func (d *draft) Full() bool {
	return len(d.events) >= fullEvents || len(d.writes) >= fullWrites || d.size >= fullBytes
}

func (d *draft) append(event Event) int64 {
	d.Run.Position++
	event.Position = d.Run.Position
	d.events = append(d.events, event)
	d.size += len(event.Data)
	return event.Position
}

// Flush makes everything since the last flush durable and visible. If nothing is buffered and
// readers have not seen the run's input, Flush first emits a values event that contains it.
// ErrFenced means that the worker has lost the run.
func (a *Attempt) Flush(ctx context.Context) error {
	next, now := a.draft, a.store.Now()
	if !next.HasUnflushed() { // a silent agent does not keep the readers of the input waiting
		next.reveal()
	}
	var lease map[table.Index]table.Key
	if now.Sub(a.renewed) > a.store.WorkLease/3 {
		lease = a.store.workEntry(a.Run.Run, now)
	}
	if !next.HasUnflushed() && lease == nil {
		return nil
	}
	inOrder, write := len(next.writes) == 0, record.Commit
	if inOrder {
		write = commitInOrder
	}
	err := a.write(ctx, write, pendingWrite{next, now, table.Attrs{}, lease})
	if inOrder && errors.Is(err, ErrFenced) {
		a.eraseVoid(ctx, next.Run.Position)
	}
	if err == nil && lease != nil {
		a.renewed = now
	}
	return err
}

// commitInOrder is record.Commit for a draft that has only events.
func commitInOrder(ctx context.Context, t table.Table, o record.Outbox) error {
	err := record.CommitInOrder(ctx, t, o)
	if errors.Is(err, errMoved) {
		return nil
	}
	return err
}

// HandOver ends the attempt and leaves the run to the next attempt. The next attempt goes on
// from the last checkpoint, as it would if this worker had died, but this attempt does not
// count as a failure. HandOver makes everything since the last flush durable. It is the
// attempt's last write: HandOver fences off this attempt, too.
//
// A slice is such an attempt: its worker's time is limited (a Lambda function has 15 minutes).
// MaxIdleSlices bounds the slices that do the same again.
func (a *Attempt) HandOver(ctx context.Context) error {
	next := a.draft
	if !next.stepped {
		next.Run.Idle++
	}
	return a.commitHandover(ctx, next, table.Attrs{})
}

// GiveBack is HandOver for a run that no agent took: the attempt is no slice either, the time until
// the next attempt does not count, and the run keeps its permit.
func (a *Attempt) GiveBack(ctx context.Context) error {
	return a.commitHandover(ctx, a.draft, table.Attrs{attrAbsent: clock.Format(a.store.Now())})
}

func (a *Attempt) commitHandover(ctx context.Context, next draft, set table.Attrs) error {
	now := a.store.Now()
	set[attrLastHandover] = a.Run.Attempt
	return a.write(ctx, record.Commit, pendingWrite{next, now, set, a.store.leaseEntry(a.Run.Run, now)})
}

// move returns the write that moves the run to the position of the newest shown event.
func (d *draft) move(now time.Time, set table.Attrs, index map[table.Index]table.Key, fence table.Cond) table.Update {
	set[attrStart], set[attrPosition], set[attrCheckpoint] = d.Run.Start, d.Run.Position, d.Run.Checkpoint
	set[attrIdle], set[attrUncheckpointedFrom], set[attrCheckpointBefore] = d.Run.Idle, d.Run.UncheckpointedFrom, d.Run.CheckpointBefore
	if d.Run.CheckpointRewritten {
		set[attrCheckpointRewritten] = true
	}
	if len(d.Run.FirstsAfterLoss) > 0 {
		set[attrFirstsAfterLoss] = string(record.Encode(d.Run.FirstsAfterLoss))
	}
	if d.unfinishedChanged {
		set[attrUnfinished] = string(record.Encode(d.Run.Unfinished))
	}
	change := record.Change(d.Run.Key(), now, set, fence)
	change.Index = index
	return change
}

// takeUnflushed returns the writes of the next commit, with the batch of events among them. It
// empties the buffers.
func (d *draft) takeUnflushed(now time.Time) []table.Write {
	writes := d.writes
	if len(d.events) > 0 {
		writes = append(writes, d.putEvents(now))
	}
	d.events, d.writes, d.size = nil, nil, 0
	return writes
}

// pendingWrite is a draft that is to be committed, which then becomes the attempt's draft. set and
// index are the changes of the run's item beside the draft's own; now is the time of the commit.
type pendingWrite struct {
	draft draft
	now   time.Time
	set   table.Attrs
	index map[table.Index]table.Key
}

// write commits a draft by record.Commit or commitInOrder.
func (a *Attempt) write(ctx context.Context, commit func(context.Context, table.Table, record.Outbox) error, w pendingWrite) error {
	if a.unsure != nil {
		return a.unsure
	}
	next, condition := w.draft, a.fence
	events := next.events
	writes := next.takeUnflushed(w.now)
	if a.store.Paced && !a.Run.HasReader {
		condition = table.All(condition, noReader())
	}
	err := commit(ctx, a.store.Table, a.flushed(next.move(w.now, w.set, w.index, condition), writes))
	if errors.Is(err, errHasReader) {
		next.Run.HasReader = true
		err = commit(ctx, a.store.Table, a.flushed(next.move(w.now, w.set, w.index, a.fence), writes))
	}
	if errors.Is(err, ErrFenced) || errors.Is(err, errMoved) || errors.Is(err, record.ErrLost) {
		return ErrFenced
	}
	if err != nil {
		a.unsure = fmt.Errorf("write run: %w", err)
		return a.unsure
	}
	next.unfinishedChanged = false
	a.draft, a.fence = next, fence(next.Run)
	a.store.recentEvents.remember(a.Run.Ref, events, w.now)
	return nil
}

// errHasReader says that a write was refused only because a reader has come since the last write.
var errHasReader = errors.New("a reader waits for the run")

// noReader is the condition that no reader has come. Where each write costs money (Config.Paced), a
// worker writes seldom until a reader comes. A reader notes in the run that it waits (noteReader).
// Until the worker knows of a reader, each of its writes except Finish has this condition beside
// the fence. So the worker learns of a reader from its next write, and does not have to read the
// run. If this condition alone fails, the worker still owns the run: it makes the same write again
// without the condition, and writes more often from then on.
func noReader() table.Cond { return table.Below(attrHasReader, 1) }

// errMoved says that the position stands where the write was to move it. A write in order was
// applied then, and only its answer was lost: no other process moves the position while the run
// is this attempt's.
var errMoved = errors.New("the run's position has been moved")

// flushed returns the writes of a flush. The move of the run's position is the last of them, so
// that it makes the other writes visible also if they are applied in order.
func (a *Attempt) flushed(move table.Update, writes []table.Write) (o record.Outbox) {
	o.Add(writes...)
	o.AddOr(move, func(stood *table.Item) error {
		switch {
		case stood == nil:
			return ErrFenced
		case a.fence.Holds(stood):
			return errHasReader
		case moved(move, a.Run.Attempt).Holds(stood):
			return errMoved
		}
		return ErrFenced
	})
	return o
}

// moved is the condition that the run's item is as the move of an attempt has left it.
func moved(move table.Update, attempt int64) table.Cond {
	return table.All(
		table.Equals(attrStatus, string(Running)),
		table.Equals(attrAttempt, attempt),
		table.Equals(attrPosition, move.Set[attrPosition]),
	)
}

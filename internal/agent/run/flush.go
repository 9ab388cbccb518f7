package run

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// HasUnflushed reports whether there are events or writes for the next flush.
func (a *Attempt) HasUnflushed() bool { return len(a.events) > 0 || len(a.writes) > 0 }

// Bounds of the data that waits for a flush. One event can add maxNodes writes to fullWrites.
// The end of a run needs five writes, and one for the message that it leaves unfinished. The
// sum is at most table.MaxWrites.
const (
	fullEvents = 256
	fullWrites = 60
	fullBytes  = 1 << 20
	maxNodes   = 32
)

// Full reports whether so much data waits that it must be flushed before more data is added.
func (a *Attempt) Full() bool {
	return len(a.events) >= fullEvents || len(a.writes) >= fullWrites || a.size >= fullBytes
}

func (a *Attempt) append(event Event) int64 {
	a.Run.Position++
	event.Position = a.Run.Position
	a.events = append(a.events, event)
	a.size += len(event.Data)
	return event.Position
}

// Flush makes everything since the last flush durable and visible. If nothing is buffered and
// readers have not seen the run's input, Flush first emits a values event that contains it.
// ErrFenced means that the worker has lost the run.
func (a *Attempt) Flush(ctx context.Context) error {
	a.emitInputIfIdle()
	now := a.store.now()
	var lease map[table.Index]table.Key
	if now.Sub(a.renewed) > a.store.lease/3 {
		lease = a.store.leaseEntry(a.Run.Run, now)
	}
	if !a.HasUnflushed() && lease == nil {
		return nil
	}
	if err := a.write(ctx, now, table.Attrs{}, lease); err != nil {
		return err
	}
	if lease != nil {
		a.renewed = now
	}
	return nil
}

// emitInputIfIdle emits a values event that contains the run's input if nothing is buffered and
// readers have not seen the input. So a silent agent does not keep its readers waiting.
func (a *Attempt) emitInputIfIdle() {
	if !a.HasUnflushed() {
		a.reveal()
	}
}

// HandOver ends the attempt and leaves the run to the next attempt. The next attempt goes on
// from the last checkpoint, as it would if this worker had died, but this attempt does not
// count as a failure. HandOver makes everything since the last flush durable. It is the
// attempt's last write: HandOver fences off this attempt, too.
func (a *Attempt) HandOver(ctx context.Context) error {
	if !a.stepped {
		a.Run.Idle++
	}
	now := a.store.now()
	return a.write(ctx, now, table.Attrs{attrHanded: a.Run.Attempt}, a.store.leaseEntry(a.Run.Run, now))
}

// change returns the write that moves the run to the position of the newest shown event.
func (a *Attempt) change(now time.Time, set table.Attrs, index map[table.Index]table.Key) table.Update {
	set[attrStart], set[attrPosition], set[attrCheckpoint] = a.Run.Start, a.Run.Position, a.Run.Checkpoint
	set[attrIdle], set[attrUnfolded], set[attrBefore] = a.Run.Idle, a.Run.Unfolded, a.Run.Before
	if a.Run.Amended {
		set[attrAmended] = true
	}
	if a.unfinishedChanged {
		set[attrUnfinished] = string(record.Encode(a.Run.Unfinished))
	}
	change := record.Change(a.Run.Key(), now, set, a.fence)
	change.Index = index
	return change
}

// takeUnflushed returns the writes of the next transaction, with the batch of events among them. It
// empties the buffers.
func (a *Attempt) takeUnflushed(now time.Time) []table.Write {
	writes := a.writes
	if len(a.events) > 0 {
		writes = append(writes, putEvents(a.Run.Ref.Ref, now, a.Run.Attempt, a.events))
	}
	a.events, a.writes, a.size = nil, nil, 0
	return writes
}

func (a *Attempt) write(ctx context.Context, now time.Time, set table.Attrs, index map[table.Index]table.Key) error {
	if a.unsure != nil {
		return a.unsure
	}
	events := a.events
	writes := append([]table.Write{a.change(now, set, index)}, a.takeUnflushed(now)...)
	applied, err := record.Try(ctx, a.store.table, writes...)
	if err != nil {
		a.unsure = fmt.Errorf("write run: %w", err)
		return a.unsure
	}
	if !applied {
		return ErrFenced
	}
	a.fence, a.unfinishedChanged = fence(a.Run), false
	a.store.tail.remember(a.Run.Ref, events, now)
	return nil
}

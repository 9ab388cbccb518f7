package run

import (
	"context"
	"errors"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// streamPage and streamBytes are how many batches of events a reader takes at a time, and how
// many bytes they may have together. So a slow reader holds little memory, however long the
// run is. A batch that is larger than streamBytes is taken alone.
const (
	streamPage  = 64
	streamBytes = 32 << 10
)

// Stream hands the events of a run after a position to emit, in order, batch by batch. The run
// is given as it was read or created. Stream waits for more events until the run is over and
// all events are read. A "values" event names a checkpoint; the reader fetches the
// checkpoint's state if it wants it (Values). Errors of emit end the stream and are returned
// as they are.
func (s *Store) Stream(ctx context.Context, run Run, after int64, emit func([]Event) error) error {
	if run.Status.Final() {
		_, err := s.replay(ctx, run, max(after, run.Start), emit)
		return err
	}
	ref := run.Ref
	w := s.watch(ref)
	defer w.Stop()
	defer s.recentEvents.follow(ref)()
	for read := false; ; read = true {
		status, err := s.catchUp(ctx, w, ref, &after, emit)
		if read && status == "" && fault.Is(err, fault.NotFound) {
			return nil // it was removed meanwhile
		}
		if err != nil || status.Final() {
			return err
		}
		if err := w.wait(ctx, status); err != nil {
			return err
		}
	}
}

// catchUp emits the events after a position that the run has now, moves the position, and returns
// the run's status, "" if the run could not be read. It is a function of its own because a reader
// waits most of the time, and would keep the run on its stack meanwhile.
func (s *Store) catchUp(ctx context.Context, w *watch, ref Ref, after *int64, emit func([]Event) error) (Status, error) {
	run, err := w.get(ctx, s, ref)
	if err != nil {
		return "", err
	}
	if err = s.noteReader(ctx, run); err == nil {
		*after, err = s.replay(ctx, run, max(*after, run.Start), emit)
	}
	return run.Status, err
}

// noteReader notes in a run, for its worker, that a reader waits for the run's events as they come.
// It writes once for each run, and not for a run whose creator is its reader (Request.Streamed).
// The note may be written twice, so it needs no transaction.
func (s *Store) noteReader(ctx context.Context, run Run) error {
	if !s.Paced || run.HasReader || run.Status.Final() {
		return nil
	}
	err := record.CommitInOrder(ctx, s.Table, record.Write(table.Update{
		Key: run.Key(), Set: table.Attrs{attrHasReader: int64(1)}, If: table.In(attrStatus, string(Pending), string(Running)),
	}))
	if errors.Is(err, record.ErrLost) {
		return nil // it has ended meanwhile
	}
	return err
}

// Shown hands the events that a run had when it was read to emit.
func (s *Store) Shown(ctx context.Context, run Run, emit func([]Event) error) error {
	_, err := s.replay(ctx, run, run.Start, emit)
	return err
}

// replay emits the events after a position that the run had when it was read, and returns the
// position that it reached.
func (s *Store) replay(ctx context.Context, run Run, after int64, emit func([]Event) error) (int64, error) {
	after, err := s.recentEvents.emit(ctx, run.Ref, after, run.Position, emit)
	if err != nil || after >= run.Position {
		return after, err
	}
	if after, err = s.replayStored(ctx, run, after, true, emit); err != nil || after >= run.Position {
		return after, err
	}
	return s.replayStored(ctx, run, after, false, emit)
}

// replayStored is replay for the stored batches. An eventual read ends before the first batch
// that it lacks.
func (s *Store) replayStored(ctx context.Context, run Run, after int64, eventual bool, emit func([]Event) error) (int64, error) {
	for b, err := range s.batches(ctx, &run, after, eventual) {
		if err != nil {
			return after, err
		}
		if eventual && b.events[0].Position > after+1 {
			return after, nil
		}
		if after, err = emitBatch(b, after, emit); err != nil {
			return after, err
		}
	}
	return after, nil
}

func emitBatch(b batch, after int64, emit func([]Event) error) (int64, error) {
	events := b.events[:0]
	for _, event := range b.events {
		if event.Position > after {
			event.At = b.at
			events = append(events, event)
		}
	}
	if len(events) == 0 {
		return after, nil
	}
	return events[len(events)-1].Position, emit(events)
}

// Values returns the state that a "values" event shows. It returns a fault.NotFound if the thread
// was pruned since.
func (s *Store) Values(ctx context.Context, ref thread.Ref, event Event) (thread.State, error) {
	return s.stateAt(ctx, ref, event.Checkpoint)
}

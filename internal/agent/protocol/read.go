package protocol

import (
	"context"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// Reader reads the events of a thread that a client wants.
type Reader struct {
	runs   *run.Store
	ref    thread.Ref
	filter Filter
	begin  *run.Attendance
}

// Open returns a Reader that begins behind the event with the number since. If since is nil, it
// begins with the run that is active now, or that is the newest.
func Open(ctx context.Context, runs *run.Store, ref thread.Ref, filter Filter, since *int64) (*Reader, error) {
	from, err := startPosition(ctx, runs, ref, &filter, since)
	if err != nil {
		return nil, err
	}
	begin, err := runs.Attend(ctx, ref, from)
	return &Reader{runs, ref, filter, begin}, err
}

// Read hands the events to send, until ctx ends. It waits for a thread that does not exist yet,
// also after the thread was deleted. It calls send for each part of the log that it has read, even
// if there are no events: this tells send that the part is done, and that no later event has a
// number below next. Errors of send end Read and are returned as they are.
func (r *Reader) Read(ctx context.Context, send func(events []Event, next int64) error) error {
	begin, filter := r.begin, r.filter
	for {
		var translator *Translator
		current := ""
		err := begin.Follow(ctx, func(part run.Part) error {
			if current != part.Run.Run {
				current, translator = part.Run.Run, NewTranslator(r.runs, part.Run, filter)
			}
			return translator.Translate(ctx, part, func(events []Event) error { return send(events, translator.Next()) })
		})
		if err != nil {
			return err
		}
		filter.since = 0 // the numbers of a thread that is created again begin at 0
		if begin, err = r.runs.Attend(ctx, r.ref, new(run.ReaderPosition)); err != nil {
			return err
		}
	}
}

// startPosition returns the position at which to begin, and sets the filter accordingly. A number
// behind the end, which a reader of an earlier thread with the same id may have, counts as the
// end: later events are shown.
func startPosition(ctx context.Context, runs *run.Store, ref thread.Ref, filter *Filter, since *int64) (*run.ReaderPosition, error) {
	if since == nil {
		return nil, nil
	}
	reached, err := runs.Reached(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from := ReaderPositionOf(*since)
	if filter.since = *since; from.Position > reached {
		if from, err = runs.Behind(ctx, ref, ""); err != nil {
			return nil, err
		}
		filter.since = SeqOf(from)
	}
	return &from, nil
}

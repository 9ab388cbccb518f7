package protocol

import (
	"context"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// Read hands the events of a thread that a reader wants to send, until ctx ends. It begins
// behind the event with the number since. If since is nil, it begins with the active run, or
// with the newest run. It waits for a thread that does not exist yet, also after the thread
// was deleted. It calls send for each part of the log that it has read, even if there are no
// events: this tells send that the part is done, and that no later event has a number below
// next. Errors of send end Read and are returned as they are.
func Read(ctx context.Context, runs *run.Store, ref thread.Ref, filter Filter, since *int64, send func(events []Event, next int64) error) error {
	from, err := startPosition(ctx, runs, ref, &filter, since)
	if err != nil {
		return err
	}
	for {
		var translator *Translator
		current := ""
		err := runs.Attend(ctx, ref, from, func(part run.Part) error {
			if current != part.Run.Run {
				current, translator = part.Run.Run, NewTranslator(runs, part.Run, filter)
			}
			return translator.Translate(ctx, part, func(events []Event) error { return send(events, translator.Next()) })
		})
		if err != nil {
			return err
		}
		from, filter.since = nil, 0 // the numbers of a thread that is created again begin at 0
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

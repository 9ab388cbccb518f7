package protocol

import (
	"context"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// Read hands the events of a thread to send that a reader wants, until ctx ends. It begins behind
// the event with the number since, or with the active run, or the newest, if since is nil. It waits
// for a thread that is yet to come, also after its end. It calls send for each part of the log that
// it has read, also with no events: send then knows that what was read is done with, and that no
// later event has a number below next. Errors of send end it and are returned as they are.
func Read(ctx context.Context, runs *run.Store, ref thread.Ref, filter Filter, since *int64, send func(events []Event, next int64) error) error {
	from, err := place(ctx, runs, ref, &filter, since)
	if err != nil {
		return err
	}
	for {
		var of *Translator
		current := ""
		err := runs.Attend(ctx, ref, from, func(part run.Part) error {
			if current != part.Run.Run {
				current, of = part.Run.Run, NewTranslator(runs, part.Run, filter)
			}
			return of.Translate(ctx, part, func(events []Event) error { return send(events, of.Next()) })
		})
		if err != nil {
			return err
		}
		from, filter.since = nil, 0 // a thread that is made anew counts from the beginning
	}
}

// place returns where to begin, and sets the filter accordingly. A number behind the end, as a
// reader of an earlier thread of the same id has it, is the end: what comes next is shown.
func place(ctx context.Context, runs *run.Store, ref thread.Ref, filter *Filter, since *int64) (*run.ReaderPosition, error) {
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
	from := PlaceOf(*since)
	if filter.since = *since; from.Position > reached {
		if from, err = runs.Behind(ctx, ref, ""); err != nil {
			return nil, err
		}
		filter.since = SeqOf(from)
	}
	return &from, nil
}

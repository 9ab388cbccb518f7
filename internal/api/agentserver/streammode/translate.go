// Package streammode turns the events in a run's log into the events of the stream modes that a
// client asked for. A Translator decides what an event of the log becomes: steps.go adds the modes
// that show steps, and accumulate.go adds up messages. An Outlet sends the results. The tests are
// those of package agentserver (stream_*_test.go).
package streammode

import (
	"context"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// The stream modes that this package knows, besides run.EventValues. A client gets the events of
// the other modes as they are in the log.
const (
	modeEvents        = "events"
	modeMessages      = "messages"
	modeMessagesTuple = "messages-tuple"
	modeTasks         = "tasks"
	modeCheckpoints   = "checkpoints"
	modeDebug         = "debug"
)

// Source has what a Translator reads beside the events: an event of the log only names the state
// that it shows.
type Source struct {
	Runs *run.Store
	// Checkpoint shows a checkpoint of a thread as an event of the mode "checkpoints".
	Checkpoint func(thread.Ref, thread.Snapshot) any
}

// Translator turns a run's events into events of the stream modes that a client asked for. The
// ids of these events are positions.
type Translator struct {
	source Source
	ref    thread.Ref
	modes  []string
	// after is the position of the last event that the client has.
	after int64
	out   *Outlet
	// messages accumulates the chunks of messages for the mode "messages"; nil without that
	// mode.
	messages *accumulator
	// first is the run's first "values" event, nil before this event. earlier is the state at this
	// event, nil before the state was read.
	first   *run.Event
	earlier *state.Values
	// steps adds events to the modes that show steps.
	steps *steps
}

// Translator returns a translator of a run's events. The client has the events up to the position
// after.
func (s Source) Translator(r run.Run, modes []string, after int64, out *Outlet) *Translator {
	t := &Translator{source: s, ref: r.Ref.Ref, modes: modes, after: after, out: out, steps: newSteps(s, r, modes, out)}
	if slices.Contains(modes, modeMessages) {
		t.messages = newAccumulator(out)
	}
	return t
}

// Start is the position to read from: accumulated messages need their chunks from the
// beginning, and steps need the events that came before.
func (t *Translator) Start() int64 {
	if t.messages != nil || len(t.steps.wanted) > 0 {
		return 0
	}
	return t.after
}

// One translates an event. An event whose state was pruned is not shown.
func (t *Translator) One(ctx context.Context, event run.Event) error {
	err := t.steps.before(ctx, event)
	if err == nil {
		err = t.plain(ctx, event)
	}
	if err == nil {
		err = t.steps.behind(ctx, event)
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// End shows what is left at the end of the run.
func (t *Translator) End() { t.steps.release() }

// plain translates an event without the events that steps adds.
func (t *Translator) plain(ctx context.Context, event run.Event) error {
	kind, _, subgraph := strings.Cut(event.Name, "|")
	switch kind {
	case run.EventMetadata, run.EventError:
		if kind == run.EventMetadata && t.messages != nil {
			t.messages = newAccumulator(t.out) // another attempt repeats unfinished messages
		}
		t.out.Add(event.Name, event.Data)
		return nil
	case run.EventValues:
		if subgraph { // the event itself has the state
			break
		}
		if t.first == nil {
			t.first = &event
		}
		return t.values(ctx, event)
	case run.EventMessages:
		if t.wants(modeMessagesTuple) {
			t.out.Add(event.Name, event.Data)
		}
		if t.messages != nil {
			t.messages.add(event.Data)
		}
		return nil
	}
	if t.wants(kind) {
		t.out.Add(event.Name, event.Data)
	}
	if kind == run.EventUpdates && t.messages != nil {
		return t.messages.complete(event.Data, func(id string) (bool, error) { return t.isEarlier(ctx, id) })
	}
	return nil
}

// isEarlier reports whether a message was in the state with which the run began.
func (t *Translator) isEarlier(ctx context.Context, id string) (bool, error) {
	if t.out.Muted || t.first == nil {
		return false, nil
	}
	if t.earlier == nil {
		began, err := t.source.Runs.Values(ctx, t.ref, *t.first)
		if err != nil && !fault.Is(err, fault.NotFound) { // else the thread was pruned
			return false, err
		}
		t.earlier = &began.Values
	}
	return t.earlier.Has(id), nil
}

// values shows the state that an event names.
func (t *Translator) values(ctx context.Context, event run.Event) error {
	if t.out.Muted || !t.wants(run.EventValues) {
		return nil
	}
	threadState, err := t.source.Runs.Values(ctx, t.ref, event)
	if err != nil {
		return err
	}
	values := threadState.Values.JSON()
	if len(event.Data) > 0 {
		if values, err = record.Merge(values, event.Data); err != nil {
			return err
		}
	}
	t.out.Add(event.Name, values)
	return nil
}

func (t *Translator) wants(mode string) bool { return slices.Contains(t.modes, mode) }

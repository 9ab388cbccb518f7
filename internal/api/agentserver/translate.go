package agentserver

import (
	"context"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// translator turns a run's events into events of the stream modes that a client asked for. The
// ids of these events are positions.
type translator struct {
	server server
	ref    thread.Ref
	modes  []string
	// after is the position of the last event that the client has.
	after int64
	out   *outlet
	// messages accumulates the chunks of messages for the mode "messages"; nil without that
	// mode.
	messages *accumulator
	// steps adds events to the modes that show steps.
	steps *steps
}

func newTranslator(s server, r run.Run, modes []string, after int64, out *outlet) *translator {
	t := &translator{server: s, ref: r.Ref.Ref, modes: modes, after: after, out: out, steps: newSteps(s, r, modes, out)}
	if slices.Contains(modes, string(StreamModeMessages)) {
		t.messages = newAccumulator(out)
	}
	return t
}

// start is the position to read from: accumulated messages need their chunks from the
// beginning, and steps need the events that came before.
func (t *translator) start() int64 {
	if t.messages != nil || len(t.steps.wanted) > 0 {
		return 0
	}
	return t.after
}

// one translates an event. An event whose state was pruned is not shown.
func (t *translator) one(ctx context.Context, event run.Event) error {
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

// plain translates an event without the events that steps adds.
func (t *translator) plain(ctx context.Context, event run.Event) error {
	kind, _, subgraph := strings.Cut(event.Name, "|")
	switch kind {
	case run.EventMetadata, run.EventError:
		if kind == run.EventMetadata && t.messages != nil {
			t.messages = newAccumulator(t.out) // another attempt repeats unfinished messages
		}
		t.out.add(event.Name, event.Data)
		return nil
	case run.EventValues:
		if subgraph { // the event itself has the state
			break
		}
		return t.values(ctx, event)
	case run.EventMessages:
		if t.wants(StreamModeMessagesTuple) {
			t.out.add(event.Name, event.Data)
		}
		if t.messages != nil {
			t.messages.add(event.Data)
		}
		return nil
	}
	if t.wants(StreamMode(kind)) {
		t.out.add(event.Name, event.Data)
	}
	if kind == run.EventUpdates && t.messages != nil {
		t.messages.complete(event.Data)
	}
	return nil
}

// values shows the state that an event names.
func (t *translator) values(ctx context.Context, event run.Event) error {
	if t.out.muted || !t.wants(StreamModeValues) {
		return nil
	}
	threadState, err := t.server.Runs.Values(ctx, t.ref, event)
	if err != nil {
		return err
	}
	values := threadState.Values.JSON()
	if len(event.Data) > 0 {
		if values, err = record.Merge(values, event.Data); err != nil {
			return err
		}
	}
	t.out.add(event.Name, values)
	return nil
}

func (t *translator) wants(mode StreamMode) bool { return slices.Contains(t.modes, string(mode)) }

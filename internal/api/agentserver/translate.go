package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/record/record"
)

// translator turns a run's events into events of the stream modes that a client asked for. The
// ids of these events are positions.
type translator struct {
	server
	ref   thread.Ref
	modes []string
	// after is the position of the last event that the client has.
	after int64
	// messages accumulates the chunks of messages for the mode "messages"; nil without that
	// mode.
	messages *accumulator
	// steps adds events to the modes that show steps; nil without such a mode.
	steps *steps
}

func newTranslator(s server, r run.Run, modes []string, after int64) *translator {
	t := &translator{server: s, ref: r.Ref.Ref, modes: modes, after: after, steps: newSteps(s, r, modes, after)}
	if slices.Contains(modes, string(StreamModeMessages)) {
		t.messages = newAccumulator()
	}
	return t
}

// start is the position to read from: accumulated messages need their chunks from the
// beginning, and steps need the events that came before.
func (t *translator) start() int64 {
	if t.messages != nil || t.steps != nil {
		return 0
	}
	return t.after
}

func (t *translator) translate(ctx context.Context, events []run.Event) ([]web.Event, error) {
	var out []web.Event
	for _, event := range events {
		translated, err := t.one(ctx, event)
		if err != nil {
			return nil, err
		}
		if event.Position <= t.after {
			continue
		}
		// If one event becomes several events, the last event carries the id: a client that
		// reconnects with the id has received all of them.
		if last := len(translated) - 1; last >= 0 {
			translated[last].ID = strconv.FormatInt(event.Position, 10)
		}
		out = append(out, translated...)
	}
	return out, nil
}

func (t *translator) one(ctx context.Context, event run.Event) ([]web.Event, error) {
	if t.steps == nil {
		return t.plain(ctx, event)
	}
	before, err := t.steps.before(ctx, event)
	if err != nil {
		return nil, err
	}
	own, err := t.plain(ctx, event)
	if err != nil {
		return nil, err
	}
	behind, err := t.steps.behind(ctx, event)
	return slices.Concat(before, own, behind), err
}

// end returns the events that are shown after the run's last event.
func (t *translator) end() []web.Event {
	if t.steps == nil {
		return nil
	}
	return t.steps.release()
}

// plain translates an event without the events that steps adds.
func (t *translator) plain(ctx context.Context, event run.Event) ([]web.Event, error) {
	kind, _, subgraph := strings.Cut(event.Name, "|")
	switch kind {
	case run.EventMetadata, run.EventError:
		if kind == run.EventMetadata && t.messages != nil {
			t.messages = newAccumulator() // another attempt repeats unfinished messages
		}
		return []web.Event{{Name: event.Name, Data: event.Data}}, nil
	case run.EventValues:
		if subgraph { // the event itself has the state
			break
		}
		if event.Position <= t.after || !t.wants(StreamModeValues) {
			return nil, nil
		}
		found, err := t.Runs.Values(ctx, t.ref, event)
		if err != nil {
			return nil, err
		}
		values, err := record.Merge(found.Values.JSON(), event.Data)
		return []web.Event{{Name: event.Name, Data: values}}, err
	case run.EventMessages:
		return t.chunk(event), nil
	}
	var out []web.Event
	if t.wants(StreamMode(kind)) {
		out = append(out, web.Event{Name: event.Name, Data: event.Data})
	}
	if kind == run.EventUpdates && t.messages != nil {
		out = append(out, t.messages.complete(event.Data)...)
	}
	return out, nil
}

func (t *translator) wants(mode StreamMode) bool { return slices.Contains(t.modes, string(mode)) }

func (t *translator) chunk(event run.Event) []web.Event {
	var out []web.Event
	if t.wants(StreamModeMessagesTuple) {
		out = append(out, web.Event{Name: event.Name, Data: event.Data})
	}
	if t.messages != nil {
		out = append(out, t.messages.add(event.Data)...)
	}
	return out
}

// accumulator makes the events of the stream mode "messages": each chunk shows the whole message so
// far.
type accumulator struct {
	// open holds the first chunk of each message that is not complete, content has the sum of
	// its chunks.
	open    map[string]map[string]json.RawMessage
	content map[string]*content
}

func newAccumulator() *accumulator {
	return &accumulator{open: map[string]map[string]json.RawMessage{}, content: map[string]*content{}}
}

// toolCalls is the member of a chunk that holds pieces of tool calls.
const toolCalls = "tool_call_chunks"

func (a *accumulator) add(data json.RawMessage) []web.Event {
	var pair []json.RawMessage
	var head struct {
		ID      string          `json:"id"`
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Calls   json.RawMessage `json:"tool_call_chunks"`
	}
	if json.Unmarshal(data, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[0], &head) != nil {
		return nil
	}
	var out []web.Event
	message := a.open[head.ID]
	if message == nil {
		if json.Unmarshal(pair[0], &message) != nil || message == nil {
			return nil
		}
		message["type"] = record.Encode(messageType(head.Type))
		a.open[head.ID], a.content[head.ID] = message, new(content)
		delete(message, toolCalls)
		metadata := map[string]any{head.ID: map[string]json.RawMessage{"metadata": pair[1]}}
		out = append(out, web.Event{Name: "messages/metadata", Data: record.Encode(metadata)})
	}
	if a.content[head.ID].add(head.Content) {
		message["content"] = a.content[head.ID].json()
	}
	if len(head.Calls) > 0 {
		message[toolCalls] = mergeCalls(message[toolCalls], head.Calls)
	}
	return append(out, web.Event{Name: "messages/partial", Data: record.Encode([]any{message})})
}

// messageType returns the type of the message to which a chunk of the class belongs.
func messageType(class string) string {
	return cmp.Or(strings.ToLower(strings.TrimSuffix(class, "MessageChunk")), "ai")
}

// complete shows the messages of an update, which are whole, in the order in which the state gets
// them.
func (a *accumulator) complete(update json.RawMessage) []web.Event {
	var out []web.Event
	nodes, err := state.Members(update)
	if err != nil {
		return nil
	}
	for _, node := range nodes {
		var added struct {
			Messages json.RawMessage `json:"messages"`
		}
		if json.Unmarshal(node.Value, &added) != nil {
			continue // it adds no messages
		}
		for _, message := range oneOrMany(added.Messages) {
			var head struct {
				ID string `json:"id"`
			}
			if json.Unmarshal(message, &head) == nil {
				delete(a.open, head.ID)
				delete(a.content, head.ID)
			}
			out = append(out, web.Event{Name: "messages/complete", Data: record.Encode([]json.RawMessage{message})})
		}
	}
	return out
}

// oneOrMany returns the elements of a list. A value that is not a list is the only element.
func oneOrMany(raw json.RawMessage) []json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return []json.RawMessage{raw}
	}
	return list
}

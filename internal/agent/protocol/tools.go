package protocol

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/record"
)

// tools are the tool calls that a run has shown.
type tools struct {
	// open are the calls that have begun and not ended, in their order. known are the
	// namespaces in which calls have begun, by the calls' ids: models number their calls, so the
	// agents of a run may have calls of the same id.
	open  []openCall
	known map[string][][]string
	// called are the calls that models have requested, by their ids.
	called map[string]toolCall
	// steps says that the agent shows its tasks: it is an agent of a framework, which may
	// report its tool calls itself.
	steps bool
}

type openCall struct {
	id        string
	namespace []string
	node      string
	// left says that an attempt has ended during the call, and that no later attempt has
	// repeated the call.
	left bool
}

// toolEvent is an agent's event about a tool call, in the form of the protocol or in the form
// of the callbacks of the JavaScript framework.
type toolEvent struct {
	Event  string          `json:"event"`
	ID     string          `json:"tool_call_id"`
	Name   string          `json:"tool_name"`
	Input  json.RawMessage `json:"input"`
	Delta  json.RawMessage `json:"delta"`
	Output json.RawMessage `json:"output"`
	// Message says why a call failed.
	Message string `json:"message"`

	OtherID   string          `json:"toolCallId"`
	OtherName string          `json:"name"`
	Data      json.RawMessage `json:"data"`
	Error     json.RawMessage `json:"error"`
}

// toolEvents maps the names of callback events to the names of events in the protocol.
var toolEvents = map[string]string{
	"on_tool_start": "tool-started", "on_tool_event": "tool-output-delta", "on_tool_end": "tool-finished", "on_tool_error": "tool-error",
}

// tool handles an agent's event about a tool call.
func (t *Translator) tool(data json.RawMessage, namespace []string) {
	var e toolEvent
	if json.Unmarshal(data, &e) != nil {
		return
	}
	if name := toolEvents[e.Event]; name != "" {
		e.Event = name
		e.ID, e.Name = cmp.Or(e.ID, e.OtherID), cmp.Or(e.Name, e.OtherName)
		if len(e.Delta) == 0 {
			e.Delta = e.Data
		}
		if e.Message == "" && len(e.Error) > 0 {
			e.Message = textOf(e.Error)
		}
	}
	switch e.Event {
	case "tool-started":
		t.startTool(e.ID, e.Name, e.Input, "", namespace)
	case "tool-output-delta":
		t.emitTool(e.ID, "", namespace, map[string]any{"event": e.Event, "delta": textOf(e.Delta)})
	case "tool-finished":
		t.endTool(e.ID, "", namespace, map[string]any{"event": e.Event, "output": state.OrNull(e.Output)})
	case "tool-error":
		t.endTool(e.ID, "", namespace, map[string]any{"event": e.Event, "message": e.Message})
	}
}

// textOf returns a text as it is, and any other value as JSON.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func (t *Translator) emitTool(id, node string, namespace []string, data map[string]any) {
	data["tool_call_id"] = id
	t.emit(Event{Method: MethodTools, Namespace: namespace, Node: node, Data: record.Encode(data)})
}

func (t *Translator) startTool(id, name string, input json.RawMessage, node string, namespace []string) {
	if id == "" {
		return
	}
	if t.repeats(id, namespace) {
		return
	}
	t.tools.known[id] = append(t.tools.known[id], namespace)
	t.tools.open = append(t.tools.open, openCall{id: id, namespace: namespace, node: node})
	t.emitTool(id, node, namespace, map[string]any{"event": "tool-started", "tool_name": name, "input": state.OrNull(input)})
}

// repeats reports whether a call in a namespace was shown, or takes the place of a call that
// the end of an attempt has cut off.
func (t *Translator) repeats(id string, namespace []string) bool {
	known := slices.ContainsFunc(t.tools.known[id], func(other []string) bool { return slices.Equal(other, namespace) })
	for i, call := range t.tools.open {
		if call.left && call.id == id && (!known || slices.Equal(call.namespace, namespace)) {
			t.tools.open[i].left = false
			return true
		}
	}
	return known
}

// deriveTool begins a call of which only messages tell, unless the call has begun. The messages
// of a subgraph are repeated in the graphs around it.
func (t *Translator) deriveTool(id, name string, input json.RawMessage, node string, namespace []string) {
	isKnown := slices.ContainsFunc(t.tools.known[id], func(other []string) bool {
		shorter := min(len(other), len(namespace))
		return slices.Equal(other[:shorter], namespace[:shorter])
	})
	if !isKnown && !slices.ContainsFunc(t.tools.open, func(call openCall) bool { return call.id == id }) {
		t.startTool(id, name, input, node, namespace)
	}
}

// endTool ends a call once. It does nothing for a call that is not open. An agent of a framework
// ends a call in the namespace in which the call has begun.
func (t *Translator) endTool(id, node string, namespace []string, data map[string]any) {
	i := slices.IndexFunc(t.tools.open, func(call openCall) bool { return call.id == id && slices.Equal(call.namespace, namespace) })
	if i < 0 && !t.tools.steps {
		i = slices.IndexFunc(t.tools.open, func(call openCall) bool { return call.id == id })
	}
	if i < 0 {
		return
	}
	t.tools.open = slices.Delete(t.tools.open, i, i+1)
	t.emitTool(id, node, namespace, data)
}

// toolsCalled handles the calls that a model requests. They begin now if the agent does not
// report its tool calls.
func (t *Translator) toolsCalled(calls []toolCall, node string, namespace []string) {
	for _, call := range calls {
		if !t.tools.steps {
			t.deriveTool(call.ID, call.Name, call.Args, node, namespace)
		}
	}
}

// toolReturned handles the result of a call in a node's update, if the agent has not reported
// it.
func (t *Translator) toolReturned(head chunkHead, raw json.RawMessage, namespace []string) {
	call := t.tools.called[head.CallID]
	t.deriveTool(head.CallID, cmp.Or(call.Name, head.Name), call.Args, "", namespace)
	if head.Status == "error" {
		t.endTool(head.CallID, "", namespace, map[string]any{"event": "tool-error", "message": textOf(head.Content)})
		return
	}
	t.endTool(head.CallID, "", namespace, map[string]any{"event": "tool-finished", "output": raw})
}

// failTools ends open calls with an error.
func (t *Translator) failTools(which func(openCall) bool, why string) {
	for _, call := range slices.Clone(t.tools.open) {
		if which(call) {
			t.endTool(call.id, call.node, call.namespace, map[string]any{"event": "tool-error", "message": why})
		}
	}
}

var verbs = map[string]string{failed: "failed", interrupted: "was interrupted"}

package protocol

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/record"
)

// children are the subgraphs of a run, by their namespaces.
type children struct {
	// order are the open subgraphs in the order in which they began, names are the names of all
	// subgraphs.
	order [][]string
	names map[string]string
	// causes are the ids of the tool calls for which tasks were made, by the tasks' ids.
	causes map[string]string
}

// descend shows the beginning of each subgraph on the path to a namespace. If the run shows its
// tasks, a subgraph begins after its first state, as on the framework's servers: the first task
// names an agent.
func (t *Translator) descend(namespace []string, kind string, data json.RawMessage) {
	shown := len(namespace)
	if kind == run.EventValues && t.tools.steps {
		shown--
	}
	for i := range shown {
		path := namespace[:i+1]
		key := strings.Join(path, "|")
		if t.children.names[key] != "" {
			continue
		}
		name, task, _ := strings.Cut(path[i], ":")
		if kind == MethodTasks && i == len(namespace)-1 {
			name = cmp.Or(agentOf(data), name)
		}
		t.children.names[key] = name
		t.children.order = append(t.children.order, path)
		data := lifecycle{Event: started, GraphName: name}
		if call := t.children.causes[task]; call != "" {
			data.Cause = record.Encode(map[string]string{"type": "toolCall", "tool_call_id": call})
		}
		t.emit(Event{Method: MethodLifecycle, Namespace: path, Data: record.Encode(data)})
	}
}

// agentOf returns the name of the agent that a task belongs to, or "".
func agentOf(task json.RawMessage) string {
	var of struct {
		Metadata struct {
			Agent string `json:"lc_agent_name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(task, &of) != nil {
		return ""
	}
	return of.Metadata.Agent
}

// endSubgraph shows the end of a subgraph.
func (t *Translator) endSubgraph(path []string, event, failure string) {
	before := len(t.children.order)
	t.children.order = slices.DeleteFunc(t.children.order, func(other []string) bool { return slices.Equal(other, path) })
	if len(t.children.order) == before {
		return
	}
	name := t.children.names[strings.Join(path, "|")]
	t.emit(Event{Method: MethodLifecycle, Namespace: path, Data: record.Encode(lifecycle{Event: event, GraphName: name, Error: failure})})
}

// task handles the beginning or the end of a task. At the end of a task, the messages that it
// made are finished, and the subgraphs in it have ended.
func (t *Translator) task(data json.RawMessage, namespace []string) {
	t.tools.steps = true
	var task struct {
		ID         string            `json:"id"`
		Name       string            `json:"name"`
		Result     json.RawMessage   `json:"result"`
		Error      json.RawMessage   `json:"error"`
		Interrupts []json.RawMessage `json:"interrupts"`
		Input      json.RawMessage   `json:"input"`
	}
	if json.Unmarshal(data, &task) != nil {
		return
	}
	if task.Result == nil {
		t.cause(task.ID, task.Input)
		t.emit(Event{Method: MethodTasks, Namespace: namespace, Data: data})
		return
	}
	t.closeMessages(func(o origin) bool { return o.task != "" && o.task == task.ID }, false)
	if len(namespace) == 0 { // the next attempt may repeat a subgraph's task with its step
		t.messages.unkept = slices.DeleteFunc(t.messages.unkept, func(o origin) bool { return o.within(task.ID) })
	}
	t.emit(Event{Method: MethodTasks, Namespace: namespace, Data: data})
	event, failure := completed, ""
	switch {
	case len(task.Interrupts) > 0:
		event = interrupted
	case state.Present(task.Error) != nil:
		event, failure = failed, textOf(task.Error)
	}
	for _, path := range slices.Backward(slices.Clone(t.children.order)) { // the innermost first
		if len(path) <= len(namespace) || !slices.Equal(path[:len(namespace)], namespace) {
			continue
		}
		if _, id, _ := strings.Cut(path[len(namespace)], ":"); id == task.ID {
			t.endSubgraph(path, event, failure)
		}
	}
}

// cause notes the tool call for which a task is made: the task's input has it as a member, or is
// a list of calls.
func (t *Translator) cause(task string, input json.RawMessage) {
	type call struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	var of struct {
		Call call `json:"tool_call"`
	}
	var list []call
	if json.Unmarshal(input, &list) == nil && len(list) > 0 && list[0].Type == "tool_call" {
		of.Call = list[0]
	} else if json.Unmarshal(input, &of) != nil {
		return
	}
	if of.Call.ID != "" {
		t.children.causes[task] = of.Call.ID
	}
}

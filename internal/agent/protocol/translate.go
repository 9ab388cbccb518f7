package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// States is the store from which a Translator reads the states that the log only names.
type States interface {
	// Values returns the state that a "values" event names.
	Values(ctx context.Context, ref thread.Ref, event run.Event) (thread.State, error)
}

// Translator makes the events of one run. It is for one goroutine.
type Translator struct {
	states States
	run    run.Run
	filter Filter

	// position, index and at belong to the next event; out are the events of a part that the
	// reader wants.
	position int64
	index    int
	at       int64
	out      []Event
	size     int
	// remaining is how many events of the part are not translated yet, or are being translated.
	remaining int

	// begun says that the run's first lifecycle event was made.
	begun bool
	// first and newest are the run's first and newest "values" events, nil before these events.
	// earlier is the state at the first event, nil before it was read.
	first, newest *run.Event
	earlier       *state.Values

	messages *messages
	tools    *tools
	children *children
	// shownQuestions are the questions that were shown.
	shownQuestions map[string]bool
}

// NewTranslator returns the translator for one reader and one run. Translate must get the run
// from its first event on.
func NewTranslator(states States, r run.Run, filter Filter) *Translator {
	return &Translator{
		states: states, run: r, filter: filter, position: r.Start, shownQuestions: map[string]bool{},
		messages: &messages{shown: map[string]bool{}, inherited: map[string]bool{}, begun: map[string]bool{}},
		tools:    &tools{known: map[string][][]string{}, called: map[string]toolCall{}},
		children: &children{names: map[string]string{}, causes: map[string]string{}},
	}
}

// sendBytes is approximately how many bytes are held for a reader at a time: a part may name
// many large states.
const sendBytes = 64 << 10

// Translate hands the events of a part that the reader wants to send, several at a time. It
// calls send at least once, even if there are no events.
func (t *Translator) Translate(ctx context.Context, part run.Part, send func([]Event) error) error {
	for i, event := range part.Events {
		t.remaining = len(part.Events) - i
		t.position, t.index = event.Position, 0
		t.at = event.At.UnixMilli()
		if err := t.handle(ctx, event); err != nil {
			return err
		}
		if t.size > sendBytes {
			if err := t.flush(send); err != nil {
				return err
			}
		}
	}
	switch {
	case part.Early > 0:
		t.early(part)
	case part.Ended:
		t.end(part.Run)
	}
	return t.flush(send)
}

func (t *Translator) flush(send func([]Event) error) error {
	out := t.out
	t.out, t.size = nil, 0
	return send(out)
}

// emit numbers an event, and keeps it if the reader wants it.
func (t *Translator) emit(e Event) {
	e.Seq, e.At = Seq(t.position, t.index), t.at
	t.index++
	if e.ID == "" {
		e.ID = eventID(t.run.Run, e.Seq)
	}
	if t.filter.Wants(e) {
		if t.out == nil {
			t.out = make([]Event, 0, min(t.remaining, sendBytes/envelope))
		}
		t.out = append(t.out, e)
		t.size += len(e.Data)
	}
}

// Next returns a number such that no later event has a lower number.
func (t *Translator) Next() int64 { return Seq(t.position, t.index) }

// lifecycle is the data of a lifecycle event.
type lifecycle struct {
	Event     string          `json:"event"`
	GraphName string          `json:"graph_name"`
	Error     string          `json:"error,omitempty"`
	Cause     json.RawMessage `json:"cause,omitempty"`
	// Reason and the members of Refusal say why an answer to questions was refused.
	Reason string `json:"reason,omitempty"`
	*run.Refusal
}

// root emits a lifecycle event of the run itself.
func (t *Translator) root(event lifecycle) {
	event.GraphName = t.run.Graph
	t.emit(Event{ID: "synth:" + t.run.Run + ":" + event.Event, Method: MethodLifecycle, Data: record.Encode(event)})
}

// handle translates an event of the log.
func (t *Translator) handle(ctx context.Context, event run.Event) error {
	kind, path, within := strings.Cut(event.Name, "|")
	var namespace []string
	if within {
		namespace = strings.Split(path, "|")
	}
	if kind == run.EventMetadata {
		return t.begin(ctx)
	}
	t.descend(namespace, kind, event.Data)
	switch kind {
	case run.EventValues:
		return t.values(ctx, event, namespace)
	case run.EventUpdates:
		return t.updates(ctx, event.Data, namespace)
	case run.EventMessages:
		t.chunk(event.Data, namespace)
	case MethodTasks:
		t.task(event.Data, namespace)
	case MethodTools:
		t.tool(event.Data, namespace)
	case MethodCustom:
		t.custom(event.Data, namespace)
	}
	return nil
}

// checkpointData is the data of an event of the channel checkpoints.
type checkpointData struct {
	ID       string `json:"id"`
	ParentID string `json:"parent_id,omitempty"`
	Step     int64  `json:"step"`
	Source   string `json:"source"`
}

// values handles a "values" event. For the root graph, a checkpoint event comes before it.
func (t *Translator) values(ctx context.Context, event run.Event, namespace []string) error {
	if namespace != nil {
		t.messages.inherit(namespace, event.Data)
		if values := withoutQuestions(event.Data); values != nil {
			t.emit(Event{Method: MethodValues, Namespace: namespace, Data: values})
		}
		return nil
	}
	if len(event.Data) > 0 {
		return nil // it repeats the state beside the questions of a paused graph
	}
	if t.first == nil {
		t.first = &event
	}
	t.newest, t.messages.unkept = &event, nil
	return t.withState(ctx, event, 2, t.state)
}

// withState reads the state that a "values" event names for some events of it, the last two of
// which are a checkpoint and the state. It passes over events that the reader does not want, and
// over events of a thread that was pruned.
func (t *Translator) withState(ctx context.Context, named run.Event, events int, show func(thread.State)) error {
	end := t.index + events
	wants := func(method string, index int) bool {
		return t.filter.Wants(Event{Seq: Seq(t.position, index), Method: method})
	}
	if !wants(MethodCheckpoints, end-2) && !wants(MethodValues, end-1) {
		t.index = end
		return nil
	}
	st, err := t.states.Values(ctx, t.run.Ref.Ref, named)
	if fault.Is(err, fault.NotFound) {
		t.index = end
		return nil
	}
	if err == nil {
		show(st)
	}
	return err
}

// state shows a state, and its checkpoint before it.
func (t *Translator) state(shown thread.State) {
	at := shown.At
	t.emit(Event{Method: MethodCheckpoints, Data: record.Encode(checkpointData{ID: at.ID, ParentID: at.Parent(t.run.Ref.Ref), Step: at.Step, Source: string(at.Source)})})
	t.emit(Event{Method: MethodValues, Data: shown.Values.JSON()})
}

// withoutQuestions returns the state of a subgraph without its questions, which have events of
// their own. It returns nil for questions alone: JavaScript graphs repeat no state beside them, and
// an empty state would replace the state that readers have.
func withoutQuestions(values json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if !bytes.Contains(values, []byte(run.MemberQuestions)) || json.Unmarshal(values, &members) != nil {
		return values
	}
	delete(members, run.MemberQuestions)
	if len(members) == 0 {
		return nil
	}
	return record.Encode(members)
}

func (t *Translator) updates(ctx context.Context, data json.RawMessage, namespace []string) error {
	nodes, err := state.Members(data)
	if err != nil {
		return nil //nolint:nilerr // the runner has refused it, or it is of a subgraph that speaks of nothing
	}
	for _, node := range nodes {
		if node.Name == run.MemberQuestions {
			t.ask(node.Value, namespace)
			continue
		}
		if strings.HasPrefix(node.Name, "__") { // the framework says something about the updates
			continue
		}
		if err := t.replay(ctx, node, namespace); err != nil {
			return err
		}
		t.emit(Event{Method: MethodUpdates, Namespace: namespace, Node: node.Name, Data: node.Value})
	}
	return nil
}

// ask shows questions, each once.
func (t *Translator) ask(list json.RawMessage, namespace []string) {
	var questions []struct {
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	}
	if json.Unmarshal(list, &questions) != nil {
		return
	}
	for _, question := range questions {
		if question.ID == "" { // it has no id of its own, and is answered by the input of a run
			question.ID = eventID(t.run.Run, Seq(t.position, t.index))
		}
		if t.shownQuestions[question.ID] {
			continue
		}
		t.shownQuestions[question.ID] = true
		value := state.OrNull(question.Value)
		// The protocol has "payload"; a widely used client reads "value".
		t.emit(Event{Method: MethodRequested, Namespace: namespace, Data: record.Encode(map[string]any{
			"interrupt_id": question.ID, "payload": value, "value": value,
		})})
	}
}

// custom shows the data that a node wrote. Data with a name goes to the channel of this name,
// too.
func (t *Translator) custom(data json.RawMessage, namespace []string) {
	var named struct {
		Name *string `json:"name"`
	}
	e := Event{Method: MethodCustom, Namespace: namespace, Data: data}
	if !state.IsObject(data) || json.Unmarshal(data, &named) != nil || named.Name == nil {
		e.Data = record.Encode(map[string]json.RawMessage{"payload": data})
	} else {
		e.Name = *named.Name
	}
	t.emit(e)
}

// end closes everything that is open, and shows how the run ended.
func (t *Translator) end(r run.Run) {
	if !t.begun {
		return
	}
	t.index, t.at = closing, r.Updated.UnixMilli()
	outcome := outcomeOf(r)
	status := outcome.Event
	t.closeMessages(func(origin) bool { return true }, status != completed)
	if status != completed && r.Interrupts == nil {
		t.failTools(func(openCall) bool { return true }, "The run "+verbs[status]+" before the tool had ended.")
	}
	t.failTools(func(call openCall) bool { return call.left }, "The tool was cut off, and the run called it no more.")
	for _, path := range slices.Backward(slices.Clone(t.children.order)) { // the innermost first
		t.endSubgraph(path, status, "")
	}
	t.index = ended
	t.root(outcome)
}

// Names of lifecycle events.
const (
	started     = "started"
	running     = "running"
	completed   = "completed"
	failed      = "failed"
	interrupted = "interrupted"
)

// unknownInterrupt is the reason of the lifecycle event of a run that was refused.
const unknownInterrupt = "unknown_interrupt"

// outcomeOf returns the lifecycle event with which a run ended.
func outcomeOf(r run.Run) lifecycle {
	switch {
	case r.Status == run.Success && r.Interrupts == nil:
		return lifecycle{Event: completed}
	case r.Status != run.Error && r.Status != run.Timeout:
		return lifecycle{Event: interrupted}
	case r.Failure == nil:
		return lifecycle{Event: failed, Error: string(r.Status)}
	case r.Refusal != nil:
		return lifecycle{Event: failed, Error: r.Failure.Message, Reason: unknownInterrupt, Refusal: r.Refusal}
	}
	return lifecycle{Event: failed, Error: r.Failure.Message}
}

// early shows the lifecycle of a run that ended before a worker took it up.
func (t *Translator) early(part run.Part) {
	t.position, t.index, t.at = part.Position, ended+2*part.Early-1, part.Run.Updated.UnixMilli()
	t.root(lifecycle{Event: running})
	t.root(outcomeOf(part.Run))
}

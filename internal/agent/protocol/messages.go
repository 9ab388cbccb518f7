package protocol

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// messages are the messages that a run has shown.
type messages struct {
	// open are the open messages in the order in which they began, shown are the ids of all
	// messages.
	open  []*message
	shown map[string]bool
	// inherited are the ids of the messages with which subgraphs began in this run: a subgraph that
	// goes on after a question has the messages that an earlier run has shown. begun are the
	// namespaces of these subgraphs.
	inherited, begun map[string]bool
	// unkept are the messages of steps of the root graph that the next attempt may repeat: they
	// had not finished at the newest "values" event, and have returned nothing since.
	unkept []origin
}

// origin is a message's id, and the node and task that make the message.
type origin struct {
	id, node  string
	namespace []string
	// task is the id of the task that makes the message, "" if the agent does not name it.
	task string
}

// within reports whether a task of the root graph makes the message, itself or in a subgraph.
func (o origin) within(task string) bool {
	return task != "" && (o.task == task || (len(o.namespace) > 0 && strings.HasSuffix(o.namespace[0], ":"+task)))
}

// message is a message that has begun and not finished.
type message struct {
	origin

	blocks []*block
	usage  any
	// reason is why the message ended, "" if the agent does not name a reason.
	reason string
	// response is what the model's provider says about its response, nil if it says nothing.
	response map[string]any
	// added is what the provider adds to the message beside its contents, nil if it adds nothing.
	added map[string]any
	// nameless says that the agent gave the message no id.
	nameless bool
	// plain is what the chunks of the message repeat, found in one of the first learnt chunks.
	plain  plain
	learnt int
}

// chunkHead holds the members that are read of a message, or of a piece of a message.
type chunkHead struct {
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Content  json.RawMessage   `json:"content"`
	Pieces   []json.RawMessage `json:"tool_call_chunks"`
	Calls    []toolCall        `json:"tool_calls"`
	Usage    json.RawMessage   `json:"usage_metadata"`
	Response json.RawMessage   `json:"response_metadata"`
	Added    json.RawMessage   `json:"additional_kwargs"`
	Position string            `json:"chunk_position"`
	CallID   string            `json:"tool_call_id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
}

// about is the metadata that an agent sends beside a message. Frameworks put their own name
// before the names of members.
type about struct {
	node string
	// task is the id of the task that makes the message.
	task string
	// shown is the metadata that clients get.
	shown map[string]json.RawMessage
}

// aboutOf reads the metadata of a chunk.
func aboutOf(metadata json.RawMessage) (a about) {
	var members map[string]json.RawMessage
	if json.Unmarshal(metadata, &members) != nil {
		return a
	}
	a.shown = map[string]json.RawMessage{}
	for name, value := range members {
		switch {
		case strings.HasSuffix(name, "graph_node"):
			a.node, a.shown[name] = textOf(value), value
		case strings.HasSuffix(name, "_checkpoint_ns"):
			ns := textOf(value)
			_, a.task, _ = strings.Cut(ns[strings.LastIndexByte(ns, '|')+1:], ":")
		case name == "ls_provider":
			a.shown["provider"] = value
		case name == "ls_model_name":
			a.shown["model"] = value
		}
	}
	return a
}

// role returns the role of the message's author, from the message's type.
func (h chunkHead) role() string {
	kind := strings.ToLower(strings.TrimSuffix(h.Type, "MessageChunk"))
	switch kind {
	case "", "ai", "assistant":
		return "ai"
	case "user":
		return "human"
	}
	return kind
}

// chunk handles a piece of a message, or a whole message. Some frameworks give both the same
// type, so a message finishes at the latest when its node finishes. Results of tools have a
// channel of their own, and what removes messages is seen in the state only.
func (t *Translator) chunk(data json.RawMessage, namespace []string) {
	if t.plainChunk(data, namespace) {
		return
	}
	var head chunkHead
	var beside json.RawMessage
	pair := []any{&head, &beside}
	if json.Unmarshal(data, &pair) != nil || len(pair) != 2 || beside == nil || head.role() == "tool" || head.role() == "remove" {
		return
	}
	m := t.messages.find(head.ID)
	if m == nil {
		if head.ID != "" && t.messages.shown[head.ID] {
			return // the whole message was shown already
		}
		info := aboutOf(beside)
		if head.ID == "" {
			m = t.messages.findNameless(info.node, namespace)
		}
		if m == nil {
			m = t.startMessage(head, info, namespace)
		}
	}
	t.addTo(m, head, false)
	m.learn(data, head)
	if head.Position == "last" {
		t.finishMessage(m, false)
	}
}

// find returns the open message with an id.
func (s *messages) find(id string) *message {
	for _, m := range s.open {
		if id != "" && m.id == id {
			return m
		}
	}
	return nil
}

// findNameless returns the open message of a node whose agent gives messages no ids.
func (s *messages) findNameless(node string, namespace []string) *message {
	for _, m := range s.open {
		if m.nameless && m.node == node && slices.Equal(m.namespace, namespace) {
			return m
		}
	}
	return nil
}

// emitMessage emits an event of a message. Clients use any of the id, the run_id and the node
// to distinguish messages that come at the same time.
func (t *Translator) emitMessage(m *message, data map[string]any) {
	data["id"], data["run_id"] = m.id, m.id
	t.emit(Event{Method: MethodMessages, Namespace: m.namespace, Node: m.node, Data: record.Encode(data)})
}

func (t *Translator) startMessage(head chunkHead, info about, namespace []string) *message {
	m := &message{origin: origin{id: head.ID, node: info.node, task: info.task, namespace: namespace}}
	if m.id == "" {
		m.id, m.nameless = eventID(t.run.Run, Seq(t.position, t.index)), true
	}
	t.messages.open, t.messages.unkept = append(t.messages.open, m), append(t.messages.unkept, m.origin)
	t.messages.shown[m.id] = true
	start := map[string]any{"event": "message-start", "role": head.role()}
	if len(info.shown) > 0 {
		start["metadata"] = info.shown
	}
	t.emitMessage(m, start)
	return m
}

// addTo adds the contents of a chunk, or of a whole message, to the message.
func (t *Translator) addTo(m *message, head chunkHead, whole bool) {
	var text string
	var parts []json.RawMessage
	if json.Unmarshal(head.Content, &text) == nil {
		t.addText(m, "text", blockText, text)
	} else if json.Unmarshal(head.Content, &parts) == nil {
		for i, part := range parts {
			t.addPart(m, part, i, whole)
		}
	}
	for _, piece := range head.Pieces {
		t.addCall(m, piece)
	}
	if len(head.Pieces) == 0 {
		for _, call := range head.Calls {
			if m.has(call.ID) {
				continue // the pieces of this call came before
			}
			t.addCall(m, record.Encode(map[string]any{"id": call.ID, "name": call.Name, "args": string(call.Args)}))
		}
	}
	if usage, ok := state.DecodePiece(head.Usage).(map[string]any); ok {
		m.usage = state.MergePieces(m.usage, usage)
	}
	m.reason = cmp.Or(head.reason(), m.reason)
	m.response = joined(m.response, membersOf(head.Response))
	m.added = joined(m.added, membersOf(head.Added))
}

// membersOf returns the members of a piece that is an object, nil for other pieces and for an empty
// object.
func membersOf(piece json.RawMessage) map[string]any {
	if len(piece) <= len("{}") { // most chunks have nothing here
		return nil
	}
	members, _ := state.DecodePiece(piece).(map[string]any)
	return members
}

// joined adds the members of a later piece to those of the earlier pieces.
func joined(earlier, later map[string]any) map[string]any {
	if earlier == nil {
		return later
	}
	state.MergePieces(earlier, later)
	return earlier
}

// reasons maps the reasons of model providers for the end of a message to the reasons of the
// protocol.
var reasons = map[string]string{
	"length": "length", "max_tokens": "length", "MAX_TOKENS": "length",
	"tool_calls": "tool_use", "tool_use": "tool_use", "function_call": "tool_use",
	"content_filter": "content_filter", "refusal": "content_filter", "SAFETY": "content_filter",
}

// reason returns why the message ended, "" if the chunk does not say why.
func (h chunkHead) reason() string {
	var response struct {
		FinishReason string `json:"finish_reason"`
		StopReason   string `json:"stop_reason"`
	}
	if json.Unmarshal(state.OrNull(h.Response), &response) != nil {
		return ""
	}
	if reason := cmp.Or(response.FinishReason, response.StopReason); reason != "" {
		return cmp.Or(reasons[reason], stop)
	}
	return ""
}

// stop is the reason of a message that is complete.
const stop = "stop"

// finishMessage finishes a message. A message that was cut off has no reason.
func (t *Translator) finishMessage(m *message, cut bool) {
	t.messages.open = slices.DeleteFunc(t.messages.open, func(other *message) bool { return other == m })
	for i, b := range m.blocks {
		t.emitMessage(m, map[string]any{"event": "content-block-finish", "index": i, "content": b.final()})
	}
	finish := map[string]any{"event": "message-finish"}
	if !cut {
		finish["reason"] = cmp.Or(m.reason, stop)
	}
	if m.usage != nil {
		finish["usage"] = m.usage
	}
	if len(m.response) > 0 {
		finish["metadata"] = m.response
	}
	if len(m.added) > 0 {
		finish["additional_kwargs"] = m.added
	}
	t.emitMessage(m, finish)
}

// closeMessages finishes open messages.
func (t *Translator) closeMessages(which func(origin) bool, cut bool) {
	for _, m := range slices.Clone(t.messages.open) {
		if which(m.origin) {
			t.finishMessage(m, cut)
		}
	}
}

// replay handles the messages that a node has returned. It finishes messages that were
// streamed. It shows other messages, and the results of tools, at once. A node may return
// messages of earlier runs, too.
func (t *Translator) replay(ctx context.Context, node state.Member, namespace []string) error {
	var added struct {
		Messages json.RawMessage `json:"messages"`
	}
	if !state.IsObject(node.Value) || json.Unmarshal(node.Value, &added) != nil {
		return nil //nolint:nilerr // a node may return something else than messages
	}
	for _, raw := range state.OneOrMany(added.Messages) {
		var head chunkHead
		if json.Unmarshal(raw, &head) != nil {
			continue
		}
		if role := head.role(); role != "ai" && role != "tool" {
			continue
		}
		for _, call := range head.Calls {
			t.tools.called[call.ID] = call
		}
		if isEarlier, err := t.isEarlier(ctx, head); err != nil {
			return err
		} else if isEarlier {
			continue
		}
		if head.role() == "tool" {
			t.toolReturned(head, raw, namespace)
			continue
		}
		t.replayOne(head, node.Name, namespace)
		t.toolsCalled(head.Calls, node.Name, namespace)
	}
	// If an agent does not name the task of a message, the node's messages are finished now.
	returned := func(o origin) bool {
		return o.task == "" && o.node == node.Name && slices.Equal(o.namespace, namespace)
	}
	t.closeMessages(returned, false)
	if len(namespace) == 0 {
		t.messages.unkept = slices.DeleteFunc(t.messages.unkept, returned)
	}
	return nil
}

// inherit notes the messages of the first state of a subgraph.
func (s *messages) inherit(namespace []string, values json.RawMessage) {
	key := strings.Join(namespace, "|")
	if s.begun[key] {
		return
	}
	s.begun[key] = true
	var first struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
	}
	if json.Unmarshal(values, &first) != nil {
		return // the subgraph has no messages, or calls something else so
	}
	for _, message := range first.Messages {
		s.inherited[message.ID] = true
	}
}

// isEarlier reports whether a message that a node has returned was in the state before the
// run, or before a subgraph began, and was not shown in the run.
func (t *Translator) isEarlier(ctx context.Context, head chunkHead) (bool, error) {
	if head.ID == "" || t.messages.shown[head.ID] || len(t.tools.known[head.CallID]) > 0 {
		return false, nil
	}
	if t.messages.inherited[head.ID] {
		return true, nil
	}
	earlier, err := t.before(ctx)
	return err == nil && earlier.Has(head.ID), err
}

// replayOne finishes a message that was streamed, and shows any other message as a whole.
func (t *Translator) replayOne(head chunkHead, node string, namespace []string) {
	if head.ID == "" {
		return // the state gives it an id, so it may be known already
	}
	if m := t.messages.find(head.ID); m != nil {
		m.reason = cmp.Or(m.reason, head.reason())
		if whole := membersOf(head.Response); len(whole) > 0 {
			m.response = whole
		}
		if whole := membersOf(head.Added); len(whole) > 0 {
			m.added = whole
		}
		t.finishMessage(m, false)
		return
	}
	if t.messages.shown[head.ID] {
		return
	}
	m := t.startMessage(head, about{node: node}, namespace)
	t.addTo(m, head, true)
	t.finishMessage(m, false)
}

// before returns the state from which the run began: earlier runs have shown the messages in
// it.
func (t *Translator) before(ctx context.Context) (state.Values, error) {
	if t.earlier != nil {
		return *t.earlier, nil
	}
	var earlier thread.State
	if t.first != nil {
		var err error
		earlier, err = t.states.Values(ctx, t.run.Ref.Ref, *t.first)
		// The state of a thread that was pruned is empty.
		if err != nil && !fault.Is(err, fault.NotFound) {
			return state.Values{}, err
		}
	}
	t.earlier = &earlier.Values
	return earlier.Values, nil
}

package protocol

import (
	"context"
	"encoding/json"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/record"
)

// begin handles the beginning of an attempt. A later attempt repeats the steps that the
// previous attempt had not finished.
func (t *Translator) begin(ctx context.Context) error {
	if t.begun {
		return t.beginAgain(ctx)
	}
	t.begun = true
	t.root(lifecycle{Event: running})
	if len(t.run.Answers) == 0 {
		t.index++
		return nil
	}
	t.emit(Event{Method: MethodAnswered, Data: record.Encode(map[string]any{"interrupt_ids": t.run.Answers})})
	return nil
}

// beginAgain removes the messages of the steps that are repeated. The attempt may show them
// again, under the same ids or other ids.
func (t *Translator) beginAgain(ctx context.Context) error {
	for i := range t.tools.open {
		t.tools.open[i].left = true
	}
	var gone []string
	take := func(id string) {
		if t.messages.shown[id] {
			gone = append(gone, id)
		}
		delete(t.messages.shown, id)
	}
	for _, m := range t.messages.open {
		take(m.id)
	}
	for _, o := range t.messages.unkept {
		take(o.id)
	}
	t.closeMessages(func(origin) bool { return true }, true)
	t.messages.unkept = nil
	if len(gone) == 0 || t.newest == nil {
		return nil
	}
	return t.removeMessages(ctx, gone)
}

// removeMessages shows that messages are gone. The protocol has no event for this, and clients keep
// a message that no state has contained. So the newest state is shown with the removals of the
// messages, in the form in which the framework removes messages, and then as it is. The first
// of these states has no checkpoint: a client may take a state with a checkpoint for an older
// state than its own, and then removes nothing.
func (t *Translator) removeMessages(ctx context.Context, ids []string) error {
	return t.withState(ctx, *t.newest, 3, func(newest thread.State) {
		if removal := removing(newest.Values.JSON(), ids); removal != nil {
			t.emit(Event{Method: MethodValues, Data: removal})
		} else {
			t.index++
		}
		t.state(newest)
	})
}

// removing returns a state with the removals of messages behind its messages, nil if the state
// has no messages.
func removing(values json.RawMessage, ids []string) json.RawMessage {
	var members map[string]json.RawMessage
	var messages []json.RawMessage
	if json.Unmarshal(values, &members) != nil || json.Unmarshal(members["messages"], &messages) != nil {
		return nil
	}
	for _, id := range ids {
		messages = append(messages, record.Encode(map[string]string{"type": "remove", "id": id}))
	}
	members["messages"] = record.Encode(messages)
	return record.Encode(members)
}

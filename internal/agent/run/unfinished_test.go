package run_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// showAs shows a chunk of a message that a node writes, as an event with the given name.
func showAs(a *run.Attempt, name, node, id, text string) {
	a.Show(name, json.RawMessage(fmt.Sprintf(`[{"id":%q,"type":"AIMessageChunk","content":%q},{"graph_node":%q}]`, id, text, node)))
}

// update shows the update of a node.
func (f *fixture) update(a *run.Attempt, node, update string) {
	f.t.Helper()
	f.must(a.Update(run.EventUpdates, json.RawMessage(fmt.Sprintf(`{%q:%s}`, node, update))))
}

// TestOnlyStepsUnderWayLeaveText interrupts runs of agents that report which messages are
// unfinished, and of agents that do not.
func TestOnlyStepsUnderWayLeaveText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		work func(f *fixture, a *run.Attempt)
		want []string
	}{
		"a planner that has finished without a message": {func(f *fixture, a *run.Attempt) {
			showAs(a, run.EventMessages, "plan", "p", "{}")
			f.update(a, "plan", `{"plan":{}}`)
			showAs(a, run.EventMessages, "talk", "m", "Hel")
		}, []string{"ai Hel..."}},
		"a node that has finished with another message": {func(f *fixture, a *run.Attempt) {
			showAs(a, run.EventMessages, "talk", "p", "draft")
			f.update(a, "talk", `{"messages":[{"type":"ai","id":"m","content":"final"}]}`)
		}, []string{"ai final"}},
		"a node that begins again": {func(f *fixture, a *run.Attempt) {
			showAs(a, run.EventMessages, "talk", "p", "draft")
			f.update(a, "talk", `{"n":1}`)
			showAs(a, run.EventMessages, "talk", "m", "Hel")
		}, []string{"ai Hel..."}},
		"the whole state": {func(f *fixture, a *run.Attempt) {
			showAs(a, run.EventMessages, "talk", "p", "draft")
			f.must(a.Values(json.RawMessage(`{"messages":[{"type":"human","id":"one","content":"one"}]}`)))
		}, nil},
		"a subgraph of which nobody says where its messages go": {func(_ *fixture, a *run.Attempt) {
			showAs(a, run.EventMessages+"|inner:1", "talk", "m", "Hel")
		}, nil},
		"a state without messages": {func(f *fixture, a *run.Attempt) {
			f.must(a.Values(json.RawMessage(`{"topic":"x"}`)))
			showAs(a, run.EventMessages, "talk", "m", "Hel")
		}, nil},
		"told: one of two messages": {func(f *fixture, a *run.Attempt) {
			a.Unfinished(nil)
			showAs(a, run.EventMessages, "title", "t", "A ti")
			a.Unfinished([]graph.Unfinished{{ID: "m", Node: "talk"}})
			showAs(a, run.EventMessages, "talk", "m", "Hel")
			showAs(a, run.EventMessages, "title", "t", "tle")
			showAs(a, run.EventMessages, "talk", "m", "lo")
		}, []string{"ai Hello..."}},
		"told: a message of a subgraph": {func(f *fixture, a *run.Attempt) {
			a.Unfinished(nil)
			a.Unfinished([]graph.Unfinished{{ID: "m", Node: "outer"}})
			showAs(a, run.EventMessages+"|outer:1", "talk", "m", "Hel")
		}, []string{"ai Hel..."}},
		"told: a message that was finished": {func(f *fixture, a *run.Attempt) {
			a.Unfinished([]graph.Unfinished{{ID: "m", Node: "talk"}})
			showAs(a, run.EventMessages, "talk", "m", "Hello")
			f.update(a, "talk", `{"plan":"Hello"}`)
			a.Unfinished(nil)
		}, nil},
		"told: a branch of two with one name": {func(f *fixture, a *run.Attempt) {
			a.Unfinished([]graph.Unfinished{{ID: "m", Node: "talk"}, {ID: "n", Node: "talk"}})
			showAs(a, run.EventMessages, "talk", "m", "one")
			showAs(a, run.EventMessages, "talk", "n", "two")
			f.update(a, "talk", `{"plan":"one"}`)
			a.Unfinished([]graph.Unfinished{{ID: "n", Node: "talk"}})
		}, []string{"ai two..."}},
		"told: more messages than are remembered": {func(f *fixture, a *run.Attempt) {
			var all []graph.Unfinished
			for i := range 300 {
				all = append(all, graph.Unfinished{ID: fmt.Sprint("m", i), Node: "talk"})
			}
			a.Unfinished(all)
			showAs(a, run.EventMessages, "talk", "m0", "the oldest")
			showAs(a, run.EventMessages, "talk", "m299", "the newest")
		}, []string{"ai the newest..."}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			_, a := f.started("one")
			test.work(f, a)
			f.flush(a)
			f.create("two", run.Interrupt)
			if diff := cmp.Diff(append([]string{"human one"}, test.want...), withHuman(f.messages())); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// withHuman adds the question to messages of a state that its agent has emptied.
func withHuman(messages []string) []string {
	if len(messages) == 0 {
		return []string{"human one"}
	}
	return messages
}

// TestTextOfAnEarlierAttemptIsKept checks that the text is kept until a later attempt has
// written a message in its place.
func TestTextOfAnEarlierAttemptIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("one")
	a.Unfinished([]graph.Unfinished{{ID: "m", Node: "talk"}})
	showAs(a, run.EventMessages, "talk", "m", "Hello")
	f.flush(a)
	b := f.claim(r)
	b.Unfinished(nil)
	b.Unfinished([]graph.Unfinished{{ID: "n", Node: "talk"}})
	showAs(b, run.EventMessages, "talk", "n", "Good")
	f.flush(b)
	f.create("two", run.Interrupt)
	if diff := cmp.Diff([]string{"human one", "ai Hello...", "ai Good..."}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestAnAgentsOwnErrorLeavesNothing checks that nothing of the failed step is kept; the
// updates that its finished steps returned stay.
func TestAnAgentsOwnErrorLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("one")
	f.update(a, "greet", `{"messages":[{"type":"ai","id":"g","content":"Hi"}]}`)
	showAs(a, run.EventMessages, "talk", "m", "Hel")
	f.must(a.Finish(t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E"}, ByAgent: true}))
	if diff := cmp.Diff([]string{"human one", "ai Hi"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

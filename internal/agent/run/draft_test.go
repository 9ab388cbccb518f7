package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// beyond is a text that a state with the limit smallBody cannot hold.
var beyond = strings.Repeat("x", smallBody+1)

// wantTooLarge checks that a change is refused because the state cannot hold it.
func wantTooLarge(t *testing.T, err error) {
	t.Helper()
	if _, full := errors.AsType[*thread.TooLargeError](err); !full {
		t.Errorf("got %v, want a TooLargeError", err)
	}
}

// ended finishes an attempt and returns the names and data of the run's events.
func (f *fixture) ended(a *run.Attempt) (events []string) {
	f.t.Helper()
	f.finish(a)
	f.must(f.runs.Shown(f.t.Context(), f.get(a.Run), func(some []run.Event) error {
		for _, event := range some {
			events = append(events, fmt.Sprintf("%s@%d %s", event.Name, event.Checkpoint, event.Data))
		}
		return nil
	}))
	return events
}

// TestAnUpdateThatIsTooLargeChangesNothing checks that no part of such an event stays: not its
// first node, not its event, not the text that it would have finished. The attempt goes on as if
// the event had not come.
func TestAnUpdateThatIsTooLargeChangesNothing(t *testing.T) {
	t.Parallel()
	attempts := map[bool][]string{}
	for _, refuses := range []bool{false, true} {
		f := newSmallFixture(t)
		_, a := f.started("hello")
		f.answer(a, "one", "fine")
		show(a, "two", "open")
		if refuses {
			wantTooLarge(t, a.Update(run.EventUpdates, json.RawMessage(`{"first":{"n":1},"agent":{"text":"`+beyond+`"}}`)))
			wantTooLarge(t, a.Values(json.RawMessage(`{"messages":[],"text":"`+beyond+`"}`)))
		}
		f.answer(a, "three", "fine, too")
		attempts[refuses] = append(f.ended(a)[1:], f.messages()...)
		attempts[refuses] = append(attempts[refuses], fmt.Sprint(f.thread().Lock.Checkpoint, a.Run.Position, a.Run.Unfinished))
	}
	if diff := cmp.Diff(attempts[false], attempts[true]); diff != "" {
		t.Errorf("an attempt without such an event, and with it (-without +with):\n%s", diff)
	}
}

// TestACheckpointThatIsTooLargeChangesNothing is the same for an agent that keeps checkpoints. The
// next run of the thread gets the agent's data of the events that were not refused.
func TestACheckpointThatIsTooLargeChangesNothing(t *testing.T) {
	t.Parallel()
	attempts := map[bool][]string{}
	for _, refuses := range []bool{false, true} {
		f := newSmallFixture(t)
		_, a := f.started("hello")
		root := func(id, values string) graph.Checkpoint {
			return graph.Checkpoint{ID: id, Values: json.RawMessage(values), Data: []byte("data of " + id)}
		}
		sub := graph.Checkpoint{ID: "sub", NS: "ns", Persistent: true, Values: json.RawMessage(`{"s":1}`), Data: []byte("data of sub")}
		f.must(a.Checkpoint(root("c1", `{"n":1}`)))
		f.must(a.Checkpoint(sub))
		f.must(a.Writes(graph.Writes{CheckpointID: "c1", TaskID: "task", Data: []byte("results")}))
		if refuses {
			large := root("c2", `{"n":2,"text":"`+beyond+`"}`)
			wantTooLarge(t, a.Checkpoint(large))
			large = root("c2", `{"n":2}`)
			large.Data = []byte(beyond)
			wantTooLarge(t, a.Checkpoint(large))
			large = root("c1", `{"n":1}`)
			large.Tasks = json.RawMessage(`[{"id":"task","result":"` + beyond + `"}]`)
			wantTooLarge(t, a.Checkpoint(large))
			large = sub
			large.Data = []byte(beyond)
			wantTooLarge(t, a.Checkpoint(large))
			wantTooLarge(t, a.Writes(graph.Writes{CheckpointID: "c1", TaskID: "task", Data: []byte(beyond)}))
		}
		f.must(a.Writes(graph.Writes{CheckpointID: "c1", TaskID: "task 2", Data: []byte("more results")}))
		f.flush(a)
		got := []string{jsonOf(t, a.Log.Checkpoints())}
		f.must(a.Checkpoint(root("c2", `{"n":2}`)))
		f.must(a.Writes(graph.Writes{CheckpointID: "c2", TaskID: "task 3", Data: []byte("results")}))
		got = append(got, f.ended(a)[1:]...)
		_, next := f.started("again")
		checkpoint, items := next.Log.AgentEnd()
		attempts[refuses] = append(got, jsonOf(t, next.Log.Checkpoints()), fmt.Sprint(checkpoint, items, f.messages()))
	}
	if diff := cmp.Diff(attempts[false], attempts[true]); diff != "" {
		t.Errorf("an attempt without such events, and with them (-without +with):\n%s", diff)
	}
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	check.Must(t, err)
	return string(text)
}

// TestAnEventOfTheExecutionIsNoStep checks events that may come before the first checkpoint of an
// agent that keeps checkpoints. Readers see no values but those of its checkpoints. If the agent
// turns out to keep none, they see the run's input before its first change of the state.
func TestAnEventOfTheExecutionIsNoStep(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"events", "events|sub", "tasks", "checkpoints", "debug"} {
		f := newFixture(t)
		_, a := f.started("hello")
		a.Show(kind, json.RawMessage("1"))
		f.flush(a)
		f.must(a.Checkpoint(graph.Checkpoint{ID: "c0", Metadata: json.RawMessage(`{"source":"input"}`), Values: json.RawMessage(`{"n":[]}`)}))
		f.must(a.Checkpoint(graph.Checkpoint{ID: "c1", Values: json.RawMessage(`{"n":[1]}`)}))
		if diff := cmp.Diff([]string{kind + "@0 1", "values@2 "}, f.ended(a)[1:]); diff != "" {
			t.Errorf("an agent with checkpoints (-want +got):\n%s", diff)
		}

		f = newFixture(t)
		_, a = f.started("hello")
		a.Show(kind, json.RawMessage("1"))
		f.must(a.Update(run.EventUpdates, json.RawMessage(`{"agent":{"n":1}}`)))
		want := []string{kind + "@0 1", "values@0 ", `updates@0 {"agent":{"n":1}}`, "values@1 "}
		if diff := cmp.Diff(want, f.ended(a)[1:]); diff != "" {
			t.Errorf("an agent without checkpoints (-want +got):\n%s", diff)
		}
	}
}

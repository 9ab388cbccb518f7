package thread_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// updated stores a checkpoint of the server's own with updates that the agent has to make itself.
func updated(t *testing.T, m *meter, log thread.Log, updates ...string) thread.Log {
	t.Helper()
	change := thread.Change{Source: thread.SourceUpdate, Values: log.Values}
	for _, update := range updates {
		change.Pending = append(change.Pending, graph.StateUpdate{Values: json.RawMessage(update), AsNode: "n"})
	}
	next, writes, err := log.Apply(start, change)
	check.Must(t, err)
	check.Must(t, m.Transact(t.Context(), writes...))
	return next
}

// TestABranchHasItsOwnUpdates checks that the agent gets the updates on the way to a checkpoint,
// each once, and none of another branch.
func TestABranchHasItsOwnUpdates(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := newLog()
	log = updated(t, m, log, `{"a":1}`, `{"a":2}`)
	log = updated(t, m, log, `{"a":3}`)
	log = updated(t, m, log, `{"other":4}`)
	pending := func(at thread.Checkpoint) (updates []graph.StateUpdate) {
		updates, err := s.Pending(t.Context(), ref, at, "")
		check.Must(t, err)
		return updates
	}
	from := stateAt(t, s, ref, 1)
	branch := thread.NewLog(ref, from).Fork(log.At.Number, pending(from.At))
	branch = updated(t, m, branch, `{"a":5}`)
	branch = updated(t, m, branch, `{"a":6}`)
	var got []string
	for _, update := range pending(branch.At) {
		got = append(got, string(update.Values))
	}
	if diff := cmp.Diff([]string{`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":5}`, `{"a":6}`}, got); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
}

// TestACheckpointOfTheAgentReplacesTheServersBeforeIt checks which checkpoints of the server the
// history shows after a checkpoint of the agent: none that the agent's checkpoint contains, but
// all if the agent's checkpoint begins a branch.
func TestACheckpointOfTheAgentReplacesTheServersBeforeIt(t *testing.T) {
	t.Parallel()
	for from, want := range map[int64][]int64{
		2: {3},
		1: {3, 2, 1, 0, -1},
	} {
		s, m := newStore(t)
		ref, log := newLog()
		for i := range 3 {
			log = updated(t, m, log, fmt.Sprintf(`{"a":%d}`, i))
		}
		next, err := s.ReadFrame(t.Context(), thread.NewLog(ref, stateAt(t, s, ref, from)).Fork(log.At.Number, nil))
		check.Must(t, err)
		_, writes := apply(t, next, thread.Change{Agent: &graph.Checkpoint{ID: "own", Values: json.RawMessage(`{}`)}})
		check.Must(t, m.Transact(t.Context(), writes...))
		found, err := s.History(t.Context(), ref, thread.Newest, 100, nil)
		check.Must(t, err)
		var got []int64
		for _, one := range found {
			got = append(got, one.Number)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("behind checkpoint %d: checkpoints (-want +got):\n%s", from, diff)
		}
	}
}

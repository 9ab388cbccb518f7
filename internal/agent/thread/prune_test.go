package thread_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAPruningKeepsTheNewestOfALastingSubgraph checks that a pruning erases the earlier checkpoints
// of a subgraph that lasts, and that the agent still gets the newest one.
func TestAPruningKeepsTheNewestOfALastingSubgraph(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := agentLog(t, s)
	_, err := s.Create(t.Context(), ref, nil, nil, false)
	check.Must(t, err)
	const roots = 10
	random := rand.NewChaCha8([32]byte{})
	var data []byte
	for i := range roots {
		data = make([]byte, 16<<10)
		_, err := random.Read(data)
		check.Must(t, err)
		c := graph.Checkpoint{ID: fmt.Sprint("lasting", i), NS: "lasting", Values: json.RawMessage(`{}`), Data: data, Persistent: true}
		next, writes, err := log.Subgraph(start, c)
		check.Must(t, err)
		next, more := apply(t, next, thread.Change{Agent: &graph.Checkpoint{ID: fmt.Sprint("root", i), Values: json.RawMessage(`{}`)}})
		log = next
		check.Must(t, m.Transact(t.Context(), append(writes, more...)...))
	}
	of, err := s.Get(t.Context(), ref)
	check.Must(t, err)
	of.Lock.Checkpoint = roots - 1
	check.Must(t, s.Prune(t.Context(), of))

	kept, err := table.AllItems(t.Context(), m, keys.KeptFrames(ref.Workspace, ref.Deployment, ref.Thread, "lasting", roots))
	check.Must(t, err)
	if len(kept) > 2 {
		t.Errorf("%d of %d checkpoints of the subgraph are left", len(kept), roots)
	}
	read, err := s.ReadFrame(t.Context(), thread.NewLog(ref, stateAt(t, s, ref, roots-1)))
	check.Must(t, err)
	if got := read.Checkpoints().Checkpoints; len(got) != 2 || !bytes.Equal(got[1].Data, data) {
		t.Errorf("the agent gets %d checkpoints, and the subgraph's is not the newest", len(got))
	}
}

// TestTheSubgraphsOfAPrunedCheckpointAreGone checks this for a checkpoint of the agent behind which
// the server has made a checkpoint, for example for the shown output of an interrupted run. The
// pruning keeps only the server's checkpoint, but the subgraphs are stored as differences to the
// agent's.
func TestTheSubgraphsOfAPrunedCheckpointAreGone(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := agentLog(t, s)
	_, err := s.Create(t.Context(), ref, nil, nil, false)
	check.Must(t, err)
	values := func(messages string) json.RawMessage { return json.RawMessage(`{"messages":[` + messages + `]}`) }
	change := func(raw json.RawMessage) thread.Change {
		next, patch, err := log.Values.Replace(raw)
		check.Must(t, err)
		return thread.Change{Values: next, Patch: patch}
	}
	first := change(values(`{"id":"1"},{"id":"2"}`))
	first.Agent = &graph.Checkpoint{ID: "root", Values: first.Values.JSON()}
	log, writes := apply(t, log, first)
	log, more, err := log.Subgraph(start, graph.Checkpoint{ID: "below", NS: "below", Values: values(`{"id":"1"},{"id":"2"},{"id":"3"}`)})
	check.Must(t, err)
	log, last := apply(t, log, change(values(`{"id":"1"},{"id":"2"},{"id":"4"}`)))
	check.Must(t, m.Transact(t.Context(), append(append(writes, more...), last...)...))
	of, err := s.Get(t.Context(), ref)
	check.Must(t, err)
	of.Lock.Checkpoint = log.At.Number
	wanted := thread.Wanted{NS: "below", Root: thread.Newest, Limit: 10}
	if found, err := s.SubgraphHistory(t.Context(), ref, wanted); err != nil || len(found) != 1 {
		t.Fatalf("before the pruning: got %v, %v", found, err)
	}
	check.Must(t, s.Prune(t.Context(), of))

	if found, err := s.SubgraphHistory(t.Context(), ref, wanted); err != nil || len(found) != 0 {
		t.Errorf("got %v, %v; want no checkpoint", found, err)
	}
	if found, err := s.Subgraphs(t.Context(), ref, 0); err != nil || len(found) != 0 {
		t.Errorf("the newest: got %v, %v; want no checkpoint", found, err)
	}
}

// TestAPruningKeepsTheUpdatesForTheAgent checks this for an agent that has made no checkpoint yet.
func TestAPruningKeepsTheUpdatesForTheAgent(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := newLog()
	of, err := s.Create(t.Context(), ref, nil, nil, false)
	check.Must(t, err)
	for range 3 {
		log = updated(t, m, log, `{}`)
	}
	of.Lock.Checkpoint = log.At.Number
	check.Must(t, s.Prune(t.Context(), of))
	pending, err := s.Pending(t.Context(), ref, stateAt(t, s, ref, log.At.Number).At, "")
	if err != nil || len(pending) != 3 {
		t.Errorf("the agent gets %d updates, error %v; want 3", len(pending), err)
	}
}

// TestAThreadThatWillChangeIsNotPruned, because a run is in flight, or the leftovers of a run are
// not in the state yet.
func TestAThreadThatWillChangeIsNotPruned(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]thread.Lock{"busy": {Busy: true}, "not sealed": {Unsealed: true}} {
		s, _, of := stepped(t, 3)
		lock.Checkpoint = of.Lock.Checkpoint
		of.Lock = lock
		if err := s.Prune(t.Context(), of); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: got error %v, want a conflict", name, err)
		}
		if got := stateAt(t, s, of.Ref, 0).At.Number; got != 0 {
			t.Errorf("%s: got the state at checkpoint %d, want 0", name, got)
		}
	}
}

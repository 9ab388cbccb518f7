package thread_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestASubgraphIsLookedForInParts checks this on a thread that is too large to be read as a
// whole.
func TestASubgraphIsLookedForInParts(t *testing.T) {
	t.Parallel()
	check.Large(t)
	s, m := newStore(t)
	m.committed = func([]table.Write) {}
	ref, log := agentLog(t, s)
	const roots, size, page = 20, 1 << 20, 8 << 20
	data, random := make([]byte, size), rand.NewChaCha8([32]byte{})
	for i := range roots {
		next, writes := apply(t, log, thread.Change{Agent: &graph.Checkpoint{ID: fmt.Sprint("root", i), Values: json.RawMessage(`{}`)}})
		log = next
		namespaces := []string{"lasting", "other"}
		if i == 0 {
			namespaces = append(namespaces, "once")
		}
		for _, ns := range namespaces {
			c := graph.Checkpoint{ID: fmt.Sprint(ns, i), NS: ns, Values: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)), Persistent: ns == "lasting"}
			if ns == "other" {
				if _, err := random.Read(data); err != nil {
					t.Fatal(err)
				}
				c.Data = data
			}
			next, more, err := log.Subgraph(start, c)
			check.Must(t, err)
			log, writes = next, append(writes, more...)
		}
		check.Must(t, m.Transact(t.Context(), writes...))
	}
	m.largestPage = 0
	once, err := s.SubgraphHistory(t.Context(), ref, thread.Wanted{NS: "once", Root: thread.Newest, Limit: 10})
	if err != nil || len(once) != 1 || once[0].RootID != "root0" || string(once[0].Values) != `{"n":0}` {
		t.Errorf("got %v, %v", once, err)
	}
	if m.largestPage > page+2*size {
		t.Errorf("it was looked for in a page of %d bytes", m.largestPage)
	}
	if found, err := s.SubgraphHistory(t.Context(), ref, thread.Wanted{NS: "none", Root: thread.Newest, Limit: 1}); err != nil || len(found) != 0 {
		t.Errorf("of one that is not there: %v, %v", found, err)
	}
	want, before := roots-1, ""
	for want >= 0 {
		some, err := s.SubgraphHistory(t.Context(), ref, thread.Wanted{NS: "lasting", Root: thread.Newest, Before: before, Limit: 7})
		if err != nil || len(some) == 0 || len(some) > 7 {
			t.Fatalf("before %q: %d checkpoints, %v", before, len(some), err)
		}
		for _, c := range some {
			if before = c.ID; before != fmt.Sprint("lasting", want) || c.Root != int64(want) {
				t.Fatalf("got %s at %d, want the one at %d", c.ID, c.Root, want)
			}
			want--
		}
	}
}

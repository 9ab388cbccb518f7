package thread_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAReadOfAFrameCostsAsMuchAsItsData checks this for data of which a part is written again
// at each of many checkpoints.
func TestAReadOfAFrameCostsAsMuchAsItsData(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := agentLog(t, s)
	data := make([]byte, 32<<10)
	for i := range 120 {
		for at := range data[:4<<10] {
			data[at] = byte(rand.Uint32())
		}
		c := graph.Checkpoint{ID: fmt.Sprint("c", i), Values: json.RawMessage(`{}`), Data: bytes.Clone(data)}
		next, writes := apply(t, log, thread.Change{Agent: &c})
		log = next
		check.Must(t, m.Transact(t.Context(), writes...))
		m.reset()
		read, err := s.ReadFrame(t.Context(), thread.NewLog(ref, log.State))
		check.Must(t, err)
		if got := read.Checkpoints().Checkpoints[0].Data; !bytes.Equal(got, data) {
			t.Fatalf("checkpoint %d: the data is not what was stored", i)
		}
		if got := m.readBytes.Load(); got > 5*int64(len(data)) {
			t.Fatalf("checkpoint %d: a read of %d bytes took %d", i, len(data), got)
		}
		if got := m.queries.Load(); got > 3 {
			t.Fatalf("checkpoint %d: a read took %d queries", i, got)
		}
	}
}

func TestNamesThatCannotBeStoredAreRefused(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	_, log := agentLog(t, s)
	long := string(bytes.Repeat([]byte("x"), 600))
	for name, c := range map[string]graph.Checkpoint{"no id": {}, "a long id": {ID: long}, "a long parent": {ID: "a", ParentID: long}} {
		if _, _, err := log.Apply(start, thread.Change{Agent: &c}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if _, _, err := log.Subgraph(start, graph.Checkpoint{ID: "a", NS: long}); err == nil {
		t.Error("a long namespace: got no error")
	}
	if _, _, err := log.Writes(start, graph.Writes{TaskID: long}); err == nil {
		t.Error("a long task: got no error")
	}
}

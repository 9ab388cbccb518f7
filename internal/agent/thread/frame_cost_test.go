package thread_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheCostOfAFrameGrowsWithItsItems counts the bytes that are allocated while many tasks with
// subgraphs write between two checkpoints, and while their data is read.
//
//nolint:paralleltest // it counts the memory of the whole process
func TestTheCostOfAFrameGrowsWithItsItems(t *testing.T) {
	few, many := frameCost(t, 200), frameCost(t, 2000)
	t.Logf("bytes of 200 tasks: %v, of 2000 tasks: %v", few, many)
	for _, of := range []string{"write", "read"} {
		if many[of] > 25*few[of] {
			t.Errorf("%s: 200 tasks took %d bytes, 2000 tasks took %d", of, few[of], many[of])
		}
	}
}

// frameCost returns how many bytes are allocated to write and to read the items of some tasks.
func frameCost(t *testing.T, tasks int) map[string]uint64 {
	t.Helper()
	s, m := newStore(t)
	ref, log := agentLog(t, s)
	log, writes := apply(t, log, thread.Change{Agent: &graph.Checkpoint{ID: "root"}})
	cost := map[string]uint64{"write": allocated(func() {
		for i := range tasks {
			var more [2][]table.Write
			var err error
			if log, more[0], err = log.Subgraph(start, graph.Checkpoint{ID: fmt.Sprint("c", i), NS: fmt.Sprint("ns", i)}); err != nil {
				t.Fatal(err)
			}
			if log, more[1], err = log.Writes(start, graph.Writes{CheckpointID: "root", TaskID: fmt.Sprint("t", i)}); err != nil {
				t.Fatal(err)
			}
			writes = append(append(writes, more[0]...), more[1]...)
		}
	})}
	for part := range slices.Chunk(writes, 50) {
		check.Must(t, m.Transact(t.Context(), part...))
	}
	var read thread.Log
	cost["read"] = allocated(func() {
		var err error
		if read, err = s.ReadFrame(t.Context(), thread.NewLog(ref, log.State)); err != nil {
			t.Fatal(err)
		}
	})
	got := read.Checkpoints()
	if len(got.Writes) != tasks || len(got.Checkpoints) != tasks+1 {
		t.Fatalf("got %d results and %d checkpoints of %d tasks", len(got.Writes), len(got.Checkpoints), tasks)
	}
	for i, w := range got.Writes {
		if want := fmt.Sprint("t", i); w.TaskID != want {
			t.Fatalf("the results at place %d are of %s, want %s", i, w.TaskID, want)
		}
	}
	return cost
}

// allocated returns how many bytes are allocated while do runs.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

package thread_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestStateAtEveryNumber checks several snapshots, with states that one worker wrote, or that
// several workers wrote one after another.
func TestStateAtEveryNumber(t *testing.T) {
	t.Parallel()
	for name, handover := range map[string]bool{"by one worker": false, "each step by another worker": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := newStore(t)
			ref, log := newLog()
			var want []string
			for i := range 50 {
				log = advance(t, m, log, fmt.Sprintf(`{"n":%d,"messages":["<%s>"]}`, i, strings.Repeat("x", 4000)))
				want = append(want, string(log.Values.JSON()))
				if handover {
					log = thread.NewLog(ref, stateAt(t, s, ref, int64(i)))
				}
			}
			parent := ""
			for i := range want {
				got := stateAt(t, s, ref, int64(i))
				if string(got.Values.JSON()) != want[i] {
					t.Fatalf("state %d is not what it was when it was written", i)
				}
				if got.At.Number != int64(i) || got.At.Step != int64(i)-1 || got.At.Run != "run" || got.At.Source != thread.SourceLoop {
					t.Errorf("checkpoint %d: got %+v", i, got.At)
				}
				if got.At.ParentID != parent {
					t.Errorf("the parent of checkpoint %d is %q, want %q", i, got.At.ParentID, parent)
				}
				parent = got.At.ID
			}
			newest, err := s.State(t.Context(), ref)
			check.Must(t, err)
			if diff := cmp.Diff(log.At, newest.At); diff != "" {
				t.Errorf("newest checkpoint (-written +read):\n%s", diff)
			}
		})
	}
}

func TestAThreadWithoutCheckpointsHasAnEmptyState(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref := newRef()
	for _, number := range []int64{-1, 0, 7} {
		if got := stateAt(t, s, ref, number); got.At.Number != -1 || string(got.Values.JSON()) != "{}" {
			t.Errorf("StateAt(%d): got checkpoint %d, %s", number, got.At.Number, got.Values.JSON())
		}
	}
	advance(t, m, thread.NewLog(ref, thread.Empty()), `{"a":1}`)
	if got := stateAt(t, s, ref, -1); got.At.Number != -1 || string(got.Values.JSON()) != "{}" {
		t.Errorf("before the first checkpoint: got checkpoint %d, %s", got.At.Number, got.Values.JSON())
	}
	if got := stateAt(t, s, ref, 7); got.At.Number != 0 || string(got.Values.JSON()) != `{"a":1}` {
		t.Errorf("after the last checkpoint: got checkpoint %d, %s", got.At.Number, got.Values.JSON())
	}
}

// TestStorageGrowsLinearly appends 2,000 messages and measures the cost of each half.
func TestStorageGrowsLinearly(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := newLog()
	message := `{"messages":["` + strings.Repeat("x", 300) + `"]}`
	steps := func() { // 50 steps in a transaction, to save time
		var writes []table.Write
		for range 50 {
			next, step := reduce(t, log, message)
			log, writes = next, append(writes, step...)
		}
		check.Must(t, m.Transact(t.Context(), writes...))
	}
	for range 20 {
		steps()
	}
	half := m.writtenBytes.Load()
	for range 20 {
		steps()
	}
	all, size := m.writtenBytes.Load(), int64(len(log.Values.JSON()))
	t.Logf("2,000 steps store %d bytes for a state of %d", all, size)
	if all > 3*half {
		t.Errorf("the first 1,000 steps stored %d bytes, the second %d", half, all-half)
	}
	// A change is about as large as the data that it adds, and the snapshots together are at
	// most twice as large as the changes.
	if all > 4*size {
		t.Errorf("%d bytes are stored for a state of %d", all, size)
	}
	m.reset()
	if _, err := s.State(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	t.Logf("a read takes %d queries, %d items, %d bytes", m.queries.Load(), m.items.Load(), m.readBytes.Load())
	if got := m.readBytes.Load(); got > 2*size+(64<<10) {
		t.Errorf("a read of a state of %d bytes took %d bytes", size, got)
	}
	if got := m.queries.Load(); got > 2 {
		t.Errorf("a read took %d queries, want at most 2", got)
	}
}

// TestAReadCostsAsMuchAsTheState rewrites a value many times. Each step is made by another
// worker, which knows only the stored data.
func TestAReadCostsAsMuchAsTheState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bytes int
		steps int64
	}{
		"each change makes a snapshot": {66 << 10, 24},
		"many changes make one":        {4 << 10, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := newStore(t)
			ref, log := newLog()
			for i := range test.steps {
				advance(t, m, log, fmt.Sprintf(`{"document":"%d%s"}`, i, strings.Repeat("x", test.bytes)))
				log = thread.NewLog(ref, stateAt(t, s, ref, i))
			}
			size := int64(len(log.Values.JSON()))
			for number := range test.steps {
				m.reset()
				if got := stateAt(t, s, ref, number); got.At.Number != number {
					t.Errorf("StateAt(%d): got %d", number, got.At.Number)
				}
				if got, limit := m.readBytes.Load(), 10*size+(64<<10); got > limit {
					t.Errorf("state %d: a read of %d bytes took %d bytes, want at most %d", number, size, got, limit)
				}
			}
		})
	}
}

// TestValuesOfAnAgentCostTheirDifference lets an agent report its whole state at each step, in
// its own way of writing JSON. Each run begins with the state from the table.
func TestValuesOfAnAgentCostTheirDifference(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	ref, log := newLog()
	const steps = 80
	var messages []string
	for i := range steps {
		messages = append(messages, fmt.Sprintf(`{"type": "ai", "id": "m%d", "content": "<b>%s</b>"}`, i, strings.Repeat("x", 300)))
		values, patch, err := log.Values.Replace(json.RawMessage(`{"messages": [` + strings.Join(messages, ", ") + `]}`))
		check.Must(t, err)
		_, writes := apply(t, log, thread.Change{Values: values, Patch: patch})
		check.Must(t, m.Transact(t.Context(), writes...))
		log = thread.NewLog(ref, stateAt(t, s, ref, int64(i)))
	}
	if got, size := m.writtenBytes.Load(), int64(len(log.Values.JSON())); got > 4*size {
		t.Errorf("%d steps stored %d bytes for a state of %d", steps, got, size)
	}
}

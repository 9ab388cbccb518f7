package run_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// growing is an agent that keeps checkpoints. Each checkpoint contains all messages, in its
// values and in the agent's own data.
type growing struct {
	*fixture
	messages []string
	step     int
	// bytes is how many bytes were written.
	bytes int
}

func newGrowing(t testing.TB) *growing {
	g := &growing{fixture: newFixture(t)}
	g.table.committed = func(writes []table.Write) {
		for _, write := range writes {
			switch w := write.(type) {
			case table.Put:
				g.bytes += len(w.Item.Body)
			case table.Update:
				g.bytes += len(w.Body)
			}
		}
	}
	return g
}

// checkpoint adds a message.
func (g *growing) checkpoint(a *run.Attempt) {
	g.step++
	text := strings.Repeat(fmt.Sprintf("word %d ", g.step), 40)
	g.messages = append(g.messages, fmt.Sprintf(`{"type":"ai","id":"m%d","content":"%s"}`, g.step, text))
	all := strings.Join(g.messages, ",")
	c := graph.Checkpoint{
		ID: fmt.Sprintf("1f0-%06d", g.step), Values: json.RawMessage(`{"messages":[` + all + `]}`), Metadata: json.RawMessage(`{"source":"loop"}`),
		Data: fmt.Appendf(nil, "v1 step %d\x00%s\x00versions %x", g.step, strings.ReplaceAll(all, `"`, "\x01"), g.step*7919),
	}
	if g.step > 1 {
		c.ParentID = fmt.Sprintf("1f0-%06d", g.step-1)
	}
	if err := a.Writes(graph.Writes{CheckpointID: c.ParentID, TaskID: "t", Data: []byte(text)}); err != nil {
		g.t.Fatal(err)
	}
	if err := a.Checkpoint(c); err != nil {
		g.t.Fatal(err)
	}
}

// run makes a run of two steps. Each step is flushed separately.
func (g *growing) run() {
	_, a := g.started(fmt.Sprint("run ", g.step))
	for range 2 {
		g.checkpoint(a)
		g.flush(a)
	}
	g.finish(a)
}

// TestWhatAKeeperStoresGrowsLinearly measures the written bytes of two halves of a thread of
// 400 messages, and the number of reads of its last run.
func TestWhatAKeeperStoresGrowsLinearly(t *testing.T) {
	t.Parallel()
	check.Large(t)
	g := newGrowing(t)
	g.run()
	g.run()
	g.table.reads.Store(0)
	g.run()
	first := g.table.reads.Load()
	for g.step < 200 {
		g.run()
	}
	half := g.bytes
	for g.step < 400 {
		g.run()
	}
	size := len(strings.Join(g.messages, ","))
	t.Logf("400 checkpoints store %d bytes, the first half of them %d, for a state of %d bytes in two forms", g.bytes, half, size)
	if g.bytes > 3*half {
		t.Errorf("the first half of the thread stores %d bytes, the second %d", half, g.bytes-half)
	}
	if g.bytes > 10*size {
		t.Errorf("%d bytes are stored for a state of %d", g.bytes, size)
	}
	g.table.reads.Store(0)
	g.run()
	// The limit allows a query more for each of two chains, and a page.
	if last := g.table.reads.Load(); last > first+4 {
		t.Errorf("a run of the long thread takes %d reads, one of a short thread %d", last, first)
	}
}

// BenchmarkKeeperRun runs two steps on threads of different length.
func BenchmarkKeeperRun(b *testing.B) {
	for _, messages := range []int{20, 2000} {
		b.Run(fmt.Sprint(messages), func(b *testing.B) {
			g := newGrowing(b)
			_, a := g.started("begin")
			for g.step < messages {
				g.checkpoint(a)
				if a.Full() {
					g.flush(a)
				}
			}
			g.finish(a)
			before := g.bytes
			b.ResetTimer()
			for b.Loop() {
				g.run()
			}
			b.ReportMetric(float64(g.bytes-before)/float64(b.N), "stored-B/op")
			b.ReportMetric(float64(g.table.reads.Load())/float64(b.N), "reads/op")
		})
	}
}

// BenchmarkHistory reads ten states of threads of different length.
func BenchmarkHistory(b *testing.B) {
	for _, messages := range []int{20, 2000} {
		b.Run(fmt.Sprint(messages), func(b *testing.B) {
			g := newGrowing(b)
			_, a := g.started("begin")
			for g.step < messages {
				g.checkpoint(a)
				if a.Full() {
					g.flush(a)
				}
			}
			g.finish(a)
			var found []thread.Snapshot
			for b.Loop() {
				var err error
				if found, err = g.threads.History(b.Context(), g.ref, thread.Newest, 10, nil); err != nil || len(found) != 10 {
					b.Fatal(len(found), err)
				}
			}
		})
	}
}

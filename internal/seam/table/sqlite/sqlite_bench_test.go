package sqlite_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// BenchmarkTransact measures transactions of three insertions, like the creation of a run: the
// thread's lock, the run with its place in a list, an event. Keys are ordered by time, like
// the product's keys.
func BenchmarkTransact(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			tb := openTable(b, newPath(b))
			latencies := measureWriters(b, writers, func() error {
				return tb.Transact(context.Background(), threeInsertions(id.New(time.Now()))...)
			})
			reportLatencies(b, latencies)
		})
	}
}

// BenchmarkUpdate measures the compare-and-set of one item of a few attributes by one writer.
func BenchmarkUpdate(b *testing.B) {
	tb := openTable(b, newPath(b))
	writes := threeInsertions(id.New(time.Now()))
	check.Must(b, tb.Transact(b.Context(), writes...))
	b.ReportAllocs()
	for epoch := int64(1); b.Loop(); epoch++ {
		err := tb.Transact(b.Context(), table.Update{
			Key: writes[0].Target(),
			Set: table.Attrs{"epoch": epoch + 1},
			If:  table.Equals("epoch", epoch),
		})
		check.Must(b, err)
	}
}

func BenchmarkGet(b *testing.B) {
	tb := openTable(b, newPath(b))
	keys := fillBench(b, tb, 2000)
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := tb.Get(context.Background(), keys[int(next.Add(1))%len(keys)]); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "gets/s")
}

func BenchmarkQuery20(b *testing.B) {
	for _, query := range []table.Query{
		{PK: "workspace/threads", Limit: 20},
		{Index: table.ByList, PK: "workspace/runs", Limit: 20, Reverse: true},
	} {
		b.Run("index="+string(query.Index), func(b *testing.B) {
			tb := openTable(b, newPath(b))
			fillBench(b, tb, 2000)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					page, err := tb.Query(context.Background(), query)
					if err != nil || len(page.Items) != 20 {
						b.Errorf("got %d items and %v, want 20", len(page.Items), err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "queries/s")
		})
	}
}

// BenchmarkGetBesideLarge measures reading and changing a small item that is stored among
// large ones, like a thread's lock among its checkpoints.
func BenchmarkGetBesideLarge(b *testing.B) {
	for _, size := range []int{100, 10_000, 30_000, 600_000} {
		tb := openTable(b, newPath(b))
		attrs := table.Attrs{"epoch": int64(0), "kind": "thread", "created": "2026-01-02T03:04:05.000006Z"}
		small := table.Key{PK: "thread/" + strings.Repeat("x", 60), SK: "c5"}
		check.Must(b, tb.Transact(b.Context(), table.Put{Item: table.Item{Key: small, Attrs: attrs, Body: []byte(`{"metadata":{}}`)}, If: table.Absent()}))
		body := []byte(strings.Repeat("x", size))
		for i := range 10 {
			check.Must(b, tb.Transact(b.Context(), table.Put{Item: table.Item{Key: table.Key{PK: small.PK, SK: fmt.Sprintf("c%d.", i)}, Attrs: attrs, Body: body}, If: table.Absent()}))
		}
		b.Run(fmt.Sprintf("get,size=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tb.Get(context.Background(), small); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("update,size=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				check.Must(b, tb.Transact(context.Background(), table.Update{Key: small, Add: map[string]int64{"epoch": 1}}))
			}
		})
	}
}

func fillBench(b *testing.B, tb table.Table, n int) []table.Key {
	b.Helper()
	var keys []table.Key
	for range n {
		writes := threeInsertions(id.New(time.Now()))
		check.Must(b, tb.Transact(b.Context(), writes...))
		for _, w := range writes {
			keys = append(keys, w.Target())
		}
	}
	return keys
}

func threeInsertions(run string) []table.Write {
	attrs := table.Attrs{
		"kind": "run", "version": int64(1), "created": "2026-01-02T03:04:05.000006Z", "updated": "2026-01-02T03:04:05.000006Z",
		"status": "pending", "epoch": int64(1), "attempt": int64(1), "background": true,
	}
	body := []byte(`{"assistant_id":"fe096781-5601-53d2-b2f6-0d3403f7e9ca","input":{"messages":[{"role":"human","content":"hello"}]}}`)
	return []table.Write{
		table.Put{Item: table.Item{Key: table.Key{PK: "workspace/threads", SK: run}, Attrs: attrs}, If: table.Absent()},
		table.Put{Item: table.Item{
			Key: table.Key{PK: "workspace/thread/" + run, SK: "run/" + run}, Attrs: attrs, Body: body,
			Index: map[table.Index]table.Key{table.ByList: {PK: "workspace/runs", SK: run}},
		}, If: table.Absent()},
		table.Put{Item: table.Item{Key: table.Key{PK: "workspace/thread/" + run, SK: "event/1"}, Body: body}, If: table.Absent()},
	}
}

// measureWriters runs b.N operations on concurrent writers and returns how long each took.
func measureWriters(b *testing.B, writers int, operation func() error) []time.Duration {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	latencies := make([][]time.Duration, writers)
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				start := time.Now()
				if err := operation(); err != nil {
					b.Error(err)
					return
				}
				latencies[i] = append(latencies[i], time.Since(start))
			}
		})
	}
	running.Wait()
	b.StopTimer()
	return slices.Concat(latencies...)
}

func reportLatencies(b *testing.B, latencies []time.Duration) {
	b.Helper()
	slices.Sort(latencies)
	at := func(part float64) float64 {
		return float64(latencies[int(part*float64(len(latencies)-1))].Microseconds())
	}
	b.ReportMetric(at(0.5), "p50-µs")
	b.ReportMetric(at(0.99), "p99-µs")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
}

//go:build dynamo

package dynamo_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
)

// BenchmarkTransact measures DynamoDB Local more than this package: it shows the speed that
// tests and local development may expect.
func BenchmarkTransact(b *testing.B) {
	for _, inserts := range []int{1, 3} {
		for _, writers := range []int{1, 16} {
			b.Run(fmt.Sprintf("inserts=%d/writers=%d", inserts, writers), func(b *testing.B) {
				tb := openLocal(b, local.http)
				measure(b, writers, func(ctx context.Context) error { return tb.Transact(ctx, insertions(inserts)...) })
			})
		}
	}
}

// BenchmarkCompareAndSet measures changes of one attribute by one writer. The item has a large
// body or no body.
func BenchmarkCompareAndSet(b *testing.B) {
	for _, size := range []int{0, 5 << 20} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			tb := openLocal(b, local.http)
			lock, epoch := key("p", "lock"), int64(0)
			item := table.Item{Key: lock, Attrs: table.Attrs{"epoch": epoch}, Body: randomBody(size)}
			check.Must(b, tb.Transact(b.Context(), table.Put{Item: item}))
			measure(b, 1, func(ctx context.Context) error {
				epoch++
				return tb.Transact(ctx, table.Update{Key: lock, Add: map[string]int64{"epoch": 1}, If: table.Equals("epoch", epoch-1)})
			})
		})
	}
}

// BenchmarkRead measures single reads and lists of 20.
func BenchmarkRead(b *testing.B) {
	tb := openLocal(b, local.http)
	var keys []table.Key
	for range 100 {
		writes := insertions(3)
		check.Must(b, tb.Transact(b.Context(), writes...))
		keys = append(keys, writes[0].Target())
	}
	for _, readers := range []int{1, 16} {
		b.Run(fmt.Sprintf("get/readers=%d", readers), func(b *testing.B) {
			var next atomic.Int64
			measure(b, readers, func(ctx context.Context) error {
				_, err := tb.Get(ctx, keys[int(next.Add(1))%len(keys)])
				return err
			})
		})
		b.Run(fmt.Sprintf("list/readers=%d", readers), func(b *testing.B) {
			measure(b, readers, func(ctx context.Context) error {
				_, err := tb.Query(ctx, table.Query{Index: table.ByList, PK: "workspace/runs", Limit: 20, Reverse: true})
				return err
			})
		})
	}
}

// BenchmarkBody measures large bodies, put and read.
func BenchmarkBody(b *testing.B) {
	for _, size := range []int{dynamo.InlineBody, 32 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			tb := openLocal(b, local.http)
			body := randomBody(size)
			b.SetBytes(int64(size))
			measure(b, 1, func(ctx context.Context) error {
				k := key("p", id.New(time.Now()))
				if err := tb.Transact(ctx, table.Put{Item: table.Item{Key: k, Body: body}}); err != nil {
					return err
				}
				_, err := tb.Get(ctx, k)
				return err
			})
		})
	}
}

// insertions returns writes of items like a run and the items that are created with it.
func insertions(n int) []table.Write {
	run := id.New(time.Now())
	var writes []table.Write
	for i := range n {
		writes = append(writes, table.Put{Item: table.Item{
			Key:   key("workspace/thread/"+run, fmt.Sprint("item/", i)),
			Attrs: table.Attrs{"kind": "run", "version": int64(1), "created": "2026-01-02T03:04:05.000006Z", "status": "pending"},
			Body:  []byte(`{"input":{"messages":[{"role":"human","content":"hello"}]}}`),
			Index: map[table.Index]table.Key{table.ByList: {PK: "workspace/runs", SK: run}},
		}, If: table.Absent()})
	}
	return writes
}

// measure runs b.N operations on concurrent callers.
func measure(b *testing.B, callers int, operation func(context.Context) error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				if err := operation(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

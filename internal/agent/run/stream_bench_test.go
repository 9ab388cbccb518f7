package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// BenchmarkReaders writes batches of 200 events and waits until 20 readers have each batch. The
// readers are in the process that writes, which remembers the batches, or in another process.
func BenchmarkReaders(b *testing.B) {
	const readers = 20
	for _, elsewhere := range []bool{false, true} {
		b.Run(fmt.Sprint("elsewhere=", elsewhere), func(b *testing.B) {
			f := newFixture(b)
			r, a := f.started("ask")
			store := f.runs
			if elsewhere {
				store = f.otherProcess()
			}
			after := a.Run.Position
			ctx, cancel := context.WithCancel(b.Context())
			ended, seen := make(chan error, readers), make(chan int64, readers)
			for range readers {
				go func() {
					ended <- store.Stream(ctx, r, after, func(batch []run.Event) error {
						seen <- batch[len(batch)-1].Position
						return nil
					})
				}()
			}
			for i := 0; b.Loop(); i++ {
				for part := range 200 {
					show(a, fmt.Sprint("message ", i, part), strings.Repeat("some text ", 20))
				}
				f.flush(a)
				for left := readers; left > 0; {
					if <-seen == a.Run.Position {
						left--
					}
				}
			}
			cancel()
			for range readers {
				<-ended
			}
		})
	}
}

package tabletest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var raceCases = []testCase{
	{"of many writers that compare and set one item exactly one wins each round", func(f *fixture) {
		const writers, rounds = 8, 25
		lock := key("p", "lock")
		f.put(table.Item{Key: lock, Attrs: table.Attrs{"epoch": int64(0)}})
		for round := range int64(rounds) {
			won := f.race(writers, func(i int) []table.Write {
				return []table.Write{
					table.Update{Key: lock, Add: map[string]int64{"epoch": 1}, Set: table.Attrs{"holder": int64(i)}, If: table.Equals("epoch", round)},
					table.Put{Item: table.Item{Key: key(fmt.Sprint("round ", round), fmt.Sprint(i))}, If: table.Absent()},
				}
			}, func(failed *table.ConditionFailed) string {
				return diff(failed.Item.Attrs["epoch"], round+1)
			})
			f.wantItem(table.Item{Key: lock, Attrs: table.Attrs{"epoch": round + 1, "holder": int64(won)}})
			f.wantSortKeys(table.Query{PK: fmt.Sprint("round ", round)}, []string{fmt.Sprint(won)})
		}
	}},
	{"of many that create one name exactly one wins", func(f *fixture) {
		const writers, rounds = 8, 25
		for round := range rounds {
			name := key("names", numbered(round))
			won := f.race(writers, func(i int) []table.Write {
				return []table.Write{
					table.Put{Item: table.Item{Key: key(numbered(round), fmt.Sprint(i))}, If: table.Absent()},
					table.Put{Item: table.Item{Key: name, Attrs: table.Attrs{"owner": int64(i)}}, If: table.Absent()},
				}
			}, func(failed *table.ConditionFailed) string {
				if failed.Item == nil {
					return "loser was handed no item"
				}
				return diff(failed.Write, 1)
			})
			f.wantItem(table.Item{Key: name, Attrs: table.Attrs{"owner": int64(won)}})
			f.wantSortKeys(table.Query{PK: numbered(round)}, []string{fmt.Sprint(won)})
		}
	}},
	{"20 concurrent incrementers count exactly", func(f *fixture) {
		const incrementers, times = 20, 20
		total := key("p", "total")
		f.put(table.Item{Key: total})
		var running sync.WaitGroup
		for i := range incrementers {
			own := key("own", numbered(i))
			running.Go(func() {
				for n := range int64(times) {
					err := f.Transact(f.Context(),
						table.Update{Key: total, Add: map[string]int64{"n": 1}},
						table.Put{Item: table.Item{Key: own, Attrs: table.Attrs{"n": n + 1}}},
					)
					if err != nil {
						f.Errorf("transact: %v", err)
					}
				}
			})
		}
		running.Wait()
		f.wantItem(table.Item{Key: total, Attrs: table.Attrs{"n": int64(incrementers * times)}})
		for i := range incrementers {
			f.wantItem(table.Item{Key: key("own", numbered(i)), Attrs: table.Attrs{"n": int64(times)}})
		}
	}},
	{"readers that compare and set lose no count", func(f *fixture) {
		const writers, times = 6, 10
		total := key("p", "total")
		f.put(table.Item{Key: total, Attrs: table.Attrs{"n": int64(0)}})
		var running sync.WaitGroup
		for range writers {
			running.Go(func() {
				for range times {
					f.increment(total)
				}
			})
		}
		running.Wait()
		f.wantItem(table.Item{Key: total, Attrs: table.Attrs{"n": int64(writers * times)}})
	}},
	{"failing transactions do not touch those that run beside them", func(f *fixture) {
		const writers, times = 8, 30
		stood := sample(key("p", "stood"))
		f.put(stood)
		var running sync.WaitGroup
		for i := range writers {
			running.Go(func() {
				for n := range times {
					own := table.Put{Item: table.Item{Key: key(fmt.Sprint("own ", i), numbered(n))}, If: table.Absent()}
					if i%2 == 0 {
						if err := f.Transact(f.Context(), own); err != nil {
							f.Errorf("transact: %v", err)
						}
						continue
					}
					f.wantFailed(1, &stood, own, table.Put{Item: stood, If: table.Absent()})
				}
			})
		}
		running.Wait()
		for i := range writers {
			want := times
			if i%2 != 0 {
				want = 0
			}
			if got := len(f.indexed(table.Query{PK: fmt.Sprint("own ", i)})); got != want {
				f.Errorf("writer %d: got %d items, want %d", i, got, want)
			}
		}
	}},
}

// race runs the writers' transactions at once, checks that exactly one succeeds and that check
// finds no fault with the error of each other writer, and returns the winner.
func (f *fixture) race(writers int, writes func(i int) []table.Write, check func(*table.ConditionFailed) string) int {
	f.Helper()
	var winner, wins atomic.Int64
	start := make(chan struct{})
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			<-start
			err := f.Transact(f.Context(), writes(i)...)
			var failed *table.ConditionFailed
			switch {
			case err == nil:
				winner.Store(int64(i))
				wins.Add(1)
			case !errors.As(err, &failed):
				f.Errorf("transact: got %v, want a *table.ConditionFailed", err)
			default:
				if fault := check(failed); fault != "" {
					f.Errorf("loser's error: %s", fault)
				}
			}
		})
	}
	close(start)
	running.Wait()
	if got := wins.Load(); got != 1 {
		f.Fatalf("got %d winners, want 1", got)
	}
	return int(winner.Load())
}

// increment reads an item and adds 1 under the condition that no other writer changed it,
// until it succeeds.
func (f *fixture) increment(k table.Key) {
	for {
		item, err := f.Get(f.Context(), k)
		if err != nil {
			f.Errorf("get: %v", err)
			return
		}
		n := item.Int("n")
		err = f.Transact(f.Context(), table.Update{Key: k, Set: table.Attrs{"n": n + 1}, If: table.Equals("n", n)})
		if _, ok := errors.AsType[*table.ConditionFailed](err); !ok {
			if err != nil {
				f.Errorf("transact: %v", err)
			}
			return
		}
	}
}

package tabletest

import (
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

var watchCases = []testCase{
	{"each kind of write wakes its key's watcher", func(f *fixture) {
		w := f.Watch(key("p", "a"))
		defer w.Stop()
		for _, write := range []table.Write{
			table.Put{Item: sample(key("p", "a"))},
			table.Update{Key: key("p", "a"), Set: table.Attrs{"n": int64(1)}},
			table.Delete{Key: key("p", "a")},
			table.Put{Item: sample(key("p", "a")), If: table.Absent()},
		} {
			f.write(table.Put{Item: table.Item{Key: key("p", "other")}}, write)
			f.wantWoken(w)
		}
	}},
	{"a change made before the reader waits is not lost", func(f *fixture) {
		w := f.Watch(key("p", "a"))
		defer w.Stop()
		f.put(sample(key("p", "a")))
		f.wantItem(sample(key("p", "a")))
		f.wantWoken(w)
	}},
	{"a reader that only waits for wake-ups sees the last of many changes", func(f *fixture) {
		const changes = 200
		counter := key("p", "counter")
		f.put(table.Item{Key: counter})
		w := f.Watch(counter)
		defer w.Stop()
		var writing sync.WaitGroup
		writing.Go(func() {
			for range changes {
				if err := f.Transact(f.Context(), table.Update{Key: counter, Add: map[string]int64{"n": 1}}); err != nil {
					f.Errorf("transact: %v", err)
				}
			}
		})
		defer writing.Wait()
		for {
			item, err := f.Get(f.Context(), counter)
			if err != nil {
				f.Fatal(err)
			}
			if item.Int("n") == changes {
				return
			}
			f.wantWoken(w)
		}
	}},
	{"a watcher that nobody reads holds no one up and is woken once more", func(f *fixture) {
		w := f.Watch(key("p", "a"))
		defer w.Stop()
		for range 100 {
			f.put(sample(key("p", "a")))
		}
		f.wantWoken(w)
		f.put(sample(key("p", "a")))
		f.wantWoken(w)
	}},
	{"an item that comes with a wake-up is the item that was written", func(f *fixture) {
		for _, size := range []int{10, 1 << 20} {
			item := sample(key("p", "a"))
			item.Body = make([]byte, size)
			w := f.Watch(item.Key)
			f.put(item)
			for f.wantWoken(w); w.Item() != nil; f.wantWoken(w) {
				if diff(w.Item(), &item) == "" {
					break
				}
			}
			w.Stop()
			if got := w.Item(); got != nil {
				f.Errorf("a stopped watcher has the item %v", got)
			}
		}
	}},
	{"a stopped watcher delivers nothing, not even what was waiting", func(f *fixture) {
		w, other := f.Watch(key("p", "a")), f.Watch(key("p", "a"))
		defer other.Stop()
		f.put(sample(key("p", "a")))
		f.wantWoken(other)
		w.Stop()
		f.put(sample(key("p", "a")))
		f.wantWoken(other)
		select {
		case _, open := <-w.C():
			f.Errorf("got a wake-up (open: %v) after Stop, want none", open)
		default:
		}
		w.Stop()
		f.put(sample(key("p", "a")))
		f.wantWoken(other)
	}},
	{"every one of many watchers is woken, whoever else stops", func(f *fixture) {
		keys := []table.Key{key("p", "a"), key("p", "b"), key("q", "a")}
		var kept, stopped []table.Watcher
		for i := range 60 {
			w := f.Watch(keys[i%len(keys)])
			if i%4 == 0 {
				stopped = append(stopped, w)
			} else {
				kept = append(kept, w)
				defer w.Stop()
			}
		}
		for _, w := range stopped {
			w.Stop()
		}
		f.write(table.Put{Item: sample(keys[0])}, table.Put{Item: sample(keys[1])}, table.Put{Item: sample(keys[2])})
		for _, w := range kept {
			f.wantWoken(w)
		}
	}},
	{"watching and stopping during writes loses no watcher", func(f *fixture) {
		k := key("p", "a")
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				for range 50 {
					w := f.Watch(k)
					if err := f.Transact(f.Context(), table.Put{Item: table.Item{Key: k}}); err != nil {
						f.Errorf("transact: %v", err)
					}
					f.woken(w)
					w.Stop()
				}
			})
		}
		running.Wait()
	}},
}

func (f *fixture) wantWoken(w table.Watcher) {
	f.Helper()
	if !f.woken(w) {
		f.FailNow()
	}
}

// woken waits for a wake-up; it may be called by any goroutine.
func (f *fixture) woken(w table.Watcher) bool {
	f.Helper()
	select {
	case <-w.C():
		return true
	case <-time.After(patience):
		f.Errorf("not woken in %v", patience)
		return false
	}
}

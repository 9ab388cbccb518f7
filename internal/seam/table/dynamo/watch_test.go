package dynamo_test

import (
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
)

func writtenBy(tx string) answer { return reply(http.StatusOK, `{"Item":{"tx":{"S":"`+tx+`"}}}`) }

func TestPollingSlowsDownAndAChangeBeginsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := writtenBy("A"), writtenBy("B")
		// Looks at 100, 200, 400, 800, 1600 and 2600 ms. At 3600 ms it sees the change, and
		// the intervals begin again.
		w := newWire(t, a, a, a, a, a, a, b, b, b)
		tb := w.open()
		start := time.Now()
		watcher := tb.Watch(key("p", "a"))
		defer watcher.Stop()
		var wakes []time.Duration
		for range 2 {
			<-watcher.C()
			wakes = append(wakes, time.Since(start))
		}
		wantEqual(t, wakes, []time.Duration{100 * time.Millisecond, 3600 * time.Millisecond})
		<-time.After(300 * time.Millisecond)
		synctest.Wait()
		if got := len(w.sent()); got != 9 {
			t.Errorf("got %d looks, want 9", got)
		}
	})
}

func TestWatchersOfOneKeyShareItsPolling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, reply(http.StatusOK, `{}`))
		tb := w.open()
		var all []table.Watcher
		for range 10 {
			all = append(all, tb.Watch(key("p", "a")))
		}
		for _, watcher := range all {
			<-watcher.C()
		}
		if got := len(w.sent()); got != 1 {
			t.Errorf("got %d looks, want 1", got)
		}
		for _, watcher := range all {
			watcher.Stop()
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if got := len(w.sent()); got != 1 {
			t.Errorf("got %d looks after all had stopped, want none more than 1", got)
		}
	})
}

func TestOwnWritesWakeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, done)
		tb := w.open()
		start := time.Now()
		watcher, other := tb.Watch(key("p", "a")), tb.Watch(key("p", "b"))
		defer watcher.Stop()
		defer other.Stop()
		err := tb.Transact(t.Context(), increment, table.Check{Key: key("p", "b"), If: table.Absent()})
		wantError(t, err, nil)
		<-watcher.C()
		if took := time.Since(start); took != 0 {
			t.Errorf("woken after %v, want at once", took)
		}
		select {
		case <-other.C():
			t.Error("a check woke its key's watcher")
		default:
		}
	})
}

// TestAWakeUpBringsItsItem checks that a reader gets the item that the look has found, but not
// after a write of this process, which the look did not see.
func TestAWakeUpBringsItsItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, reply(http.StatusOK, `{"Item":{"pk":{"S":"p"},"sk":{"S":"a"},"tx":{"S":"A"},"attrs":{"M":{"n":{"N":"7"}}}}}`), done)
		tb := w.open()
		watcher := tb.Watch(key("p", "a"))
		defer watcher.Stop()
		<-watcher.C()
		if item := watcher.Item(); item == nil || item.Int("n") != 7 {
			t.Errorf("got %v, want the item", item)
		}
		wantError(t, tb.Transact(t.Context(), increment), nil)
		<-watcher.C()
		if item := watcher.Item(); item != nil {
			t.Errorf("got %v after a write, want no item", item)
		}
	})
}

// TestKeyThatCannotBeReadWakes: the reader learns from its own read what is wrong.
func TestKeyThatCannotBeReadWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, refuse(http.StatusBadRequest, "AccessDeniedException"))
		watcher := w.open(dynamo.WithLogger(slog.New(slog.DiscardHandler))).Watch(key("p", "a"))
		defer watcher.Stop()
		for range 3 {
			<-watcher.C()
		}
	})
}

func TestCloseEndsPolling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, reply(http.StatusOK, `{}`))
		tb := w.open()
		watcher := tb.Watch(key("p", "a"))
		defer watcher.Stop()
		<-watcher.C()
		wantError(t, tb.Close(), nil)
		looks := len(w.sent())
		<-time.After(time.Minute)
		synctest.Wait()
		if got := len(w.sent()); got != looks {
			t.Errorf("got %d looks after Close, want none more than %d", got, looks)
		}
	})
}

package dynamo_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
)

// writtenBy is the answer to a look at an item that a transaction has written.
func writtenBy(tx string) answer {
	return batch(nil, item(key("p", "a"), nil, fmt.Sprintf(`"tx":{"S":%q}`, tx)))
}

func TestPollingSlowsDownAndAChangeBeginsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := writtenBy("A"), writtenBy("B")
		// Looks at 100, 200, 350, 600, 900, 1400 and 2100 ms. At 3000 ms it sees the change, and
		// the intervals begin again.
		w := newWire(t, a, a, a, a, a, a, a, b, b, b)
		tb := w.open()
		start := time.Now()
		watcher := tb.Watch(key("p", "a"))
		defer watcher.Stop()
		var wakes []time.Duration
		for range 2 {
			<-watcher.C()
			wakes = append(wakes, time.Since(start))
		}
		wantEqual(t, wakes, []time.Duration{100 * time.Millisecond, 3000 * time.Millisecond})
		<-time.After(310 * time.Millisecond)
		synctest.Wait()
		if got := len(w.sent()); got != 10 {
			t.Errorf("got %d looks, want 10", got)
		}
	})
}

// TestAChangeAfterIdlenessWakesWithoutItsItem: looks at an idle key ask for no more than tells a
// change. A change wakes once, and from then on the looks bring the item again.
func TestAChangeAfterIdlenessWakesWithoutItsItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b, c := writtenBy("A"), writtenBy("B"), writtenBy("C")
		only := reply(http.StatusOK, `{"Responses":{"slipway":[{"pk":{"S":"p"},"sk":{"S":"a"},"tx":{"S":"B"}}]}}`)
		w := newWire(t, a, a, a, a, a, a, a, a, a, a, a, only, b, c)
		watcher := w.open().Watch(key("p", "a"))
		defer watcher.Stop()
		start := time.Now()
		for _, want := range []struct {
			at    time.Duration
			whole bool
		}{{100 * time.Millisecond, true}, {7000 * time.Millisecond, false}, {7250 * time.Millisecond, true}} {
			<-watcher.C()
			if at, item := time.Since(start), watcher.Item(); at != want.at || (item != nil) != want.whole {
				t.Errorf("woken after %v with %v, want after %v, with an item: %v", at, item, want.at, want.whole)
			}
		}
		for i, r := range w.sent() {
			wanted := r.decode(t)["RequestItems"].(map[string]any)["slipway"].(map[string]any)
			if idle := i == 11; idle != (wanted["ProjectionExpression"] == "#pk, #sk, #tx") {
				t.Errorf("look %d asks for %v %v", i+1, wanted["ProjectionExpression"], wanted["ExpressionAttributeNames"])
			}
		}
	})
}

// TestAWatchThatBeginsWhileThePollerSleeps is looked at before the idle key for which the poller
// sleeps.
func TestAWatchThatBeginsWhileThePollerSleeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := newWire(t, batch(nil)).open()
		defer tb.Watch(key("p", "a")).Stop()
		<-time.After(3310 * time.Millisecond) // its looks are at 3 s and 4 s
		start := time.Now()
		next := tb.Watch(key("p", "b"))
		defer next.Stop()
		<-next.C()
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("woken after %v, want within 100 ms", took)
		}
	})
}

// TestNothingPollsWhenNothingIsWatched: the poller ends with the last watch, and not when it would
// have looked.
func TestNothingPollsWhenNothingIsWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := newWire(t, batch(nil)).open()
		for range 2 {
			watcher := tb.Watch(key("p", "a"))
			<-watcher.C()
			synctest.Wait()
			watcher.Stop()
			synctest.Wait()
			if tb.Polls() {
				t.Error("the poller has not ended")
			}
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
		w := newWire(t, batch(nil, item(key("p", "a"), map[string]int{"n": 7}, `"tx":{"S":"A"}`)), done)
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

// TestKeysThatAreDueTogetherAreReadTogether checks also that keys whose watches began at
// different times are, when they have been still for a while.
func TestKeysThatAreDueTogetherAreReadTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, batch(nil))
		tb := w.open()
		const keys = 3 * 100 // of which one request reads a hundred
		for i := range keys {
			defer tb.Watch(key("p", fmt.Sprint(i))).Stop()
			<-time.After(7 * time.Millisecond)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		before := len(w.sent())
		<-time.After(4 * time.Second)
		synctest.Wait()
		looks := 0
		sent := w.sent()[before:]
		for _, r := range sent {
			looks += strings.Count(string(r.body), `"pk":`)
		}
		if looks != 4*keys || len(sent) != 3*4 {
			t.Errorf("%d requests in 4 s looked at %d keys, want %d looks by 12 requests", len(sent), looks, 4*keys)
		}
	})
}

// TestAWatchThatEndsWhileItsKeyIsRead checks that the next watch of the key is woken by its own
// first look.
func TestAWatchThatEndsWhileItsKeyIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, answered := make(chan struct{}), make(chan struct{})
		late := func() (*http.Response, error) {
			close(asked)
			<-answered
			return writtenBy("A")()
		}
		tb := newWire(t, late, writtenBy("A")).open()
		tb.Watch(key("p", "a")).Stop()
		first := tb.Watch(key("p", "a"))
		<-asked
		first.Stop()
		next := tb.Watch(key("p", "a"))
		defer next.Stop()
		start := time.Now()
		close(answered)
		<-next.C()
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("woken after %v, want by the look after 100 ms", took)
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

package listener_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/test/check"
)

// subscriber receives the events.
type subscriber struct {
	mu   sync.Mutex
	sent []string
}

func (s *subscriber) Notify(_ context.Context, _ string, events []event.Event) (o record.Outbox, _ error) {
	o.Then(func(context.Context) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range events {
			s.sent = append(s.sent, string(e.Type)+" "+e.Listener)
		}
	})
	return o, nil
}

// tellAway does the work of the timer.
func (f *fixture) tellAway(t *testing.T) {
	t.Helper()
	check.Must(t, f.ReportOffline(t.Context(), f.clock.Now()))
}

// wantTold checks the events of the workspace: type, listener, compute_id and message.
func (f *fixture) wantTold(t *testing.T, want ...[4]string) {
	t.Helper()
	found, err := event.NewLog(f.table, f.clock.Now, nil).Workspace(workspace).Read(t.Context(), "", 100)
	check.Must(t, err)
	var told [][4]string
	for _, e := range found {
		told = append(told, [4]string{string(e.Type), e.Listener, e.ComputeID, e.Message})
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// offline and online return the expected events of a listener that was as given when it called
// last.
func offline(l listener.Listener) [4]string {
	return [4]string{"listener.offline", l.Listener, l.ComputeID, "The listener called last at " + clock.Format(l.LastSeen) +
		". What it runs may go on, but nobody looks after it, and no deployment changes there until the listener calls again."}
}

func online(l listener.Listener) [4]string {
	return [4]string{"listener.online", l.Listener, l.ComputeID, "The listener calls again. It had not since " + clock.Format(l.LastSeen) + "."}
}

func TestAListenerThatGoesOfflineIsToldOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	subscribed := new(subscriber)
	f.config.Subscribers = subscribed
	f.Store = listener.NewStore(f.config)
	l, never := f.create(t, request("cluster", "agents")), f.create(t, request("never-called", "agents"))
	s := f.claim(t, l, "a").Session
	for range 20 {
		f.clock.Pass(25 * time.Second)
		_, err := f.Heartbeat(t.Context(), s, "")
		check.Must(t, err)
		f.tellAway(t)
	}
	f.wantTold(t)

	before := f.get(t, l.Ref)
	f.clock.Pass(5*time.Minute - time.Second)
	f.tellAway(t)
	f.wantTold(t)
	f.clock.Pass(5 * time.Minute) // more than the limit after the last look
	var timers sync.WaitGroup
	for range 4 {
		timers.Go(func() {
			if err := f.ReportOffline(t.Context(), f.clock.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	timers.Wait()
	f.clock.Pass(time.Hour)
	f.tellAway(t)
	first := offline(before)
	f.wantTold(t, first)
	if after := f.get(t, l.Ref); after.ChangeCount() != before.ChangeCount() || !after.Updated.Equal(before.Updated) {
		t.Errorf("got %+v, want no change that clients see", after)
	}

	// The listener is back by its own call, of any kind, and another absence is another
	// series.
	_, err := f.Heartbeat(t.Context(), s, "2.0")
	check.Must(t, err)
	_, err = f.Heartbeat(t.Context(), s, "")
	check.Must(t, err)
	f.wantTold(t, first, online(before))
	again := f.get(t, l.Ref)
	if *again.Version != "2.0" || !again.Online(f.clock.Now()) {
		t.Errorf("got %+v", again)
	}
	f.clock.Pass(6 * time.Minute)
	f.tellAway(t)
	f.claim(t, l, "b")
	f.wantTold(t, first, online(before), offline(again), online(again))

	// No events are told of a listener that is deleted.
	check.Must(t, f.Delete(t.Context(), l.Ref, nil))
	check.Must(t, f.Delete(t.Context(), never.Ref, nil))
	f.clock.Pass(time.Hour)
	f.tellAway(t)
	want := []string{"listener.offline " + l.Listener, "listener.online " + l.Listener, "listener.offline " + l.Listener, "listener.online " + l.Listener}
	if diff := cmp.Diff(want, subscribed.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// TestAListenerThatCallsWhileItIsToldAway runs the calls of a listener and the timer at the
// same time: the later of the two decides, and the events alternate.
func TestAListenerThatCallsWhileItIsToldAway(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	s := f.claim(t, l, "a").Session
	for range 10 {
		f.clock.Pass(6 * time.Minute)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if err := f.ReportOffline(t.Context(), f.clock.Now()); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				if _, err := f.Heartbeat(t.Context(), s, ""); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	found, err := event.NewLog(f.table, f.clock.Now, nil).Workspace(workspace).Read(t.Context(), "", 100)
	check.Must(t, err)
	for i, e := range found {
		if want := [...]event.Type{event.ListenerOffline, event.ListenerOnline}[i%2]; e.Type != want {
			t.Errorf("event %d is %s, want %s", i, e.Type, want)
		}
	}
	if len(found)%2 != 0 {
		t.Error("the last word is that it is away, though it has called")
	}
}

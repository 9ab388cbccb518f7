package listener_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestWorkIsGivenAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	first := f.claim(t, l, "a")
	w := one(t, first)
	for _, c := range []struct {
		name   string
		move   time.Duration
		report bool
		want   int
	}{
		{"at once", 0, false, 0},
		{"soon", 29 * time.Second, false, 0},
		{"after a minute without a report", 31 * time.Second, false, 1},
		{"soon after that", 59 * time.Second, false, 0},
		{"after a report", 0, true, 0},
		{"soon after the report", 59 * time.Second, false, 0},
		{"a minute after the report", time.Second, false, 1},
	} {
		f.clock.Pass(c.move)
		if c.report {
			f.report(t, first.Session, on(w, 1, compute.Progressing))
		}
		got := f.claim(t, l, "a").Work
		if len(got) != c.want {
			t.Fatalf("%s: got %d pieces of work", c.name, len(got))
		}
		if len(got) == 1 {
			if diff := cmp.Diff(w, got[0]); diff != "" {
				t.Errorf("%s (-first +again):\n%s", c.name, diff)
			}
		}
	}
	check.Must(t, f.EndSession(t.Context(), first.Session))
	next := f.claim(t, l, "b")
	if diff := cmp.Diff(w, one(t, next)); diff != "" {
		t.Errorf("the next session (-first +again):\n%s", diff)
	}
	// Numbers begin again with a session.
	f.report(t, next.Session, on(w, 1, compute.Healthy))
	f.want(t, r, compute.Healthy, "")
}

// TestALostAnswerIsMadeGoodWhileTheListenerWaits: no other change wakes the waiting call.
func TestALostAnswerIsMadeGoodWhileTheListenerWaits(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	f.apply(t, f.newRelease(l))
	one(t, f.claim(t, l, "a"))
	config := f.config
	config.Table = &tableThat{Table: f.table, afterQuery: func() { f.clock.Pass(time.Minute) }}
	c, err := listener.NewStore(config).Claim(patience(t), listener.ClaimRequest{Ref: l.Ref, Holder: "a", Wait: listener.MaxWait})
	check.Must(t, err)
	one(t, c)
}

func TestWhatWasNeverFetchedIsForgotten(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	f.remove(t, r)
	f.want(t, r, compute.Absent, "")
	f.wantNothingLeft(t, l, r)
	none(t, f.claim(t, l, "a"))
}

// TestWhatMayRunIsRemoved has an order that was not fetched, after an order that was fetched.
func TestWhatMayRunIsRemoved(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	one(t, f.claim(t, l, "a"))
	f.remove(t, r)
	f.apply(t, r)
	f.remove(t, r)
	a := f.claim(t, l, "a")
	w := one(t, a)
	if w.Verb != listener.Remove {
		t.Errorf("got %+v", w)
	}
	removed := func(since time.Time) {
		t.Helper()
		f.clock.Pass(time.Minute)
		if got, err := f.target.RemovedSince(t.Context(), r.Ref); err != nil || !got.Equal(since) {
			t.Errorf("it is to be removed since %s (%v), want %s", got, err, since)
		}
	}
	removed(id.Time(w.Order))
	f.report(t, a.Session, on(w, 1, compute.Absent))
	removed(time.Time{})
	f.wantNothingLeft(t, l, r)
}

func TestAFailedReleaseIsTriedAnew(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	a := f.claim(t, l, "a")
	w := one(t, a)
	f.report(t, a.Session, on(w, 1, compute.Failed))
	none(t, f.claim(t, l, "a"))
	r.Env["PASSWORD"] = "another"
	f.apply(t, r)
	f.want(t, r, compute.Progressing, "", "it waits")
	again := one(t, f.claim(t, l, "a"))
	if again.Order <= w.Order || again.Release.Env["PASSWORD"] != "another" {
		t.Errorf("got %+v", again)
	}
	f.report(t, a.Session, on(again, 1, compute.Healthy))
	f.want(t, r, compute.Healthy, "")

	// The next order gets no more time because the release was healthy once.
	f.report(t, a.Session, on(again, 2, compute.Failed))
	f.apply(t, r)
	f.clock.Pass(5 * time.Minute)
	f.want(t, r, compute.Failed, listener.ReasonOffline)
}

func TestAListenerThatIsAwayFailsTheRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// called: the listener called before the order; fetched: it fetched the order.
		called, fetched bool
		words           string
	}{
		"it never came":         {false, false, "the listener has never called"},
		"it went away before":   {true, false, "the listener called last at 2026-03-01T12:00:00."},
		"it went away with it":  {true, true, "the listener called last at 2026-03-01T12:00:00."},
		"it came only for this": {false, true, "the listener called last at 2026-03-01T12:00:00."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			l := f.create(t, request("cluster", "agents"))
			if c.called {
				none(t, f.claim(t, l, "a"))
			}
			r := f.newRelease(l)
			f.apply(t, r)
			if c.fetched {
				one(t, f.claim(t, l, "a"))
			}
			f.clock.Pass(5*time.Minute - time.Second)
			f.want(t, r, compute.Progressing, "")
			f.clock.Pass(time.Second)
			f.want(t, r, compute.Failed, listener.ReasonOffline, l.Listener, `"cluster"`, "has not called for 5m0s", c.words)
			_, _, err := f.target.Acquire(t.Context(), r.Ref)
			if unavailable, ok := errors.AsType[*compute.UnavailableError](err); !ok || unavailable.Status.Reason != listener.ReasonOffline {
				t.Errorf("Acquire: got %v", err)
			}
			// The release is tried again, and the listener comes.
			f.apply(t, r)
			f.want(t, r, compute.Progressing, "", "it waits")
			b := f.claim(t, l, "b")
			f.report(t, b.Session, on(one(t, b), 1, compute.Healthy))
			f.want(t, r, compute.Healthy, "")
		})
	}
}

func TestAListenerThatIsThereHasTime(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	a := f.claim(t, l, "a")
	report := on(one(t, a), 1, compute.Progressing)
	report.Message = "the image is being pulled"
	f.report(t, a.Session, report)
	for range 14 {
		f.clock.Pass(time.Minute)
		_, err := f.Heartbeat(t.Context(), a.Session, "")
		check.Must(t, err)
		f.want(t, r, compute.Progressing, "", "the image is being pulled")
	}
	f.clock.Pass(time.Minute)
	f.want(t, r, compute.Failed, compute.ReasonNotReady, "did not make it healthy within 15m0s. The last that is known: the image is being pulled")
}

// TestAReleaseHasItsOwnTimeToBecomeHealthy: less, or more, than other releases.
func TestAReleaseHasItsOwnTimeToBecomeHealthy(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	short, long := f.newRelease(l), f.newRelease(l)
	short.ReadyLimit, long.ReadyLimit = 2*time.Minute, time.Hour
	f.apply(t, short)
	f.apply(t, long)
	a := f.claim(t, l, "a")
	pass := func(minutes int) {
		t.Helper()
		for range minutes {
			f.clock.Pass(time.Minute)
			_, err := f.Heartbeat(t.Context(), a.Session, "")
			check.Must(t, err)
		}
	}
	pass(1)
	f.want(t, short, compute.Progressing, "")
	pass(1)
	f.want(t, short, compute.Failed, compute.ReasonNotReady, "did not make it healthy within 2m0s")
	pass(57)
	f.want(t, long, compute.Progressing, "")
	pass(1)
	f.want(t, long, compute.Failed, compute.ReasonNotReady, "within 1h0m0s")
	// The next order may have another limit.
	short.ReadyLimit = 0
	f.apply(t, short)
	pass(14)
	f.want(t, short, compute.Progressing, "")
	pass(1)
	f.want(t, short, compute.Failed, compute.ReasonNotReady, "within 15m0s")
}

// TestAwaitEndsWhenTheListenerStaysAway: nothing happens except that time passes.
func TestAwaitEndsWhenTheListenerStaysAway(t *testing.T) {
	t.Parallel()
	f := setUpAt(t, nil, time.Now)
	f.config.OfflineLimit = 20 * time.Millisecond
	f.target = listener.NewStore(f.config).Target(nil)
	l := f.create(t, request("cluster", "agents"))
	r := f.newRelease(l)
	f.apply(t, r)
	if s, err := f.target.Await(patience(t), r.Ref); err != nil || s.Reason != listener.ReasonOffline {
		t.Errorf("got %+v, %v", s, err)
	}
}

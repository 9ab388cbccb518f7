package web_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
)

// handClock is moved by hand.
type handClock struct {
	mu sync.Mutex
	at time.Time
}

func newHandClock() *handClock {
	return &handClock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func limited(limits web.Limits, c *handClock) func(*web.Mux) web.Middleware {
	return func(m *web.Mux) web.Middleware {
		return m.Limit(web.NewLimiter(limits, c.now), func(r *http.Request) string { return r.Header.Get("X-Api-Key") })
	}
}

func TestACallerThatAsksTooOften(t *testing.T) {
	t.Parallel()
	c := newHandClock()
	s := newGuardedWidgets(t, true, limited(web.Limits{Reads: web.Rate{PerSecond: 2, Burst: 3}, Writes: web.Rate{PerSecond: 0.1, Burst: 1}}, c), nil)
	type answer struct {
		Status              int
		After, Policy, Left string
	}
	get := func(method, key string) answer {
		w := send(t, s, method, "/widgets/1", "", "X-Api-Key", key)
		return answer{w.Code, w.Header().Get("Retry-After"), w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit")}
	}
	const reads, writes = `"reads";q=3;w=2`, `"writes";q=1;w=10`
	for i, step := range []struct {
		pass        time.Duration
		method, key string
		want        answer
	}{
		{0, "GET", "a", answer{200, "", reads, `"reads";r=2;t=1`}},
		{0, "GET", "a", answer{200, "", reads, `"reads";r=1;t=1`}},
		{0, "HEAD", "a", answer{200, "", reads, `"reads";r=0;t=2`}},
		{0, "GET", "a", answer{429, "1", reads, `"reads";r=0;t=2`}},
		// Nobody else is held up, and writes are counted apart.
		{0, "GET", "b", answer{200, "", reads, `"reads";r=2;t=1`}},
		{0, "DELETE", "a", answer{204, "", writes, `"writes";r=0;t=10`}},
		{0, "DELETE", "a", answer{429, "10", writes, `"writes";r=0;t=10`}},
		// A refusal costs nothing.
		{499 * time.Millisecond, "GET", "a", answer{429, "1", reads, `"reads";r=0;t=2`}},
		{time.Millisecond, "GET", "a", answer{200, "", reads, `"reads";r=0;t=2`}},
		{time.Hour, "GET", "a", answer{200, "", reads, `"reads";r=2;t=1`}},
	} {
		c.pass(step.pass)
		if diff := cmp.Diff(step.want, get(step.method, step.key)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
	c.pass(-time.Hour) // a clock that is put back is no reason to fail
	get("GET", "a")
	if w := send(t, s, "DELETE", "/widgets/1", "", "X-Api-Key", "b"); w.Code != 204 {
		t.Errorf("got %d", w.Code)
	}
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	t.Parallel()
	s := newGuardedWidgets(t, true, limited(web.Limits{Reads: web.Rate{PerSecond: 1.5, Burst: 1}}, newHandClock()), nil)
	send(t, s, "GET", "/widgets/1", "")
	if w := send(t, s, "GET", "/widgets/1", ""); w.Body.String() != `{"detail":"Too many requests: 1 at once and 1.5 per second are allowed."}` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	s := newGuardedWidgets(t, true, limited(web.Limits{}, newHandClock()), nil)
	for range 1000 {
		if w := send(t, s, "GET", "/widgets/1", ""); w.Code != 200 || w.Header().Get("RateLimit") != "" || w.Header().Get("RateLimit-Policy") != "" {
			t.Fatalf("got %d %v", w.Code, w.Header())
		}
	}
}

func TestManyRequestsAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	s := newGuardedWidgets(t, true, limited(web.Limits{Reads: web.Rate{PerSecond: 1, Burst: 20}}, newHandClock()), nil)
	var wg sync.WaitGroup
	var passed atomic.Int64
	for range 100 {
		wg.Go(func() {
			if send(t, s, "GET", "/widgets/1", "").Code == 200 {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 20 {
		t.Errorf("%d passed, want 20", passed.Load())
	}
}

// TestCallersAreForgotten sends from more callers than are remembered.
func TestCallersAreForgotten(t *testing.T) {
	t.Parallel()
	const most = 10
	c := newHandClock()
	limiter := web.NewLimiter(web.Limits{Reads: web.Rate{PerSecond: 1, Burst: 1}}, c.now)
	limiter.SetMost(most)
	s := newGuardedWidgets(t, true, func(m *web.Mux) web.Middleware {
		return m.Limit(limiter, func(r *http.Request) string { return r.Header.Get("X-Api-Key") })
	}, nil)
	get := func(key string) int { return send(t, s, "GET", "/widgets/1", "", "X-Api-Key", key).Code }
	for i := range most - 1 {
		get(fmt.Sprint(i))
	}
	c.pass(time.Minute)
	get("late")
	get("one more")
	if limiter.Len() != 2 || get("late") != 429 {
		t.Errorf("%d are remembered, want those that are not full: late and one more", limiter.Len())
	}
	for i := range 10 * most {
		get(fmt.Sprint(i))
		if limiter.Len() > most {
			t.Fatalf("%d are remembered, want at most %d", limiter.Len(), most)
		}
	}
}

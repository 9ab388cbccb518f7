package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func limited(limits web.Limits, c *fixtures.Clock) func(*web.Mux) web.Middleware {
	return func(m *web.Mux) web.Middleware {
		m.Limiter = web.NewLimiter(quota.Limits{}, limits, c.Now)
		return m.Counted(func(r *http.Request) string { return r.Header.Get("X-Api-Key") })
	}
}

func TestACallerThatAsksTooOften(t *testing.T) {
	t.Parallel()
	c := fixtures.NewClock()
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
		// No other caller is held up, and writes are counted apart.
		{0, "GET", "b", answer{200, "", reads, `"reads";r=2;t=1`}},
		{0, "DELETE", "a", answer{204, "", writes, `"writes";r=0;t=10`}},
		{0, "DELETE", "a", answer{429, "10", writes, `"writes";r=0;t=10`}},
		// A refusal costs nothing.
		{499 * time.Millisecond, "GET", "a", answer{429, "1", reads, `"reads";r=0;t=2`}},
		{time.Millisecond, "GET", "a", answer{200, "", reads, `"reads";r=0;t=2`}},
		{time.Hour, "GET", "a", answer{200, "", reads, `"reads";r=2;t=1`}},
	} {
		c.Pass(step.pass)
		if diff := cmp.Diff(step.want, get(step.method, step.key)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
	c.Pass(-time.Hour) // a clock that is set back is no reason to fail
	get("GET", "a")
	if w := send(t, s, "DELETE", "/widgets/1", "", "X-Api-Key", "b"); w.Code != 204 {
		t.Errorf("got %d", w.Code)
	}
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	t.Parallel()
	s := newGuardedWidgets(t, true, limited(web.Limits{Reads: web.Rate{PerSecond: 1.5, Burst: 1}}, fixtures.NewClock()), nil)
	send(t, s, "GET", "/widgets/1", "")
	if w := send(t, s, "GET", "/widgets/1", ""); w.Body.String() != `{"detail":"Too many requests: 1 at once and 1.5 per second are allowed."}` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	s := newGuardedWidgets(t, true, limited(web.Limits{}, fixtures.NewClock()), nil)
	for range 1000 {
		if w := send(t, s, "GET", "/widgets/1", ""); w.Code != 200 || w.Header().Get("RateLimit") != "" || w.Header().Get("RateLimit-Policy") != "" {
			t.Fatalf("got %d %v", w.Code, w.Header())
		}
	}
}

func TestManyRequestsAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	s := newGuardedWidgets(t, true, limited(web.Limits{Reads: web.Rate{PerSecond: 1, Burst: 20}}, fixtures.NewClock()), nil)
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

// TestCallersAreForgotten forgets the callers that have not sent requests for the longest time,
// when there are more callers than buckets.
func TestCallersAreForgotten(t *testing.T) {
	t.Parallel()
	const most = 10
	limiter := web.NewLimiter(quota.Limits{}, web.Limits{Reads: web.Rate{PerSecond: 1, Burst: 1}}, fixtures.NewClock().Now)
	limiter.SetMost(most)
	s := newGuardedWidgets(t, true, func(m *web.Mux) web.Middleware {
		m.Limiter = limiter
		return m.Counted(func(r *http.Request) string { return r.Header.Get("X-Api-Key") })
	}, nil)
	get := func(key string) int { return send(t, s, "GET", "/widgets/1", "", "X-Api-Key", key).Code }
	get("first")
	get("busy")
	for i := range 3 * most {
		get(fmt.Sprint(i))
		if get("busy") != 429 {
			t.Fatal("a caller that asks all the time is forgotten")
		}
	}
	if got := get("first"); got != 200 {
		t.Errorf("got %d for who was forgotten", got)
	}
}

// asWorkspace is a guard that takes a request for a request of the workspace that a header
// names.
func asWorkspace(limits quota.Limits, c *fixtures.Clock) func(*web.Mux) web.Middleware {
	return func(m *web.Mux) web.Middleware {
		m.Limiter = web.NewLimiter(limits, web.Limits{}, c.Now)
		count := m.Counted(nil)
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				web.ActsFor(r.Context(), r.Header.Get("X-Workspace"))
				count(next).ServeHTTP(w, r)
			})
		}
	}
}

// TestAttackAWorkspaceThatAsksTooOften sends requests with several keys and methods: all of
// them share the rate of the workspace.
func TestAttackAWorkspaceThatAsksTooOften(t *testing.T) {
	t.Parallel()
	c := fixtures.NewClock()
	s := newGuardedWidgets(t, true, asWorkspace(quota.Limits{}.With(quota.Requests, 4), c), nil)
	ask := func(workspace string, i int) *httptest.ResponseRecorder {
		method := []string{"GET", "DELETE", "HEAD"}[i%3]
		return send(t, s, method, "/widgets/1", "", "X-Workspace", workspace, "X-Api-Key", fmt.Sprint(i))
	}
	passed, refused := 0, 0
	for i := range 20 {
		if answer := ask("a", i); answer.Code != http.StatusTooManyRequests {
			passed++
		} else if refused++; answer.Header().Get("Retry-After") != "1" {
			t.Errorf("a refusal has the header %v", answer.Header())
		}
	}
	if passed != 8 || refused != 12 {
		t.Errorf("%d passed and %d were refused, want 8 and 12", passed, refused)
	}
	const detail = `{"detail":"The quota requests_per_second of this workspace is used up: its limit is 4. Send fewer requests, ` +
		`or have the operator of the server raise it (--quota requests_per_second=N, on AWS the parameter Quotas)."}`
	if got := ask("a", 0).Body.String(); got != detail {
		t.Errorf("got %s", got)
	}
	if answer := ask("b", 0); answer.Code != http.StatusOK {
		t.Errorf("another workspace got %d", answer.Code)
	}
	c.Pass(time.Second)
	for i := range 5 {
		if got := ask("a", 3*i).Code; (got == http.StatusOK) != (i < 4) {
			t.Errorf("request %d after a second: got %d", i, got)
		}
	}
	none := newGuardedWidgets(t, true, asWorkspace(quota.Limits{}.With(quota.Requests, 0), c), nil)
	if answer := send(t, none, "GET", "/widgets/1", "", "X-Workspace", "a"); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
		t.Errorf("got %d with %v where the quota is 0", answer.Code, answer.Header())
	}
}

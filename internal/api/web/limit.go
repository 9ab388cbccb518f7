package web

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// mostBuckets is how many buckets a Limiter keeps. A caller has at most two.
const mostBuckets = 20_000

// Rate is how often a caller may ask: so many requests at once, and so many per second in the long
// run.
type Rate struct {
	// PerSecond is 0 for no limit.
	PerSecond float64
	Burst     int
}

// Limits are what each caller may ask for. Reads and writes do not count against each other.
type Limits struct {
	Reads, Writes Rate
}

// policy is a Rate as answers name it (draft-ietf-httpapi-ratelimit-headers-10): a quota in a
// window of time.
type policy struct {
	Rate
	name, field string
}

func newPolicy(name string, r Rate) policy {
	r.Burst = max(r.Burst, 1)
	window := 1
	if r.PerSecond > 0 {
		window = max(1, int(math.Ceil(float64(r.Burst)/r.PerSecond)))
	}
	return policy{Rate: r, name: name, field: fmt.Sprintf("%q;q=%d;w=%d", name, r.Burst, window)}
}

// Limiter counts the requests of each caller, in the memory of one process. It is safe for
// concurrent use.
type Limiter struct {
	reads, writes policy
	now           clock.Clock
	most          int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// NewLimiter returns a Limiter that has counted nothing yet.
func NewLimiter(limits Limits, now clock.Clock) *Limiter {
	return &Limiter{
		reads: newPolicy("reads", limits.Reads), writes: newPolicy("writes", limits.Writes),
		now: now, most: mostBuckets, buckets: map[string]*rate.Limiter{},
	}
}

// Limit is the middleware that refuses callers who ask too often: 429, with the time after which it
// is worth asking again. Answers tell how much is left. It belongs behind authentication; caller
// names who sent a request.
func (m *Mux) Limit(l *Limiter, caller func(*http.Request) string) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := l.take(w.Header(), r.Method, caller(r)); err != nil {
				m.Error(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// take counts a request, and says in the header what is left.
func (l *Limiter) take(header http.Header, method, caller string) error {
	p := l.reads
	if changes(method) {
		p = l.writes
	}
	if p.PerSecond <= 0 {
		return nil
	}
	now := l.now()
	bucket := l.bucket(p, caller, now)
	allowed := bucket.AllowN(now, 1)
	left := max(0, bucket.TokensAt(now))
	header.Set("RateLimit-Policy", p.field)
	header.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", p.name, int(left), seconds(p.filling(float64(p.Burst)-left))))
	if allowed {
		return nil
	}
	refusal := fault.New(fault.TooMany, "Too many requests: %d at once and %g per second are allowed.", p.Burst, p.PerSecond)
	refusal.RetryAfter = max(time.Second, p.filling(1-left))
	return refusal
}

// filling is how long it takes until so many tokens more are there.
func (p policy) filling(tokens float64) time.Duration {
	return time.Duration(tokens / p.PerSecond * float64(time.Second))
}

func (l *Limiter) bucket(p policy, caller string, now time.Time) *rate.Limiter {
	name := p.name + "\x00" + caller
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.buckets[name]; known != nil {
		return known
	}
	if len(l.buckets) >= l.most {
		l.forget(now)
	}
	made := rate.NewLimiter(rate.Limit(p.PerSecond), p.Burst)
	l.buckets[name] = made
	return made
}

// forget makes room. A bucket that is full says nothing; when none is, some callers start anew.
func (l *Limiter) forget(now time.Time) {
	for name, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(bucket.Burst()) {
			delete(l.buckets, name)
		}
	}
	for name := range l.buckets {
		if len(l.buckets) <= l.most*9/10 {
			return
		}
		delete(l.buckets, name)
	}
}

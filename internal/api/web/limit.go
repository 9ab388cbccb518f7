package web

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// mostBuckets is how many buckets a Limiter keeps: the buckets that were used last. A caller
// has at most two buckets, and a workspace has one bucket.
const mostBuckets = 20_000

// Rate is how often a caller may send requests: a number of requests at once, and a number of
// requests per second in the long run.
type Rate struct {
	// PerSecond is 0 if there is no limit.
	PerSecond float64
	Burst     int
}

// Limits are the rates of each caller. Reads and writes are counted separately.
type Limits struct {
	Reads, Writes Rate
}

// Shared counts what other processes must know of the requests and the connections that this
// process has counted and accepted. Its refusals are those of quota.Limits.
type Shared interface {
	// Count counts a request of a workspace.
	Count(ctx context.Context, workspace string) error
	// Hold takes a place for a connection of a workspace until leave is called. Deployment and
	// thread are empty for a connection that is not about one thread.
	Hold(ctx context.Context, workspace, deployment, thread string) (leave func(), err error)
	// Visit counts a request of a visitor of a deployment, and takes a place for the connection of
	// the visitor until leave is called.
	Visit(ctx context.Context, workspace, deployment, address string) (leave func(), err error)
}

// policy is a Rate in the form that answers name it (draft-ietf-httpapi-ratelimit-headers-10):
// a quota in a window of time.
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

// Buckets count requests by a name. They are limiters with bounded memory, not a cache: they are
// kept for the names that were used last, and a name that is dropped begins with a full bucket.
type Buckets struct {
	cache *lru.Cache[string, *rate.Limiter]
}

// NewBuckets returns buckets that are full.
func NewBuckets() *Buckets { return &Buckets{lru.New[string, *rate.Limiter](mostBuckets)} }

// Wait is how long a caller must wait until a bucket, which is filled at a rate, has a request.
func (b *Buckets) Wait(name string, r Rate, now time.Time) time.Duration {
	if left := b.of(name, r).TokensAt(now); left < 1 {
		return r.filling(1 - left)
	}
	return 0
}

// Take takes a request out of a bucket. A bucket that has no request owes this one.
func (b *Buckets) Take(name string, r Rate, now time.Time) { b.of(name, r).ReserveN(now, 1) }

func (b *Buckets) of(name string, r Rate) *rate.Limiter {
	return b.cache.Make(name, 1, func() *rate.Limiter { return rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst) })
}

// Limiter counts, in the memory of one process, the requests of each workspace and of each
// caller, and the waiting connections of each workspace and of each thread. It is safe for
// concurrent use.
type Limiter struct {
	quotas        quota.Limits
	reads, writes policy
	now           clock.Clock
	buckets       *Buckets
	open          waiters
	// counts are the requests of the workspaces that sent requests last.
	counts *lru.Cache[string, *requestCount]
	// Shared makes the quotas of workspaces, and the parts of them that visitors have, hold for
	// all processes that share the counts; nil if there are no others. Callers are still counted
	// by each process: in a stack API Gateway bounds callers.
	Shared Shared
}

// NewLimiter returns a Limiter that has counted nothing yet. Callers have limits of their own
// besides the quotas of their workspace.
func NewLimiter(quotas quota.Limits, callers Limits, now clock.Clock) *Limiter {
	return &Limiter{
		quotas: quotas, reads: newPolicy("reads", callers.Reads), writes: newPolicy("writes", callers.Writes),
		now: now, buckets: NewBuckets(), open: waiters{taken: map[string]int64{}}, counts: lru.New[string, *requestCount](mostBuckets),
	}
}

// Counted is the middleware that refuses the requests of workspaces and callers that ask too
// often: 429, with the time after which a new request is worth sending. It belongs behind
// ActsFor. caller names the caller that sent a request; answers tell this caller how many
// requests are left. If caller is nil, only the workspace is counted.
func (m *Mux) Counted(caller func(*http.Request) string) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := m.count(w.Header(), r, caller); err != nil {
				m.Error(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// count counts the caller first: a caller that is refused takes nothing from the other callers
// of its workspace.
func (m *Mux) count(header http.Header, r *http.Request, caller func(*http.Request) string) error {
	if m.Limiter == nil {
		return nil
	}
	if caller != nil {
		if err := m.Limiter.takeOfCaller(header, r.Method, caller(r)); err != nil {
			return err
		}
	}
	workspace := ownerOf(r)
	if err := m.Limiter.takeOfWorkspace(workspace); err != nil || m.Limiter.Shared == nil {
		return err
	}
	return m.Limiter.Shared.Count(r.Context(), workspace)
}

// takeOfCaller counts a request, and states in the header how many requests are left.
func (l *Limiter) takeOfCaller(header http.Header, method, caller string) error {
	p := l.reads
	if changes(method) {
		p = l.writes
	}
	if p.PerSecond <= 0 {
		return nil
	}
	allowed, left := l.take(p.name+"\x00"+caller, p.Rate)
	header.Set("RateLimit-Policy", p.field)
	header.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", p.name, int(left), seconds(p.filling(float64(p.Burst)-left))))
	if allowed {
		return nil
	}
	refusal := fault.New(fault.TooMany, "Too many requests: %d at once and %g per second are allowed.", p.Burst, p.PerSecond)
	refusal.RetryAfter = p.waiting(left)
	return refusal
}

// takeOfWorkspace counts a request of a workspace. Twice the quota of a second is accepted at once.
func (l *Limiter) takeOfWorkspace(workspace string) error {
	perSecond := l.quotas.Of(quota.Requests)
	if perSecond <= 0 {
		return l.quotas.Refuse(quota.Requests)
	}
	r := Rate{PerSecond: float64(perSecond), Burst: int(2 * perSecond)}
	allowed, left := l.take("workspace\x00"+workspace, r)
	if allowed {
		l.counts.Make(workspace, 1, func() *requestCount { return &requestCount{} }).add(windowAt(l.now()))
		return nil
	}
	refusal := l.quotas.Refuse(quota.Requests)
	refusal.RetryAfter = r.waiting(left)
	return refusal
}

// take takes a token of a bucket if there is a token, and returns how many tokens are left.
func (l *Limiter) take(name string, r Rate) (allowed bool, left float64) {
	now := l.now()
	bucket := l.buckets.of(name, r)
	allowed = bucket.AllowN(now, 1)
	return allowed, max(0, bucket.TokensAt(now))
}

// filling is how long it takes until the bucket has this many more tokens.
func (r Rate) filling(tokens float64) time.Duration {
	return time.Duration(tokens / r.PerSecond * float64(time.Second))
}

// waiting is how long a client should wait whose request found less than one token in the
// bucket.
func (r Rate) waiting(left float64) time.Duration { return max(time.Second, r.filling(1-left)) }

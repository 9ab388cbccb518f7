// Package strangers bounds the requests of strangers to the authentications of repositories. A
// stranger is a caller with credentials for which the repository has let no request in recently:
// the agent decides about each such request. Its tests are those of package agentserver, which are
// over HTTP.
package strangers

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Limits are the bounds. A member that is zero gets the default in its comment.
type Limits struct {
	// PerAddress is how many requests of one address are refused (10 a second, 100 at once),
	// PerDeployment how many requests to one deployment are refused (100 a second, 1000 at
	// once). Beyond that, the agent is not asked.
	PerAddress, PerDeployment web.Rate
	// AtOnceOfAddress is how many questions of one address an agent works on at a time (8), AtOnce
	// how many of all strangers (16).
	AtOnceOfAddress, AtOnce int
	// Shared counts strangers for all processes that serve a deployment; with nil, each process
	// counts its own.
	Shared *quota.Strangers
}

const (
	// rememberedFor is how long the server knows credentials that a repository has let in.
	rememberedFor = 10 * time.Minute
	// mostRemembered is the largest number of credentials that the server knows.
	mostRemembered = 20_000
)

// Limiter counts the requests of strangers.
type Limiter struct {
	now     clock.Clock
	limits  Limits
	refused *web.Buckets
	// known has, for credentials, the time when a request with them was last let in. It is a part
	// of the limiter, not a cache: it has no answer of a repository, and a caller whose
	// credentials were dropped counts as a stranger again.
	known *lru.Cache[[sha256.Size]byte, time.Time]

	mu sync.Mutex
	// asking has the number of questions under way.
	asking map[string]int
}

// New returns a limiter that has counted nothing.
func New(l Limits, now clock.Clock) *Limiter {
	l.PerAddress, l.PerDeployment = cmp.Or(l.PerAddress, web.Rate{PerSecond: 10, Burst: 100}), cmp.Or(l.PerDeployment, web.Rate{PerSecond: 100, Burst: 1000})
	l.AtOnceOfAddress, l.AtOnce = cmp.Or(l.AtOnceOfAddress, 8), cmp.Or(l.AtOnce, 16)
	return &Limiter{
		now: now, limits: l, asking: map[string]int{},
		refused: web.NewBuckets(), known: lru.New[[sha256.Size]byte, time.Time](mostRemembered),
	}
}

// Question is a request that an agent decides about.
type Question struct {
	of          *Limiter
	credentials [sha256.Size]byte
	// remembered says that the request has credentials to remember.
	remembered bool
	began      time.Time
	// bounds are what the question counts for; no bounds for a known caller.
	bounds []bound
	places []string
	// toAll tells the answer to the counts for all processes; nil if the question is not in them.
	toAll func(letIn bool)
}

// bound bounds the strangers with one name: how many of their requests are refused, and how many
// of their questions are under way.
type bound struct {
	name string
	rate web.Rate
	most int
}

// Admit takes places for a request, so that the agent may be asked about it, or refuses the
// request. Known callers need no places, so strangers do not keep them out.
func (s *Limiter) Admit(r *http.Request, d deployment.Deployment, identified bool) (*Question, error) {
	q := &Question{of: s, began: s.now()}
	q.credentials, q.remembered = credentialsOf(r, d)
	if identified {
		return q, nil
	}
	if q.remembered {
		if letIn, ok := s.known.Get(q.credentials); ok && q.began.Sub(letIn) < rememberedFor {
			return q, nil
		}
	}
	if s.limits.Shared != nil {
		return q, q.share(r, d)
	}
	from := d.Deployment + " " + inbound.Group(r.RemoteAddr)
	q.bounds = []bound{{from, s.limits.PerAddress, s.limits.AtOnceOfAddress}, {d.Deployment, s.limits.PerDeployment, s.limits.AtOnce}}
	for _, b := range q.bounds {
		wait := s.refused.Wait(b.name, b.rate, q.began)
		if wait == 0 && !q.occupy(b.name, b.most) {
			wait = time.Second
		}
		if wait > 0 {
			q.end()
			return nil, tooMany(wait)
		}
	}
	return q, nil
}

func tooMany(wait time.Duration) error {
	refusal := fault.New(fault.TooMany, "Too many requests with credentials that this deployment does not know.")
	refusal.RetryAfter = max(wait, time.Second)
	return refusal
}

// share takes places that count for all processes.
func (q *Question) share(r *http.Request, d deployment.Deployment) error {
	l := q.of.limits
	request := quota.Question{Workspace: d.Workspace, Deployment: d.Deployment, Bounds: []quota.StrangerBound{
		{Origin: inbound.Group(r.RemoteAddr), PerSecond: l.PerAddress.PerSecond, Burst: l.PerAddress.Burst, AtOnce: l.AtOnceOfAddress},
		{PerSecond: l.PerDeployment.PerSecond, Burst: l.PerDeployment.Burst, AtOnce: l.AtOnce},
	}}
	if q.remembered {
		request.Caller = q.credentials[:]
	}
	answered, wait, err := l.Shared.Begin(r.Context(), request)
	if err != nil {
		return err
	}
	if wait > 0 {
		return tooMany(wait)
	}
	q.toAll = func(letIn bool) { answered(r.Context(), letIn, rememberedFor) }
	return nil
}

// occupy counts a question that is under way.
func (q *Question) occupy(name string, most int) bool {
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	if q.of.asking[name] >= most {
		return false
	}
	q.of.asking[name]++
	q.places = append(q.places, name)
	return true
}

// end gives back the places that the question has taken.
func (q *Question) end() {
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	for _, name := range q.places {
		if q.of.asking[name]--; q.of.asking[name] == 0 {
			delete(q.of.asking, name)
		}
	}
}

// Answered notes the decision of the agent. Only a request that was refused counts for the
// rates.
func (q *Question) Answered(letIn bool) {
	switch {
	case !q.remembered:
	case letIn:
		q.of.known.Put(q.credentials, q.began, 1)
	default:
		q.of.known.Drop(q.credentials)
	}
	if q.toAll != nil {
		q.toAll(letIn)
	}
	if !letIn {
		for _, b := range q.bounds {
			q.of.refused.Take(b.name, b.rate, q.of.now())
		}
	}
	q.end()
}

// credentialsOf returns a digest of the credentials of a request to a deployment, and whether
// the request has credentials.
func credentialsOf(r *http.Request, d deployment.Deployment) (sum [sha256.Size]byte, ok bool) {
	text := sha256.New()
	fmt.Fprintln(text, d.Deployment)
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
		for _, value := range r.Header.Values(name) {
			ok = true
			fmt.Fprintln(text, name, value)
		}
	}
	return [sha256.Size]byte(text.Sum(nil)), ok
}

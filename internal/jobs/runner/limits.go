package runner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// errTimedOut says that a run took longer than its deployment allows.
var errTimedOut = errors.New("the run took too long")

// mostKnown bounds the memory of the limits that are remembered, and knownSize is the memory of
// the limits of one release, both in bytes. A run whose release is remembered saves two or more
// reads and the opening of the release's secrets: 51 µs on one machine (BenchmarkRunLimits),
// requests to DynamoDB and KMS on AWS.
const (
	mostKnown = 1 << 20
	knownSize = 256
)

// started is a release since one of its restarts.
type started struct {
	compute.Ref

	restart string
}

// limitsOf returns the limits of a release. They are read once, and once after each restart.
func (r *Runner) limitsOf(ctx context.Context, release started) (compute.RunLimits, error) {
	limits, ok := r.known.Get(release)
	if ok {
		return limits, nil
	}
	if r.ReadLimits != nil {
		var err error
		if limits, err = r.ReadLimits(ctx, release.Ref); err != nil {
			return compute.RunLimits{}, err
		}
	}
	limits.Timeout = cmp.Or(limits.Timeout, r.Timeout)
	r.known.Put(release, limits, knownSize)
	return limits, nil
}

// within returns the context of a run's work. It ends when all attempts of the run together
// have taken too long.
func (r *Runner) within(ctx context.Context, attempt *run.Attempt, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit-r.Runs.Elapsed(attempt.Run), errTimedOut)
}

// gates limit how many runs of each deployment one process works on at a time; the other runs
// wait in the order in which they came.
type gates struct {
	mu sync.Mutex
	of map[string]*gate
}

type gate struct {
	inside  int
	waiting []chan struct{}
}

// enter waits for a place. The caller must leave afterwards. waited says whether no place was
// free at once.
func (g *gates) enter(ctx context.Context, deployment string, jobs int) (leave func(), waited bool, err error) {
	g.mu.Lock()
	if g.of == nil {
		g.of = map[string]*gate{}
	}
	at := g.of[deployment]
	if at == nil {
		at = new(gate)
		g.of[deployment] = at
	}
	leave = func() { g.leave(deployment, at) }
	if at.inside < jobs && len(at.waiting) == 0 {
		at.inside++
		g.mu.Unlock()
		return leave, false, nil
	}
	turn := make(chan struct{})
	at.waiting = append(at.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return leave, true, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	before := len(at.waiting)
	at.waiting = slices.DeleteFunc(at.waiting, func(other chan struct{}) bool { return other == turn })
	had := len(at.waiting) == before // the turn came at the same moment
	g.mu.Unlock()
	if had {
		leave()
	}
	return nil, true, ctx.Err()
}

// leave gives a place to the next waiting run.
func (g *gates) leave(deployment string, at *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(at.waiting) > 0 {
		close(at.waiting[0])
		at.waiting = at.waiting[1:]
		return
	}
	if at.inside--; at.inside == 0 {
		delete(g.of, deployment)
	}
}

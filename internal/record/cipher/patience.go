package cipher

import (
	"maps"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
)

const (
	// silentPause is how long timers do not ask a deployment that gave no answer within
	// answerLimit.
	silentPause = 30 * time.Second
	// slowPause is how long timers do not ask a deployment whose answer was a failure that took
	// longer than slow. Its agent may be starting.
	slowPause = 3 * time.Second
	slow      = 500 * time.Millisecond
	// mostWaiting is how long timers wait for the deployments of one workspace in a window of time.
	mostWaiting = 5 * time.Second
	window      = 30 * time.Second
)

// patience bounds how long timers wait for the answers of deployments, because the items of other
// workspaces wait meanwhile. In each window, the deployments of a workspace keep a timer for
// mostWaiting and one answerLimit at most, also if their handlers fail. It remembers nothing that
// is older than its limits.
type patience struct {
	now clock.Clock

	mu sync.Mutex
	// paused has the times until which deployments are not asked.
	paused map[keys.DeploymentParts]time.Time
	// waits are the waits for the deployments of each workspace.
	waits map[string]*waits
}

// waits add up the time in which at least one question of a timer to a workspace was under way.
type waits struct {
	since time.Time
	sum   time.Duration
	// asking counts the questions that are under way, and begun is when there was none last.
	asking int
	begun  time.Time
}

func newPatience(now clock.Clock) *patience {
	return &patience{now: now, paused: map[keys.DeploymentParts]time.Time{}, waits: map[string]*waits{}}
}

// begin begins a timer's question to a deployment, which ends with end. The error is an
// unavailableError if timers do not wait for the deployment now.
func (p *patience) begin(of keys.DeploymentParts) (end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Before(p.paused[of]) {
		return nil, failed("The repository's own encryption did not answer a moment ago. Timers ask it again soon.")
	}
	w := p.of(of.Workspace, now)
	if w.until(now) >= mostWaiting {
		return nil, failed("Timers have waited long for the workspace's own encryptions. They go on soon.")
	}
	if w.asking == 0 {
		w.begun = now
	}
	w.asking++
	return func() { p.end(w) }, nil
}

func (p *patience) end(w *waits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.asking--; w.asking == 0 {
		w.sum += p.now().Sub(w.begun)
	}
}

// of returns the waits of a workspace in the present window.
func (p *patience) of(workspace string, now time.Time) *waits {
	w := p.waits[workspace]
	if w == nil {
		maps.DeleteFunc(p.waits, func(_ string, w *waits) bool { return w.asking == 0 && w.isOver(now) })
		w = &waits{since: now}
		p.waits[workspace] = w
	}
	if w.isOver(now) {
		w.since, w.begun, w.sum = now, now, 0
	}
	return w
}

func (w *waits) isOver(now time.Time) bool { return now.Sub(w.since) >= window }

func (w *waits) until(now time.Time) time.Duration {
	if w.asking == 0 {
		return w.sum
	}
	return w.sum + now.Sub(w.begun)
}

// pause lets timers not ask a deployment for some time.
func (p *patience) pause(of keys.DeploymentParts, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	maps.DeleteFunc(p.paused, func(_ keys.DeploymentParts, until time.Time) bool { return !now.Before(until) })
	if until := now.Add(d); until.After(p.paused[of]) {
		p.paused[of] = until
	}
}

// answered ends the pause of a deployment.
func (p *patience) answered(of keys.DeploymentParts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.paused, of)
}

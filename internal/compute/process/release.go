package process

import (
	"context"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/compute"
)

// release is one revision that the target runs, and the state that its supervisor publishes.
type release struct {
	target *Target
	spec   compute.Release
	// ctx ends when the agent must stop.
	ctx  context.Context
	stop context.CancelFunc
	// ended is closed when the agent has stopped for good.
	ended chan struct{}

	mu       sync.Mutex
	status   compute.Status
	url      string // where the agent answers while status is Healthy
	callers  int
	draining bool
	// changed is closed, and replaced, at each change of the fields above.
	changed chan struct{}
}

func newRelease(t *Target, spec compute.Release) *release {
	r := &release{
		target:  t,
		spec:    spec,
		ended:   make(chan struct{}),
		status:  compute.Status{State: compute.Progressing, Message: "it is starting"},
		changed: make(chan struct{}),
	}
	r.ctx, r.stop = context.WithCancel(t.stop)
	return r
}

// supervise runs the agent from its first start until the release is to stop. It gives up only while the agent has never been healthy.
func (r *release) supervise() {
	defer close(r.ended)
	defer r.stop()
	running, failure := r.start()
	if failure != nil && failure.Reason == compute.ReasonPortTaken && !hasFixedPort(r.spec) {
		// Somebody took the port between its choice and its use: another one will do.
		running, failure = r.start()
	}
	if failure != nil {
		r.publish(*failure, "")
		return
	}
	pause := r.target.cfg.RestartMin
	for running != nil {
		healthySince := time.Now()
		r.publish(compute.Status{State: compute.Healthy}, running.url)
		failure = r.follow(running)
		if time.Since(healthySince) > r.target.cfg.RestartMax {
			pause = r.target.cfg.RestartMin
		}
		running, pause = r.restart(failure, pause)
	}
}

// follow returns why a healthy agent has ended, by itself or because the release is to stop.
func (r *release) follow(a *agent) *compute.Status {
	select {
	case <-a.process.Done():
		r.close(a)
		r.target.cfg.Log.Warn("agent ended", "revision", r.spec.Revision, "how", a.exit())
		return a.failure(compute.ReasonStartFailed, "the agent "+a.exit().String())
	case <-r.ctx.Done():
		r.publish(stopping, "")
		r.end(a)
		return &stopping
	}
}

// restart starts the agent again, after a pause that doubles with each failure, until it is healthy. It returns no agent when the
// release is to stop.
func (r *release) restart(failure *compute.Status, pause time.Duration) (*agent, time.Duration) {
	for r.ctx.Err() == nil {
		r.publish(compute.Status{State: compute.Progressing, Message: failure.Message + "\nIt is being restarted."}, "")
		if !sleep(r.ctx, pause) {
			break
		}
		pause = min(2*pause, r.target.cfg.RestartMax)
		var running *agent
		if running, failure = r.start(); failure == nil {
			return running, pause
		}
	}
	r.publish(stopping, "")
	return nil, pause
}

// stopping is the status of a release that takes no more callers.
var stopping = compute.Status{State: compute.Absent, Message: "it is being stopped"}

// publish makes a new status known, except that a draining release stays absent for callers.
func (r *release) publish(status compute.Status, url string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.url = url
	if !r.draining {
		r.status = status
	}
	r.announce()
}

// announce wakes those who wait for a change. The caller holds r.mu.
func (r *release) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *release) report() compute.Status {
	status, _ := r.watch()
	return status
}

// watch returns the status and a channel that is closed when it may have changed.
func (r *release) watch() (compute.Status, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, r.changed
}

// enter counts a caller in if the release is healthy.
func (r *release) enter() (compute.Endpoint, compute.Status, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.State == compute.Healthy {
		r.callers++
	}
	return compute.Endpoint{URL: r.url, Token: r.spec.Token}, r.status, r.changed
}

// leave counts a caller out.
func (r *release) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers--
	r.announce()
}

// drain lets no more callers in.
func (r *release) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	r.status = stopping
	r.announce()
}

// finish waits for the callers of a draining release, within the limit, and stops it.
func (r *release) finish() {
	limit := time.NewTimer(r.target.cfg.DrainLimit)
	defer limit.Stop()
	for {
		callers, changed := r.present()
		if callers == 0 {
			break
		}
		select {
		case <-changed:
			continue
		case <-limit.C:
			r.target.cfg.Log.Warn("agent stopped before its callers had left", "revision", r.spec.Revision, "callers", callers)
		case <-r.ended:
		}
		break
	}
	r.stop()
	<-r.ended
}

// present returns the number of callers and a channel that is closed when it may have changed.
func (r *release) present() (int, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.callers, r.changed
}

// sleep waits for the pause and reports whether ctx is still on.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

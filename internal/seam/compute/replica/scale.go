package replica

import (
	"slices"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

const (
	// jobsVariable is the predefined setting that says how many runs a replica is meant for at a
	// time.
	jobsVariable = "N_JOBS_PER_WORKER"
	defaultJobs  = 10
)

// jobsOf is how many callers a replica of the release is meant for. It gets more where no more
// replicas are allowed, or none comes within RoomLimit.
func jobsOf(spec compute.Release) int {
	for _, env := range []map[string]string{spec.Env, spec.Artifact.Env} {
		if jobs, err := strconv.Atoi(env[jobsVariable]); err == nil && jobs > 0 {
			return jobs
		}
	}
	return defaultJobs
}

// scale keeps as many replicas as there is work for until the release is to stop.
func (r *release) scale() {
	defer r.supervised.Wait()
	// over runs while there are more replicas than there is work for.
	over := time.NewTimer(r.target.limits.IdleLimit)
	defer over.Stop()
	for idling := false; ; {
		present, wanted, changed := r.look()
		for ; present < wanted; present++ {
			s := r.add()
			r.supervised.Go(r.guarded(func() { s.supervise(nil) }))
		}
		if present > wanted && !idling {
			over.Reset(r.target.limits.IdleLimit)
		}
		idling = present > wanted
		var idle <-chan time.Time
		if idling {
			idle = over.C
		}
		if r.lowest == r.highest {
			changed = nil // nothing that could happen is of interest
		}
		select {
		case <-changed:
		case <-idle:
			r.retire()
			over.Reset(r.target.limits.IdleLimit)
		case <-r.ctx.Done():
			return
		}
	}
}

// look returns how many replicas there are, and for how many there is work: for those callers that
// are in, and for those that wait.
func (r *release) look() (present, wanted int, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.slots {
		if !s.closing {
			present++
		}
	}
	wanted = (r.callers + r.waiting + r.jobs - 1) / r.jobs
	return present, min(max(wanted, r.lowest), r.highest), r.changed
}

// retire takes the replica away that has the fewest callers: at once for new ones, and for good
// when those that are there have left. They have as long as the release lives, since nobody would
// take over what they do.
func (r *release) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var chosen *slot
	for _, s := range r.slots {
		if !s.closing && (chosen == nil || s.callers <= chosen.callers) {
			chosen = s
		}
	}
	chosen.closing = true
	r.set(compute.Status{State: compute.Progressing, Message: "its replicas are starting"})
	r.supervised.Go(r.guarded(func() {
		r.awaitLeave(func() int { return chosen.callers }, nil, r.ctx.Done())
		chosen.stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.slots = slices.DeleteFunc(r.slots, func(s *slot) bool { return s == chosen })
	}))
}

package replica

import (
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// scale keeps as many replicas as there is work for, until the release must stop, and returns when
// all replicas have ended. A release that sleeps has none.
func (r *release) scale() {
	defer r.supervised.Wait()
	if r.sleeps {
		r.supervised.Go(r.guarded(r.nap))
	}
	// idle fires when there were more replicas than there is work for, for IdleLimit.
	var idle <-chan time.Time
	for {
		present, wanted, changed := r.look()
		for ; present < wanted; present++ {
			s := r.add()
			if s == nil {
				break // it has just gone to sleep
			}
			r.supervised.Go(r.guarded(func() { s.supervise(nil) }))
		}
		if present <= wanted {
			idle = nil
		} else if idle == nil {
			idle = time.After(r.target.limits.IdleLimit)
		}
		r.target.makeRoom()
		if r.lowest == r.highest && !r.sleeps {
			changed = nil // the wanted number of replicas does not change
		}
		select {
		case <-changed:
		case <-idle:
			r.retire()
			idle = nil
		case <-r.ctx.Done():
			return
		}
	}
}

// look returns how many replicas there are, and for how many replicas there is work. Callers
// at replicas and waiting callers count as work.
func (r *release) look() (present, wanted int, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asleep {
		return len(r.slots), 0, r.changed
	}
	wanted = (r.callers + r.waiting + r.jobs - 1) / r.jobs
	return len(r.slots), min(max(wanted, r.lowest), r.highest), r.changed
}

// retire takes away the replica that has the fewest callers, if the release has not just gone to
// sleep. From then on the replica gets no new callers, and it ends when its present callers have
// left. These callers have as long as the release lives, because no other replica would take over
// their work.
func (r *release) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var chosen *slot
	for _, s := range r.slots {
		if chosen == nil || s.callers <= chosen.callers {
			chosen = s
		}
	}
	if chosen == nil {
		return
	}
	r.slots = slices.DeleteFunc(r.slots, func(s *slot) bool { return s == chosen })
	r.set(compute.Status{State: compute.Progressing, Message: "its replicas are starting"})
	r.supervised.Go(r.guarded(func() {
		r.awaitLeave(func() int { return chosen.callers }, nil, r.ctx.Done())
		chosen.stop()
	}))
}

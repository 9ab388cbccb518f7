package replica

import (
	"maps"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// A release that may go down to no replica sleeps: it is healthy without a replica, and the
// next caller wakes it. A caller counts until it has left, so nothing that is under way is
// cut. A release that sleeps takes part in restarts and removals like every other release.
//
// The example agents take 77 MiB (Python) and 107 MiB (JavaScript) when they are idle. On a busy
// machine with two processors, on which they had started in 4.5 s and 2.5 s, they woke in 3.5 to
// 5.2 s and 1.7 to 2.3 s; an agent in Go woke in 0.03 to 0.06 s.

// waking is the status of a release for callers that wait for it to wake.
var waking = compute.Status{State: compute.Progressing, Reason: compute.ReasonWaking, Message: "it slept because nobody called it, and is starting"}

// mayRest reports whether the release has nothing to do. The caller holds r.mu.
func (r *release) mayRest() bool {
	return r.sleeps && !r.asleep && !r.waking && !r.isStarting() && !r.draining && !r.trying &&
		r.status.State == compute.Healthy && r.callers == 0 && r.waiting == 0
}

// sleep puts the release to sleep if it had no callers for a time, and reports how long it must
// still have none if it did not.
func (r *release) sleep(after time.Duration) (left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mayRest() {
		return after
	}
	if left = after - time.Since(r.idleSince); left > 0 {
		return left
	}
	r.asleep = true
	for _, s := range r.slots {
		s.stop()
	}
	r.slots = nil
	r.set(compute.Status{State: compute.Healthy})
	r.target.log.Info("agent sleeps", "deployment", r.spec.Deployment, "revision", r.revision, "idle", time.Since(r.idleSince).Round(time.Millisecond))
	return after
}

// nap puts the release to sleep whenever it had no callers for SleepAfter. When it had none for
// YieldAfter, it may have to make room.
func (r *release) nap() {
	limits := r.target.limits
	for left := time.Duration(0); ; {
		select {
		case <-time.After(left):
		case <-r.ctx.Done():
			return
		}
		left = r.sleep(limits.SleepAfter)
		if limits.Awake == 0 {
			continue
		}
		untilYield := limits.YieldAfter - (limits.SleepAfter - left)
		if untilYield <= 0 {
			r.target.makeRoom()
			untilYield = limits.YieldAfter // it may have callers in between
		}
		left = min(left, untilYield)
	}
}

// wake makes the scaler start a replica of a release that sleeps. Until that start has failed,
// the release stays healthy. The caller holds r.mu.
func (r *release) wake() {
	if r.asleep {
		r.asleep, r.waking, r.wokenAt = false, true, time.Now()
		r.announce()
	}
}

// awoke notes that a replica is healthy, or that a release could not be woken. The caller holds
// r.mu.
func (r *release) awoke(failure *compute.Status) {
	if !r.waking {
		return
	}
	r.waking = false
	took := time.Since(r.wokenAt).Round(time.Millisecond)
	if failure != nil {
		r.target.log.Warn("agent did not wake", "deployment", r.spec.Deployment, "revision", r.revision, "took", took, "reason", failure.Reason)
		return
	}
	r.target.log.Info("agent woke", "deployment", r.spec.Deployment, "revision", r.revision, "took", took)
}

// makeRoom puts the releases to sleep that had no callers for the longest time, until no more
// than Awake are awake. Releases with callers, and those that had some within YieldAfter, stay
// awake: else agents that are called in turn would start at each call.
func (t *Target) makeRoom() {
	if t.limits.Awake == 0 {
		return
	}
	t.room.Lock()
	defer t.room.Unlock()
	type resting struct {
		*release
		since time.Time
	}
	var all []resting
	awake := t.awake(func(r *release) {
		if r.mayRest() && time.Since(r.idleSince) >= t.limits.YieldAfter {
			all = append(all, resting{r, r.idleSince})
		}
	})
	slices.SortFunc(all, func(a, b resting) int { return a.since.Compare(b.since) })
	for _, r := range all[:min(max(awake-t.limits.Awake, 0), len(all))] {
		r.sleep(t.limits.YieldAfter)
	}
}

// beginAsleep puts a release to sleep that has Rested, if more than Awake would be awake with
// it.
func (t *Target) beginAsleep(r *release) bool {
	if !r.sleeps || !r.spec.Rested || t.limits.Awake == 0 {
		return false
	}
	t.room.Lock()
	defer t.room.Unlock()
	if t.awake(func(*release) {}) <= t.limits.Awake {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asleep = true
	r.set(compute.Status{State: compute.Healthy})
	return true
}

// awake counts the releases that are awake or starting and may sleep, and calls visit for each
// of them with its mu held.
func (t *Target) awake(visit func(*release)) (count int) {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.releases))
	t.mu.Unlock()
	for _, r := range all {
		r.mu.Lock()
		if r.sleeps && !r.asleep && !r.draining && r.status.State != compute.Failed {
			count++
			visit(r)
		}
		r.mu.Unlock()
	}
	return count
}

package replica

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// release is one revision that the target runs, and the state that its supervisors publish.
type release struct {
	target   *Target
	revision string
	// spec is the release as it was applied, until the host has prepared it. The first
	// supervisor starts after the preparation.
	spec compute.Release
	host Prepared
	// lowest and highest bound the number of replicas, once the host has prepared the release.
	// jobs is the number of callers that each replica is meant for.
	lowest, highest, jobs int
	// ctx ends when the replicas must stop.
	ctx  context.Context
	stop context.CancelFunc
	// ended is closed when the replicas have stopped for good.
	ended chan struct{}
	// supervised counts the supervisors of the replicas.
	supervised sync.WaitGroup

	mu     sync.Mutex
	status compute.Status
	// slots are the places of the replicas that are wanted.
	slots []*slot
	// turn is the slot that gets the next caller if several slots have equally few callers.
	turn int
	// callers is the number of callers at replicas. waiting is the number of callers that wait
	// for a healthy replica with room.
	callers, waiting int
	// sleeps says that the release may sleep, and asleep that it does. waking says that callers
	// have woken it at wokenAt, and that it has not been healthy since. idleSince is when its
	// last caller left, or when it became healthy.
	sleeps, asleep, waking bool
	wokenAt, idleSince     time.Time
	// ends counts how often replicas had to be started again since the release was first
	// healthy. relapse says why the release cannot be relied on, "" while it can.
	ends     int
	relapse  string
	draining bool
	// broken is the status of a release whose supervision has panicked. It replaces every
	// other published status.
	broken *compute.Status
	// trying says that the release is a successor which has not taken the place of the
	// previous release. If it does not start, no alarm is raised.
	trying bool
	// changed is closed, and replaced, at each change of the fields above.
	changed chan struct{}
}

func newRelease(t *Target, spec compute.Release) *release {
	r := &release{
		target: t, revision: spec.Revision, spec: spec,
		ended:   make(chan struct{}),
		status:  compute.Status{State: compute.Progressing, Message: "it is starting"},
		changed: make(chan struct{}),
	}
	r.ctx, r.stop = context.WithCancel(t.stop)
	return r
}

// run keeps the release running from its first start until the release must stop. It gives up
// only while no replica has ever been healthy.
func (r *release) run() {
	defer close(r.ended)
	defer r.stop()
	if r.ctx.Err() != nil {
		r.publish(stopping)
		return
	}
	host, failure := r.target.host.Prepare(r.ctx, r.spec)
	if failure != nil {
		r.fail(*failure)
		return
	}
	r.prepared(host)
	if !r.target.beginAsleep(r) {
		r.target.makeRoom()
		first := r.add()
		running, failure := first.start()
		if failure != nil {
			r.fail(*failure)
			return
		}
		r.supervised.Go(r.guarded(func() { first.supervise(running) }))
	}
	r.scale()
	r.publish(stopping)
}

// guarded returns work of the release for a goroutine of its own. A panic of the work ends
// this release, because the state of its replicas is unknown then. It ends no other release.
func (r *release) guarded(work func()) func() {
	return func() {
		err := guard.Run(r.target.log, "supervise revision "+r.revision, func() error {
			work()
			return nil
		})
		if err != nil {
			r.breakDown()
		}
	}
}

// breakDown ends a release whose supervision has panicked.
func (r *release) breakDown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.stop()
	if r.broken != nil {
		return
	}
	r.broken = Failed(compute.ReasonInternal, "the platform could not run this agent; the server's log says why. Tell its operator.")
	if !r.trying {
		r.target.raise(r.spec.Ref, *r.broken)
	}
	r.set(*r.broken)
}

// prepared notes the results of the preparation. The release has no size before.
func (r *release) prepared(host Prepared) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host, r.spec = host, host.Release()
	size := r.spec.Resources.OrDefaults()
	r.lowest, r.highest, r.jobs = size.MinScale, size.MaxScale, r.spec.Jobs()
	r.sleeps = r.target.limits.SleepAfter > 0 && r.spec.Resources.MinScale == 0
}

// add makes room for one more replica. It returns nil if the release sleeps.
func (r *release) add() *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asleep {
		return nil
	}
	s := &slot{release: r, starting: true, wakes: r.waking}
	s.ctx, s.stop = context.WithCancel(r.ctx)
	r.slots = append(r.slots, s)
	return s
}

// stopping is the status of a release that takes no more callers.
var stopping = compute.Status{State: compute.Absent, Message: "it is being stopped"}

// fail publishes why the release will not become healthy, and raises the alarm.
func (r *release) fail(why compute.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ctx.Err() != nil:
		why = stopping
	case !r.trying:
		r.target.raise(r.spec.Ref, why)
	}
	r.set(why)
}

// publish publishes a new status, except that a draining release stays absent for callers.
func (r *release) publish(status compute.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(status)
}

// set is publish for a caller that holds r.mu. A release with a healthy replica is healthy,
// also if another replica is not. So is a release that sleeps or wakes.
func (r *release) set(status compute.Status) {
	serves := func(s *slot) bool { return s.url != "" }
	if status.State == compute.Progressing && (r.asleep || r.waking || slices.ContainsFunc(r.slots, serves)) {
		status = compute.Status{State: compute.Healthy}
	}
	if r.broken != nil {
		status = *r.broken
	}
	if status.State == compute.Healthy {
		status.Image = r.spec.Artifact.Image
	}
	if !r.draining {
		r.status = status
	}
	r.announce()
}

// announce wakes the goroutines that wait for a change. The caller holds r.mu.
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

// crowded is the status of a release for callers that wait for a replica with room.
var crowded = compute.Status{State: compute.Progressing, Message: "its replicas are busy, and one more is starting"}

// visitor is a caller that wants to enter.
type visitor struct {
	// patient says that the caller waits for a replica with room. queued says that it is
	// counted among the waiting callers.
	patient, queued bool
}

// enter counts a caller in at the healthy replica that has the fewest callers, in turn if
// several replicas have equally few. leave is nil if no replica is healthy. For a patient
// caller, leave is also nil if all replicas have as many callers as they are meant for and one
// more replica is to come. A caller that gets no leave is in the queue. A release that sleeps is
// woken.
func (r *release) enter(v *visitor) (endpoint compute.Endpoint, leave func(), status compute.Status, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var chosen *slot
	for i := range r.slots {
		s := r.slots[(r.turn+i)%len(r.slots)]
		if s.url != "" && (chosen == nil || s.callers < chosen.callers) {
			chosen = s
		}
	}
	if r.status.State != compute.Healthy {
		return compute.Endpoint{}, nil, r.status, r.queue(v)
	}
	if chosen == nil {
		r.wake()
		return compute.Endpoint{}, nil, waking, r.queue(v)
	}
	if v.patient && chosen.callers >= r.jobs && r.grows() {
		return compute.Endpoint{}, nil, crowded, r.queue(v)
	}
	r.unqueue(v)
	r.turn = (r.turn + 1) % len(r.slots)
	chosen.callers++
	r.callers++
	r.wakeScaler()
	endpoint = compute.Endpoint{URL: chosen.url, Token: r.spec.Token, Revision: r.revision, Witness: chosen.life}
	return endpoint, sync.OnceFunc(chosen.leave), r.status, r.changed
}

// grows reports whether one more replica is to come: a replica is starting for the first time,
// or the scaler will add a replica as soon as a caller waits for it. The caller holds r.mu.
func (r *release) grows() bool {
	return len(r.slots) < r.highest || r.isStarting()
}

// isStarting reports whether a replica is starting for the first time. The caller holds r.mu.
func (r *release) isStarting() bool {
	return slices.ContainsFunc(r.slots, func(s *slot) bool { return s.starting })
}

// queue counts a caller among the waiting callers, and returns a channel that is closed at the
// next change. The caller of queue holds r.mu.
func (r *release) queue(v *visitor) (changed <-chan struct{}) {
	if !v.queued {
		v.queued = true
		r.waiting++
		r.wakeScaler()
	}
	return r.changed
}

// unqueue counts a caller among the waiting callers no more. The caller of unqueue holds r.mu.
func (r *release) unqueue(v *visitor) {
	if v.queued {
		v.queued = false
		r.waiting--
	}
}

// giveUp removes a caller that has not entered from the queue.
func (r *release) giveUp(v *visitor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.queued {
		r.unqueue(v)
		r.idleSince = time.Now()
		r.wakeScaler()
	}
}

// wakeScaler announces a change of the amount of work, if there is a scaler. The caller holds
// r.mu.
func (r *release) wakeScaler() {
	if r.highest > r.lowest {
		r.announce()
	}
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
	if callers := r.awaitLeave(func() int { return r.callers }, time.After(r.target.limits.DrainLimit), r.ended); callers > 0 {
		r.target.log.Warn("release stopped before its callers had left", "revision", r.revision, "callers", callers)
	}
	r.stop()
	<-r.ended
}

// awaitLeave waits until a count of callers is 0, until late fires, or until ended is closed,
// and returns how many callers are left. count is called with r.mu held.
func (r *release) awaitLeave(count func() int, late <-chan time.Time, ended <-chan struct{}) int {
	for {
		r.mu.Lock()
		callers, changed := count(), r.changed
		r.mu.Unlock()
		if callers == 0 {
			return 0
		}
		select {
		case <-changed:
		case <-late:
			return callers
		case <-ended:
			return callers
		}
	}
}

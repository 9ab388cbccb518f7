package runner

import (
	"context"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// meter adds up how long the runs of this process are with the agents of each release. It has no
// timer of its own: the heartbeats of the runs carry it.
type meter struct {
	report func(ctx context.Context, release compute.Ref, worked time.Duration)
	now    clock.Clock

	mu sync.Mutex
	of map[compute.Ref]*work
	// minute is the minute of the last look.
	minute time.Time
}

// work is the time that the runs of a release have been with its agent and that was not reported
// yet: unreported is this time up to until, and since then each of the runs adds its own time.
type work struct {
	runs       int
	until      time.Time
	unreported time.Duration
}

func (w *work) count(until time.Time) {
	if until.After(w.until) {
		w.unreported += time.Duration(w.runs) * until.Sub(w.until)
		w.until = until
	}
}

// newMeter returns a meter, nil if there is no Config.Busy.
func newMeter(c Config) *meter {
	if c.Busy == nil {
		return nil
	}
	return &meter{report: c.Busy, now: c.Now, of: map[compute.Ref]*work{}}
}

// enter counts a run in that comes to the agent of a release. The caller must call leave when the
// run leaves the agent.
func (m *meter) enter(ctx context.Context, release compute.Ref) (leave func()) {
	m.beat(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	w := m.of[release]
	if w == nil {
		w = &work{until: now}
		m.of[release] = w
	}
	w.count(now)
	w.runs++
	return func() { m.leave(ctx, release) }
}

// leave counts a run out. The unreported work is reported with the last run, because a function's
// process may get no time after it.
func (m *meter) leave(ctx context.Context, release compute.Ref) {
	m.beat(ctx)
	m.mu.Lock()
	w := m.of[release]
	w.count(m.now())
	w.runs--
	last := w.runs == 0
	if last {
		delete(m.of, release)
	}
	m.mu.Unlock()
	if last && w.unreported > 0 {
		m.report(ctx, release, w.unreported)
	}
}

// beat reports the work of all releases up to the end of the last full minute, once for each
// minute. So a run that goes on is reported with 60 seconds in each minute, soon after the minute
// begins.
func (m *meter) beat(ctx context.Context) {
	if m == nil {
		return
	}
	for release, worked := range m.full() {
		m.report(ctx, release, worked)
	}
}

// full takes the work of all releases up to the present minute, if that minute is new.
func (m *meter) full() map[compute.Ref]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	minute := m.now().Truncate(time.Minute)
	if !minute.After(m.minute) {
		return nil
	}
	m.minute = minute
	done := map[compute.Ref]time.Duration{}
	for release, w := range m.of {
		w.count(minute)
		if w.unreported > 0 {
			done[release], w.unreported = w.unreported, 0
		}
	}
	return done
}

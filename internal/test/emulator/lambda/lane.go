package lambda

import "time"

// lane is one of the calls that a process may have at once: it waits for a call, or has one. The
// pool's lock protects its fields.
type lane struct {
	worker *worker
	phase  phase
	// call is the present call of the lane, calls is the channel by which it gets a call.
	call      *invocation
	calls     chan *invocation
	callTimer *time.Timer
}

// phase is the present activity of a lane.
type phase int

const (
	// starting lanes have not asked for a call yet.
	starting phase = iota
	idle
	busy
	// finishing lanes have answered and will soon ask for another call.
	finishing
)

func newLane(w *worker) *lane {
	l := &lane{worker: w, calls: make(chan *invocation, 1)}
	l.callTimer = stopTimer(func() { w.pool.overdue(l) })
	return l
}

// count is how many lanes of a worker are in a phase.
func (w *worker) count(p phase) int {
	n := 0
	for _, l := range w.lanes {
		if l.phase == p {
			n++
		}
	}
	return n
}

// asking returns the lane by which a worker asks for a call: a lane that has answered its call, or
// that has had no call. A worker with several lanes asks again by an idle lane if a connection
// broke.
func (w *worker) asking() *lane {
	for _, p := range []phase{finishing, starting, idle} {
		for _, l := range w.lanes {
			if l.phase == p {
				return l
			}
		}
	}
	return w.lanes[0]
}

package lambda

import (
	"os"
	"slices"
	"sync"
	"time"
)

// pool is a function's processes and the calls that wait for one.
type pool struct {
	platform *Platform
	function Function

	mu     sync.Mutex
	closed bool
	// workers are all processes that have not ended, free those of them that wait for a call; the
	// last one got free last.
	workers map[*worker]struct{}
	free    []*worker
	// waiting are calls that no process has, in order.
	waiting []*invocation
	// running counts the workers.
	running sync.WaitGroup
}

// phase is what a worker does.
type phase int

const (
	// starting workers have not asked for a call yet.
	starting phase = iota
	idle
	busy
	// finishing workers have answered and will soon ask for another call.
	finishing
	ending
)

func newPool(p *Platform, f Function) *pool {
	return &pool{platform: p, function: f, workers: map[*worker]struct{}{}}
}

// submit takes a call in.
func (p *pool) submit(call *invocation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if p.function.Reserved > 0 && p.concurrency() >= p.function.Reserved {
		return ErrThrottled
	}
	p.waiting = append(p.waiting, call)
	p.dispatch()
	return nil
}

// concurrency is how many calls have not ended.
func (p *pool) concurrency() int {
	calls := len(p.waiting)
	for w := range p.workers {
		if w.phase == busy {
			calls++
		}
	}
	return calls
}

// leave takes back a call that nobody waits for any longer, if no process has it.
func (p *pool) leave(call *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, call); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// dispatch gives waiting calls to free workers, and starts workers for those that will not have one
// soon.
func (p *pool) dispatch() {
	if len(p.free) > 0 && len(p.waiting) > 0 {
		p.retireReplaced()
	}
	for len(p.free) > 0 && len(p.waiting) > 0 {
		w, call := p.free[len(p.free)-1], p.waiting[0]
		p.free, p.waiting = p.free[:len(p.free)-1], p.waiting[1:]
		w.phase, w.call = busy, call
		w.idleTimer.Stop()
		w.calls <- call
	}
	soon := 0
	for w := range p.workers {
		if w.phase == starting || w.phase == finishing {
			soon++
		}
	}
	for ; soon < len(p.waiting) && len(p.workers) < p.function.MaxProcesses; soon++ {
		p.start()
	}
}

// retireReplaced ends the free workers whose program is not the one that is there now.
func (p *pool) retireReplaced() {
	now, err := os.Stat(p.function.Bootstrap)
	if err != nil {
		return // being replaced: what runs is good enough
	}
	p.free = slices.DeleteFunc(p.free, func(w *worker) bool {
		if w.isOf(now) {
			return false
		}
		w.retire()
		return true
	})
}

// start adds a worker. What can go wrong is told to a call that waits.
func (p *pool) start() {
	w := newWorker(p)
	p.workers[w] = struct{}{}
	p.running.Go(w.run)
}

// asked is called when a worker asks for a call, and reports whether it may wait for one.
func (p *pool) asked(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch w.phase {
	case idle:
		return true // it asks again, because the connection broke
	case ending:
		return false
	case starting:
		p.platform.config.Log.Debug("function process is ready", "function", p.function.Name, "pid", w.process.Pid(), "took", time.Since(w.began))
	case busy:
		select {
		case call := <-w.calls:
			p.waiting = slices.Insert(p.waiting, 0, call) // its connection broke before it was handed the call
		default:
			w.call.fail(platformError(typeNoResponse, "RequestId: %s Error: the runtime asked for another call without a response", w.call.id))
		}
	}
	w.call = nil
	w.callTimer.Stop()
	if p.closed {
		w.retire()
		return false
	}
	w.phase = idle
	w.idleTimer.Reset(p.platform.config.IdleLimit)
	p.free = append(p.free, w)
	p.dispatch()
	return true
}

// handed notes that a worker has its call, and returns when its time is over.
func (p *pool) handed(w *worker) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.callTimer.Reset(p.function.Timeout)
	return time.Now().Add(p.function.Timeout)
}

// finish gives a worker's call its answer, unless it has one, and lets other calls count on the
// worker.
func (p *pool) finish(w *worker, call *invocation, a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call.answer(a)
	if w.call == call && w.phase == busy {
		w.phase = finishing
	}
	p.dispatch()
}

// overdue ends a worker that has not come back in time.
func (p *pool) overdue(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.call == nil {
		return
	}
	w.call.fail(timedOut(w.call.id, p.function.Timeout))
	p.platform.config.Log.Warn("function timed out", "function", p.function.Name, "pid", w.process.Pid(), "call", w.call.id)
	w.kill()
}

// expired ends a worker that nobody has needed.
func (p *pool) expired(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.free, w); i >= 0 {
		p.free = slices.Delete(p.free, i, i+1)
		w.retire()
	}
}

// ended takes out a worker whose process has ended, or did not start. The call that it had fails;
// if it never asked for one, the call that has waited longest fails with what is wrong with the
// start.
func (p *pool) ended(w *worker, failure *FunctionError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, w)
	if i := slices.Index(p.free, w); i >= 0 {
		p.free = slices.Delete(p.free, i, i+1)
	}
	select {
	case call := <-w.calls:
		// It never learned of its call, which another one can have.
		p.waiting = slices.Insert(p.waiting, 0, call)
		w.call = nil
	default:
	}
	switch {
	case w.call != nil:
		w.call.fail(failure)
	case w.phase == starting && len(p.waiting) > 0:
		call := p.waiting[0]
		p.waiting = p.waiting[1:]
		call.fail(failure)
	}
	if p.closed {
		p.refuse()
		return
	}
	p.dispatch()
}

// close ends what is free and refuses what waits.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.refuse()
	for w := range p.workers {
		if w.phase == idle || w.phase == starting {
			w.retire()
		}
	}
	p.free = nil
}

func (p *pool) refuse() {
	for _, call := range p.waiting {
		call.fail(ErrClosed)
	}
	p.waiting = nil
}

// currentCall is what a worker works on.
func (p *pool) currentCall(w *worker, id string) *invocation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.call == nil || w.call.id != id {
		return nil
	}
	return w.call
}

func (p *pool) pids() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pids []int
	for w := range p.workers {
		if w.process != nil {
			pids = append(pids, w.process.Pid())
		}
	}
	slices.Sort(pids)
	return pids
}

// stopTimer returns a timer that does not run yet.
func stopTimer(do func()) *time.Timer {
	timer := time.AfterFunc(time.Hour, do)
	timer.Stop()
	return timer
}

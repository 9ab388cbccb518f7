package lambda

import (
	"os"
	"slices"
	"sync"
	"time"
)

// pool holds a function's processes and the calls that wait for a process.
type pool struct {
	platform *Platform
	function Function

	mu     sync.Mutex
	closed bool
	// workers holds all processes that have not ended. free holds the workers that wait for a
	// call; the last worker became free last.
	workers map[*worker]struct{}
	free    []*worker
	// waiting holds the calls that no process has, in order.
	waiting []*invocation
	// running counts the workers.
	running sync.WaitGroup
}

// phase is the present activity of a worker.
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

// submit accepts a call.
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

// leave removes a call whose caller has stopped waiting, if no process has the call.
func (p *pool) leave(call *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, call); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// dispatch gives waiting calls to free workers, and starts workers for calls that will not get
// a worker soon.
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

// retireReplaced ends the free workers whose program is not the present program.
func (p *pool) retireReplaced() {
	now, err := os.Stat(p.function.Bootstrap)
	if err != nil {
		return // the program is being replaced: the running workers are good enough
	}
	p.free = slices.DeleteFunc(p.free, func(w *worker) bool {
		if w.isOf(now) {
			return false
		}
		w.retire()
		return true
	})
}

// start adds a worker. A waiting call gets the error if the start fails.
func (p *pool) start() {
	w := newWorker(p)
	p.workers[w] = struct{}{}
	p.running.Go(w.run)
}

// asked is called when a worker asks for a call, and reports whether the worker may wait for a
// call.
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
			p.waiting = slices.Insert(p.waiting, 0, call) // its connection broke before it got the call
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

// handed notes that a worker has its call, and returns the deadline of the call.
func (p *pool) handed(w *worker) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.callTimer.Reset(p.function.Timeout)
	return time.Now().Add(p.function.Timeout)
}

// finish gives a worker's call its answer, unless the call has an answer, and lets other calls
// count on the worker.
func (p *pool) finish(w *worker, call *invocation, a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call.answer(a)
	if w.call == call && w.phase == busy {
		w.phase = finishing
	}
	p.dispatch()
}

// overdue ends a worker that has not answered in time.
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

// expired ends a worker that no call has needed.
func (p *pool) expired(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.free, w); i >= 0 {
		p.free = slices.Delete(p.free, i, i+1)
		w.retire()
	}
}

// ended removes a worker whose process has ended, or did not start. The worker's call fails.
// If the worker never asked for a call, the call that has waited longest fails with the reason
// of the failed start.
func (p *pool) ended(w *worker, failure *FunctionError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, w)
	if i := slices.Index(p.free, w); i >= 0 {
		p.free = slices.Delete(p.free, i, i+1)
	}
	select {
	case call := <-w.calls:
		// The worker never learned of its call, so another worker can have the call.
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

// close ends free workers and refuses waiting calls.
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

// currentCall returns the call on which a worker works.
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

// stopTimer returns a stopped timer.
func stopTimer(do func()) *time.Timer {
	timer := time.AfterFunc(time.Hour, do)
	timer.Stop()
	return timer
}

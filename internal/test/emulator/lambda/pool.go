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
	// workers holds all processes that have not ended. free holds the lanes that wait for a
	// call; the last lane became free last.
	workers map[*worker]struct{}
	free    []*lane
	// waiting holds the calls that no process has, in order.
	waiting []*invocation
	// running counts the workers.
	running sync.WaitGroup
}

func newPool(p *Platform, f Function) *pool {
	return &pool{platform: p, function: f, workers: map[*worker]struct{}{}}
}

// unlock tells the account how many calls there are, and gives the lock back. Where calls neither
// come nor end, the lock is given back without it.
func (p *pool) unlock() {
	p.platform.account.note(p)
	p.mu.Unlock()
}

// submit accepts a call.
func (p *pool) submit(call *invocation) error {
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return ErrClosed
	}
	calls := p.concurrency()
	if p.function.Reserved > 0 && calls >= p.function.Reserved {
		return ErrThrottled
	}
	// Processes with several calls at once are there before calls come: no call waits for more.
	if p.function.Concurrency > 1 && calls >= p.function.MaxProcesses*p.function.Concurrency {
		return ErrThrottled
	}
	if !p.platform.account.admits(p) {
		return errAccountFull
	}
	p.waiting = append(p.waiting, call)
	p.dispatch()
	return nil
}

// concurrency is how many calls have not ended.
func (p *pool) concurrency() int {
	calls := len(p.waiting)
	for w := range p.workers {
		calls += w.count(busy)
	}
	return calls
}

// leave removes a call whose caller has stopped waiting, if no process has the call.
func (p *pool) leave(call *invocation) {
	p.mu.Lock()
	defer p.unlock()
	if i := slices.Index(p.waiting, call); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// dispatch gives waiting calls to free lanes, and starts workers for calls that will not get a
// lane soon.
func (p *pool) dispatch() {
	if len(p.free) > 0 && len(p.waiting) > 0 {
		p.retireReplaced()
	}
	for len(p.free) > 0 && len(p.waiting) > 0 {
		l, call := p.free[len(p.free)-1], p.waiting[0]
		p.free, p.waiting = p.free[:len(p.free)-1], p.waiting[1:]
		l.phase, l.call = busy, call
		l.worker.idleTimer.Stop()
		l.calls <- call
	}
	soon := 0
	for w := range p.workers {
		if !w.ending {
			soon += w.count(starting) + w.count(finishing)
		}
	}
	for ; soon < len(p.waiting) && len(p.workers) < p.function.MaxProcesses; soon += p.function.Concurrency {
		p.start()
	}
}

// retireReplaced takes no more calls to workers whose program is not the present program.
func (p *pool) retireReplaced() {
	now, err := os.Stat(p.function.Bootstrap)
	if err != nil {
		return // the program is being replaced: the running workers are good enough
	}
	for w := range p.workers {
		if w.process != nil && !w.ending && !w.isOf(now) {
			p.retire(w)
		}
	}
}

// retire gives a worker no more calls, and ends it as soon as it has no call.
func (p *pool) retire(w *worker) {
	p.free = slices.DeleteFunc(p.free, func(l *lane) bool { return l.worker == w })
	w.ending = true
	w.idleTimer.Stop()
	if w.process != nil && w.count(busy)+w.count(finishing) == 0 {
		go w.stop(w.process)
	}
}

// start adds a worker. A waiting call gets the error if the start fails.
func (p *pool) start() {
	w := newWorker(p)
	p.workers[w] = struct{}{}
	p.running.Go(w.run)
}

// asked is called when a worker asks for a call, and returns the lane by which the worker may
// wait for it; nil if the worker is to end.
func (p *pool) asked(w *worker) *lane {
	p.mu.Lock()
	defer p.unlock()
	l := w.asking()
	if l.phase == idle {
		return l // it asks again, because the connection broke
	}
	if l.phase == starting && !w.ready {
		w.ready = true
		p.platform.config.Log.Debug("function process is ready", "function", p.function.Name, "pid", w.process.Pid(), "took", time.Since(w.began))
	}
	if l.phase == busy {
		select {
		case call := <-l.calls:
			// Its connection broke before it got the call.
			p.waiting = slices.Insert(p.waiting, 0, call)
		default:
			l.call.fail(platformError(typeNoResponse, "RequestId: %s Error: the runtime asked for another call without a response", l.call.id))
		}
	}
	l.call, l.phase = nil, idle
	l.callTimer.Stop()
	if p.closed || w.ending {
		p.retire(w)
		return nil
	}
	if w.count(idle) == len(w.lanes) {
		w.idleTimer.Reset(p.platform.config.IdleLimit)
	}
	p.free = append(p.free, l)
	p.dispatch()
	return l
}

// handed notes that a lane has its call, and returns the deadline of the call.
func (p *pool) handed(l *lane) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.callTimer.Reset(p.function.Timeout)
	return time.Now().Add(p.function.Timeout)
}

// finish gives a lane's call its answer, unless the call has an answer, and lets other calls
// count on the lane.
func (p *pool) finish(l *lane, call *invocation, a answer) {
	p.mu.Lock()
	defer p.unlock()
	if l.call == call && l.phase == busy {
		l.phase = finishing
	}
	p.platform.account.note(p) // before the caller learns of the end, and calls again
	call.answer(a)
	p.dispatch()
}

// overdue fails a call that was not answered in time, and ends its worker, unless the worker has
// several calls at once: then it goes on, also with this call, which nobody waits for any more.
func (p *pool) overdue(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.call == nil {
		return
	}
	l.call.fail(timedOut(l.call.id, p.function.Timeout))
	p.platform.config.Log.Warn("function timed out", "function", p.function.Name, "pid", l.worker.process.Pid(), "call", l.call.id)
	if p.function.Concurrency == 1 {
		l.worker.kill()
	}
}

// expired ends a worker that no call has needed.
func (p *pool) expired(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.count(idle) == len(w.lanes) && slices.Contains(p.free, w.lanes[0]) {
		p.retire(w)
	}
}

// ended removes a worker whose process has ended, or did not start. The worker's calls fail.
// If the worker never asked for a call, the call that has waited longest fails with the reason
// of the failed start.
func (p *pool) ended(w *worker, how death) {
	p.mu.Lock()
	defer p.unlock()
	delete(p.workers, w)
	p.free = slices.DeleteFunc(p.free, func(l *lane) bool { return l.worker == w })
	for _, l := range w.lanes {
		l.callTimer.Stop()
		select {
		case call := <-l.calls:
			// The worker never learned of its call, so another worker can have the call.
			p.waiting = slices.Insert(p.waiting, 0, call)
			l.call = nil
		default:
		}
		if l.call != nil {
			l.call.fail(platformError(TypeExit, "RequestId: %s Error: Runtime exited with error: %s", l.call.id, how.reason))
		}
	}
	if !w.ready && !w.ending && w.count(starting) == len(w.lanes) && len(p.waiting) > 0 {
		call := p.waiting[0]
		p.waiting = p.waiting[1:]
		call.fail(how.start)
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
	defer p.unlock()
	p.closed = true
	p.refuse()
	for w := range p.workers {
		if w.count(busy)+w.count(finishing) == 0 {
			p.retire(w)
		}
	}
}

func (p *pool) refuse() {
	for _, call := range p.waiting {
		call.fail(ErrClosed)
	}
	p.waiting = nil
}

// currentCall returns the call of a worker with an id, and its lane.
func (p *pool) currentCall(w *worker, id string) (*lane, *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range w.lanes {
		if l.call != nil && l.call.id == id {
			return l, l.call
		}
	}
	return nil, nil
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

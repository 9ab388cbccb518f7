package rollout_test

import "sync"

// tasks are the steps that have not returned. Unlike a sync.WaitGroup's, its Wait may be called
// while the first ones begin.
type tasks struct {
	mu      sync.Mutex
	changed *sync.Cond
	count   int
	// over: no more begin.
	over bool
}

func newTasks() *tasks {
	ts := &tasks{}
	ts.changed = sync.NewCond(&ts.mu)
	return ts
}

// begin reports whether a step may begin, which ends with end.
func (ts *tasks) begin() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !ts.over {
		ts.count++
	}
	return !ts.over
}

func (ts *tasks) end() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.count--
	ts.changed.Broadcast()
}

// Wait waits until none is under way.
func (ts *tasks) Wait() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for ts.count > 0 {
		ts.changed.Wait()
	}
}

// close waits for those that have begun, and has no others begin.
func (ts *tasks) close() {
	ts.mu.Lock()
	ts.over = true
	ts.mu.Unlock()
	ts.Wait()
}

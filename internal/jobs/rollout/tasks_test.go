package rollout_test

import "sync"

// tasks are the steps that have not returned. Unlike the Wait of a sync.WaitGroup, its Wait
// may be called while the first steps begin.
type tasks struct {
	mu      sync.Mutex
	changed *sync.Cond
	count   int
	// over: no more steps begin.
	over bool
}

func newTasks() *tasks {
	ts := &tasks{}
	ts.changed = sync.NewCond(&ts.mu)
	return ts
}

// begin reports whether a step may begin. The step ends with end.
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

// Wait waits until no step is running.
func (ts *tasks) Wait() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for ts.count > 0 {
		ts.changed.Wait()
	}
}

// close waits for the steps that have begun, and lets no other steps begin.
func (ts *tasks) close() {
	ts.mu.Lock()
	ts.over = true
	ts.mu.Unlock()
	ts.Wait()
}

package run

import "slices"

// Status is a run's state in its life cycle.
type Status string

const (
	// Pending: created. A worker claims it once it is the thread's active run.
	Pending Status = "pending"
	// Running: a worker owns the current attempt.
	Running Status = "running"
	// Success: the graph ended, or paused for human input. Final.
	Success Status = "success"
	// Error: the graph failed, or no attempt could be completed. Final.
	Error Status = "error"
	// Timeout: the run took longer than is allowed. Final.
	Timeout Status = "timeout"
	// Interrupted: another run superseded it, or it was cancelled. Final.
	Interrupted Status = "interrupted"
	// Removed: rolled back. Clients no longer see it; its writes are erased, then the run itself.
	// Final.
	Removed Status = "removed"
)

// shownStatuses lists every status that clients see.
var shownStatuses = []Status{Pending, Running, Success, Error, Timeout, Interrupted}

// transitions lists the statuses that may follow each status. A running run may become running
// again: this is its next attempt.
var transitions = map[Status][]Status{
	Pending: {Running, Interrupted, Error, Removed},
	Running: {Running, Success, Error, Timeout, Interrupted, Removed},
}

// Final reports whether no status follows this status.
func (s Status) Final() bool { return len(transitions[s]) == 0 }

// sources are the statuses that may precede this one, as condition values.
func (s Status) sources() []any {
	var from []any
	for _, candidate := range shownStatuses {
		if slices.Contains(transitions[candidate], s) {
			from = append(from, string(candidate))
		}
	}
	return from
}

// Strategy says how a new run treats the unfinished runs of its thread. On an idle thread, the new
// run becomes the active run with each strategy.
type Strategy string

const (
	// Reject refuses the new run (409), and writes no run.
	Reject Strategy = "reject"
	// Enqueue writes the new run as pending, behind the active run and the queue.
	Enqueue Strategy = "enqueue"
	// Interrupt ends the active run and all queued runs as Interrupted. Their inputs, and the
	// output that they had shown, stay in the state.
	Interrupt Strategy = "interrupt"
	// Rollback ends the active run and all queued runs as Removed, and removes everything that
	// they wrote.
	Rollback Strategy = "rollback"
)

// supersedes reports whether a new run ends the runs before it.
func (s Strategy) supersedes() bool { return s == Interrupt || s == Rollback }

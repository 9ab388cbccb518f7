package run

// Status is how far a run is.
type Status string

const (
	// Pending: created. A worker takes it up when it is the thread's active run.
	Pending Status = "pending"
	// Running: a worker owns the current attempt and writes next.
	Running Status = "running"
	// Success: the graph ended, or paused for a person. Final.
	Success Status = "success"
	// Error: the graph failed, or no attempt could be completed. Final.
	Error Status = "error"
	// Timeout: the run took longer than is allowed. Final.
	Timeout Status = "timeout"
	// Interrupted: another run superseded it, or it was cancelled. Final.
	Interrupted Status = "interrupted"
	// Removed: it was rolled back. Nobody is shown it any more; what it wrote is erased, and then the run itself. Final.
	Removed Status = "removed"
)

// Statuses lists every status that is shown.
var Statuses = []Status{Pending, Running, Success, Error, Timeout, Interrupted}

// transitions lists what may follow each status. A running run may become running again: that is its next attempt.
var transitions = map[Status][]Status{
	Pending: {Running, Interrupted, Error, Removed},
	Running: {Running, Success, Error, Timeout, Interrupted, Removed},
}

// Final reports whether nothing follows the status.
func (s Status) Final() bool { return len(transitions[s]) == 0 }

// sources are the statuses that may precede this one, as condition values.
func (s Status) sources() []any {
	var from []any
	for _, candidate := range Statuses {
		for _, next := range transitions[candidate] {
			if next == s {
				from = append(from, string(candidate))
			}
		}
	}
	return from
}

// Strategy is what a new run does to the run in flight on its thread.
type Strategy string

const (
	// Reject refuses the new run.
	Reject Strategy = "reject"
	// Enqueue lets the new run wait behind those before it.
	Enqueue Strategy = "enqueue"
	// Interrupt stops the run in flight and drops those that wait; what they had shown, and their inputs, stay in the state.
	Interrupt Strategy = "interrupt"
	// Rollback stops the run in flight as if it had never been, and those that wait.
	Rollback Strategy = "rollback"
)

// takesOver reports whether a new run ends those before it.
func (s Strategy) takesOver() bool { return s == Interrupt || s == Rollback }

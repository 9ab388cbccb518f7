package run

import "github.com/slipway-run/slipway/internal/record/record"

// Progress is how far the workers of a run have come. Only they write it, under the fence (except
// for Dispatches, and for what Seal and Rescue settle once no worker may write any more).
//
// All numbers of checkpoints count along the thread from 0, and are -1 for no checkpoint. Positions
// are those of events on the thread.
type Progress struct {
	// Attempt counts the workers that took the run up.
	Attempt int64
	// Handed is the last attempt that handed the run over to the next, 0 when there was none, -1
	// when the run was last written by a version that had no slices. The other attempts before the
	// present one are among Failures.
	Handed int64
	// Failures counts the attempts that ended without having handed the run over.
	Failures int64
	// Idle counts the slices since the last one that made a step.
	Idle int64
	// Dispatches counts the workflow executions that were started for the run.
	Dispatches int64
	// Permit is the concurrency permit that the run holds in its deployment, 0 for none.
	Permit int64

	// Start is the position before the run's first event, Position that of its last.
	Start, Position int64
	// Unfinished are the messages that were shown and are to be kept if the run ends now, of all
	// its attempts.
	Unfinished []Unfinished
	// Unfolded is the position before the first update that was shown since the agent's own newest
	// checkpoint, 0 when there is none.
	Unfolded int64

	// Before is the thread's newest checkpoint when the run was taken up first: with it the thread
	// was as if the run had never been.
	Before int64
	// Checkpoint is the thread's newest checkpoint when the run, or its sealing, last wrote.
	Checkpoint int64
	// AgentCheckpoint is the number of the agent's own checkpoint at the run's first claim, -1 for
	// none. AgentItems is the number of items that were stored after that checkpoint then. A
	// rollback erases the items that follow.
	AgentCheckpoint, AgentItems int64
	// Amended says that the run said anew what became of the tasks of an earlier checkpoint. That
	// checkpoint is kept as it was until the run is over, so that a rollback restores it.
	Amended bool
}

// Names of the attributes of the progress in the run's item.
const (
	attrAttempt         = "attempt"
	attrHanded          = "handed"
	attrFailures        = "failures"
	attrIdle            = "idle"
	attrDispatches      = "dispatches"
	attrPermit          = "seat"
	attrStart           = "start"
	attrPosition        = "position"
	attrUnfinished      = "unfinished"
	attrUnfolded        = "unfolded"
	attrBefore          = "before"
	attrCheckpoint      = "checkpoint"
	attrAgentCheckpoint = "mark"
	attrAgentItems      = "place"
	attrAmended         = "amended"
)

// notBegun is the progress of a run that was just created.
func notBegun() Progress {
	return Progress{Dispatches: 1, Before: -1, Checkpoint: -1, AgentCheckpoint: -1}
}

// progressOf decodes the progress of a run.
func progressOf(r *record.Reader) Progress {
	p := Progress{
		Attempt:         r.Int(attrAttempt),
		Handed:          r.IntOr(attrHanded, -1),
		Failures:        r.Int(attrFailures),
		Idle:            r.Int(attrIdle),
		Dispatches:      r.Int(attrDispatches),
		Permit:          r.Int(attrPermit),
		Start:           r.Int(attrStart),
		Position:        r.Int(attrPosition),
		Unfolded:        r.Int(attrUnfolded),
		Before:          r.IntOr(attrBefore, -1),
		Checkpoint:      r.Int(attrCheckpoint),
		AgentCheckpoint: r.IntOr(attrAgentCheckpoint, -1),
		AgentItems:      r.Int(attrAgentItems),
		Amended:         r.Bool(attrAmended),
	}
	r.JSON(attrUnfinished, &p.Unfinished)
	return p
}

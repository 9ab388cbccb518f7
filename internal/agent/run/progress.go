package run

import "github.com/slipway-run/slipway/internal/record/record"

// Progress says how far the workers of a run have come. Only the workers write it, under the fence.
// There are three exceptions: Dispatches; Permit, which the release of another run's permit sets
// for a waiting run; and the values that Seal and Rescue set when no worker may write any more.
//
// All numbers of checkpoints count along the thread from 0, and are -1 for no checkpoint.
// Positions are the positions of events on the thread.
type Progress struct {
	// Attempt counts the workers that claimed the run.
	Attempt int64
	// LastHandover is the last attempt that handed the run over to the next attempt, 0 if no
	// attempt did. The other attempts before the present attempt are among Failures.
	LastHandover int64
	// Failures counts the attempts that ended without having handed the run over.
	Failures int64
	// Idle counts the slices since the last slice that made a step.
	Idle int64
	// Dispatches counts the workflow executions that were started for the run.
	Dispatches int64
	// Permit is the concurrency permit that the run holds in its deployment, 0 if it holds no
	// permit.
	Permit int64

	// Start is the position before the run's first event, Position the position of its last
	// event.
	Start, Position int64
	// FirstsAfterLoss are the positions of the first events of the attempts before which a worker
	// was lost, oldest first. That worker may have left a void batch of events.
	FirstsAfterLoss []int64
	// Unfinished are the messages that all attempts of the run have shown and that are kept if
	// the run ends now.
	Unfinished []Unfinished
	// UncheckpointedFrom is the position before the first update that was shown since the agent's
	// own newest checkpoint, 0 if there is no such update.
	UncheckpointedFrom int64

	// CheckpointBefore is the number of the thread's newest checkpoint when a worker first claimed
	// the run: at this checkpoint the thread is as if the run had never been.
	CheckpointBefore int64
	// Checkpoint is the thread's newest checkpoint when the run, or its sealing, last wrote.
	Checkpoint int64
	// AgentCheckpoint is the number of the agent's own checkpoint at the run's first claim, -1
	// if there was no checkpoint. AgentItems is the number of items that were stored after
	// that checkpoint then. A rollback erases the items that follow.
	AgentCheckpoint, AgentItems int64
	// CheckpointRewritten says that the run has sent the results of the tasks of an earlier
	// checkpoint again. A copy of the checkpoint as it was before is kept until the run is over, so
	// that a rollback restores it.
	CheckpointRewritten bool
}

// Names of the attributes of the progress in the run's item. Some are former names of their
// fields, such as "seat" and "amended": stored runs keep them.
const (
	attrAttempt             = "attempt"
	attrLastHandover        = "handed"
	attrFailures            = "failures"
	attrIdle                = "idle"
	attrDispatches          = "dispatches"
	attrPermit              = "seat"
	attrStart               = "start"
	attrPosition            = "position"
	attrFirstsAfterLoss     = "takeovers"
	attrUnfinished          = "unfinished"
	attrUncheckpointedFrom  = "unfolded"
	attrCheckpointBefore    = "before"
	attrCheckpoint          = "checkpoint"
	attrAgentCheckpoint     = "mark"
	attrAgentItems          = "place"
	attrCheckpointRewritten = "amended"
)

// progressOf decodes the progress of a run.
func progressOf(r *record.Reader) Progress {
	p := Progress{
		Attempt:             r.Int(attrAttempt),
		LastHandover:        r.Int(attrLastHandover),
		Failures:            r.Int(attrFailures),
		Idle:                r.Int(attrIdle),
		Dispatches:          r.Int(attrDispatches),
		Permit:              r.Int(attrPermit),
		Start:               r.Int(attrStart),
		Position:            r.Int(attrPosition),
		UncheckpointedFrom:  r.Int(attrUncheckpointedFrom),
		CheckpointBefore:    r.IntOr(attrCheckpointBefore, -1),
		Checkpoint:          r.Int(attrCheckpoint),
		AgentCheckpoint:     r.IntOr(attrAgentCheckpoint, -1),
		AgentItems:          r.Int(attrAgentItems),
		CheckpointRewritten: r.Bool(attrCheckpointRewritten),
	}
	r.JSON(attrUnfinished, &p.Unfinished)
	r.JSON(attrFirstsAfterLoss, &p.FirstsAfterLoss)
	return p
}

// Package run holds the run protocol: how runs are created on a thread, worked on, superseded and read.
//
// # One at a time
//
// A thread has at most one active run; its lock (package thread) names it. Create decides in one transaction what a new run does to the
// one in flight: refuse the new one (reject), queue it (enqueue) or supersede what is there (interrupt). Run ids sort by creation on
// their thread, so the queue is the pending runs behind the active one, and a pending run before it was superseded: interrupting a
// thousand queued runs writes none of them.
//
// # The fence
//
// A worker owns one attempt at a run. Each of its writes (Attempt.Flush, Attempt.Finish) carries events, checkpoints and the run's new
// position in one transaction, under the condition that the run is still running and the attempt still its own. A worker that was
// superseded, or given up for dead, fails at its next write with ErrFenced and can never write again. Leases only decide when another
// worker tries; no clocks of two hosts are compared for correctness.
//
// # Nothing shown is lost
//
// Events have positions that increase along the thread and are durable before any reader sees them. Seal folds what an interrupted
// run had shown but not finished into the state, and the inputs of runs that never started, in order, before the successor begins. It is idempotent and
// done by whoever needs it first.
package run

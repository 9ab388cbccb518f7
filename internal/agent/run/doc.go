// Package run holds the run protocol: how runs are created on a thread, worked on, superseded and read.
//
// # One at a time
//
// A thread has at most one active run; its lock (package thread) names it. Create decides in one transaction what a new run does to the
// one in flight: refuse the new one (reject), queue it (enqueue) or supersede what is there (interrupt). Run ids sort by creation on
// their thread, so the queue is the pending runs behind the active one, and a pending run before it was superseded: interrupting a
// thousand queued runs writes none of them.
//
// Rollback and a cancel that undoes remove runs: the lock names them (Cut, CutTo), from that commit on nobody is shown them, and what they wrote is erased in
// batches before anything else is written on the thread. A cancelled run that waits keeps its place in the order, where its input comes into the state.
//
// A delayed run (Request.After) has an id of the time when it is due, so what is created before then goes before it. While it has the lock, that says until when it
// waits; its workflow sleeps.
//
// # The fence
//
// A worker owns one attempt at a run. Each of its writes (Attempt.Flush, Attempt.Finish) carries events, checkpoints and the run's new
// position in one transaction, under the condition that the run is still running and the attempt still its own. A worker that was
// superseded, or given up for dead, fails at its next write with ErrFenced and can never write again. Leases only decide when another
// worker tries; no clocks of two hosts are compared for correctness.
//
// # Slices
//
// A worker whose own time is limited (a Lambda function's is 15 minutes) ends its attempt with HandOver, and the next attempt goes on from the
// last checkpoint. So a run takes as many slices as it needs. A slice is an attempt like any other, with its own number, but no failure:
// MaxAttempts bounds the attempts that ended without a handover, over the whole run. What bounds the slices is progress: a run of which MaxIdleSlices
// slices in a row made no step, that is no checkpoint of the agent's, would begin at the same place again, and ends as Timeout.
//
// # Seats
//
// A deployment may bound how many of its runs work at a time, wherever their workers are: each then has a seat, from its first claim to its end, which a row of items
// in the table stands for. A seat is taken with the claim and left with the transaction that ends the run or clears up after it, so it is held by the run and not by a
// worker: one that dies is followed by the next attempt. A run that finds none free, or others waiting, waits behind them by its id and its workflow ends; who leaves a
// seat gives it to the first who waits and starts that one's next workflow. Nobody polls: only after ten leases a worker looks at a run that waits, in case that was lost.
//
// It costs a run with a bound one read of its row and one write to take its seat, the same to leave it; one that waits two transactions and a workflow more. Without a
// bound it costs nothing. What limits is the write rate of a row's partition, at 1,000 units a second some 250 runs: a row has 64 seats, and a deployment of more than
// that has several, up to 32, over which its threads are spread. So the order is kept in each row, and a run may wait while another row has a seat free.
//
// # Nothing shown is lost
//
// Events have positions that increase along the thread and are durable before any reader sees them. Seal folds what an interrupted
// run had shown but not finished into the state, and the inputs of runs that never started, in order, before the successor begins. It is idempotent and
// done by whoever needs it first. For an agent that keeps checkpoints the same is noted as updates that it has to make itself (package thread); updates of
// nodes that it has shown since its newest checkpoint are kept, too, unless it has kept the node's result with the checkpoint, and so is an input that it has taken
// without a step that has it in the values.
//
// # Checkpoints of agents
//
// From an agent's first checkpoint on, what it says there is the state, and its updates are shown only. A run may begin at any checkpoint of its thread (Request.Fork): its first
// claim takes the state from there and begins a branch. Run.Before is the number of the checkpoint that was the thread's newest before the run.
package run

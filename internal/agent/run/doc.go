// Package run is the run protocol: how a run is created on a thread, worked on, interrupted, ended
// and read. A thread is a conversation; its state is a log of checkpoints (package thread). A run
// is one request to an agent on the thread. A worker calls the agent and writes the agent's events.
//
// The lock, a part of the thread's item, sees to it that a thread has at most one active run. Its
// most important fields are (thread.Lock has all):
//
//	Run, Busy        the active run, and whether it is in flight
//	Epoch            how often the lock was changed
//	SupersededUpTo   the newest run that another run, or a cancel of the thread, has superseded
//	Unsealed         whether the state lacks what runs that ended early have left
//	SealedUpTo       the newest run that the state accounts for
//
// Each change of the lock increases the epoch, and fails if the epoch has changed since the writer
// read the lock. The writer then reads and decides again (record.Decide).
//
// A run is pending until a worker claims it (Claim), and then running. It ends as success, error,
// timeout or interrupted, or it is removed (status.go).
//
// An interrupt ends a run before the run has ended by itself, because another run supersedes it
// (the multitask_strategy interrupt) or because a client cancels it (the action interrupt). What
// the run has shown stays. A rollback also supersedes or cancels runs, but removes what they wrote.
// The same word has another meaning in the fields Interrupts, in Request.InterruptBefore and in
// Request.InterruptAfter: a graph pauses, usually to ask a person. That run ends as success.
//
// # Example: a person asks again
//
// A person asks the first question of a thread (run A). The agent has shown "The sky is" when the
// person sends another question (run B), which interrupts A:
//
//	                     lock                                         A            B
//	  Create A, Claim A  Run A, Busy, Epoch 1                         running
//	1 Create B           Run B, Epoch 2, SupersededUpTo A, Unsealed   interrupted  pending
//	2 Claim B seals      Epoch 3, SealedUpTo A, not Unsealed          interrupted  pending
//	3 Claim B commits    as before                                    interrupted  running
//	4 Finish B           Epoch 4, SealedUpTo B, not Busy              interrupted  success
//
// Step by step:
//
//  1. Create reads the lock and commits one transaction: A becomes interrupted, B is written, and
//     the lock moves to B. From this commit on, readers see A as interrupted, and no later write of
//     A's worker becomes visible. The change of the lock wakes this worker (WatchLoss), or its next
//     write fails. The worker then ends its call of the agent. Events that it had not made visible
//     are lost.
//  2. After its commit, Create starts the workflow of B, which starts a worker. Unless another
//     process has sealed the thread meanwhile, this worker's Claim finds Unsealed in the lock and
//     seals the thread: it puts "The sky is" into the state, marked incomplete. The webhook of A
//     and the Observer hear only after the seal that A was interrupted.
//  3. The same Claim commits the first attempt of B: its first event ("metadata"), and its input as
//     a checkpoint. The agent gets both questions and the incomplete answer.
//  4. Finish commits the last events, the end of B and the lock in one transaction.
//
// The fence stops A's worker. Claim gives a worker the next attempt number of its run. The fence is
// a condition on the run's item: four attributes are as the worker last read or wrote them.
//
//   - the status: an interrupt, a rollback, a cancel, Finish, Fail and TimeOut change it;
//   - the attempt number: another worker's Claim changes it;
//   - the position of the run's newest event: each write that adds events changes it, so no such
//     write is applied twice;
//   - the last attempt that was handed over: the worker's own HandOver or GiveBack changes it.
//
// A worker's writes become visible only by a move of the position under the fence (flush.go).
// Readers read the run first, and then only the events up to its position, so they never see an
// event that the fence refused. A worker whose write was fenced off gets ErrFenced, and stops.
//
// To seal a thread (this has nothing to do with encryption) is to put leftovers into the state. A
// reader sees events while a step is under way, but a checkpoint is written only when the step has
// ended. So a reader may have seen words of A that are in no checkpoint. After the seal, the agent
// of B knows what the reader saw. The comment of Seal says what leftovers are, and which functions
// call it before their own work. Seal works in batches, each in a transaction of its own that moves
// SealedUpTo.
//
// Go on with these files, in this order: type Lock in thread.go of package thread; status.go;
// create.go (how a new run changes the active run); attempt.go, draft.go, flush.go and void.go (a
// worker's events, changes and commits); finish.go (the end of a run); seal.go, leftover.go and
// unfinished.go (what an interrupted run leaves). Package record has Decide and Outbox: a decision
// that is made again after a lost race, and the writes of a decision with the calls that follow.
//
// # Exceptions
//
// The example leaves out much, which these comments explain:
//
//   - the queue, the turns of runs, and delayed runs: create.go;
//   - attempts that leave the run to a next attempt (slices): HandOver;
//   - workers and processes that die: Rescue;
//   - a worker that writes seldom while no reader waits: noReader;
//   - a deployment that bounds its working runs (concurrency permits): permit.go;
//   - a rollback, and the removal of runs: remove.go;
//   - agents that keep checkpoints of their own: checkpoint.go;
//   - a run that starts at an earlier checkpoint (Request.Fork): branch;
//   - what a thread shows after a run that leaves nothing: Thread.IdleView in package thread;
//   - cancelled runs that leave nothing in the state: withdrawn.
package run

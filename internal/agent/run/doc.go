// Package run is the run protocol: how a run is created on a thread, worked on, interrupted, ended
// and read.
//
// Read these files in this order: type Lock in thread.go of package thread; create.go (how a new
// run changes the active run); attempt.go, draft.go, flush.go and void.go (a worker's events,
// changes and commits, and the fence); finish.go (the end of a run); seal.go, leftover.go and
// unfinished.go (what an interrupted run leaves in the thread). Package record has Decide and
// Outbox: a decision that is made again after a lost race, and the writes of a decision with the
// calls that follow them.
//
// # One active run
//
// A thread has at most one active run. A busy lock names the active run; an idle lock still names
// the last active run, or the last queued run that a cancel of the thread ended. The lock is part
// of the thread's item. Each change of the lock increases the lock's epoch, and fails if the epoch
// has changed since the writer read the lock. A writer that loses this race reads and decides again
// (record.Decide).
//
// Create reads the lock and commits one transaction. On an idle thread the new run becomes the
// active run. A delayed run (Request.After) does so, too: it sleeps until its due time, and the
// thread is busy. On a busy thread the strategy of the new run decides:
//
//   - reject: the new run is refused (409), and no run is written;
//   - enqueue: the new run is written as pending, behind the active run;
//   - interrupt: the active run and the runs behind it become interrupted, the new run is written,
//     and the lock moves to the new run;
//   - rollback: like interrupt, but these runs become removed.
//
// A run's turn is its creation time, or its due time if it is delayed; it is later if the run must
// follow a run with a later turn. Run ids sort by turn. The queue is the pending runs behind the
// active run. The lock's mark SupersededUpTo is the newest run that an interrupt, a rollback or a
// cancel of the thread has superseded. A pending run with an id up to this mark counts as
// interrupted, so an interrupt of a thousand queued runs writes no item of a queued run.
//
// The workflow of a delayed run sleeps until the due time. A run that is enqueued meanwhile goes
// before the delayed run if its turn is earlier: if the delayed run was active, Create makes the
// new run the active run, and stops the workflow of the delayed run.
//
// While a run is active, the thread's item keeps the status and the questions from before the run
// (thread.IdleView). The thread shows both again if the run is removed, or if the run leaves
// nothing in the state. If the run superseded other runs, Seal first sets the IdleView to what
// these runs leave.
//
// # An interrupt, step by step
//
//  1. Create commits the transaction above. The lock now also says Unsealed. Readers see the old
//     run as interrupted from this commit on, and no later write of its worker becomes visible.
//  2. The change of the lock wakes the old worker, or the worker's next write fails. The worker
//     ends the agent's call and adds nothing more to the run. Events that it had not made visible
//     are lost.
//  3. After its commit, Create starts the workflow of the new run, which starts a worker. If no
//     other process has sealed the thread yet, the worker's Claim finds Unsealed in the lock, and
//     seals the thread: it puts what the superseded runs left into the thread's state. Only now do
//     the webhooks and the Observer hear that these runs were interrupted.
//  4. The same Claim takes a concurrency permit, if the deployment bounds its runs. Without a free
//     permit, the worker and the workflow end, and the run that releases a permit starts a new
//     workflow; the thread is sealed already (see Permits). With a permit, Claim commits the first
//     attempt of the new run: its first event ("metadata"), and its input as a checkpoint. The
//     "values" event that shows the input is in the same commit, too, unless the agent may keep
//     checkpoints of its own. Then the event comes with the agent's first event that is not about
//     the execution (ofExecution), with the first Flush that has nothing else to write, or with
//     Finish, unless the agent's first checkpoint comes before and shows the input.
//
// # The fence
//
// A worker calls the agent for a run and writes the agent's events. It owns one attempt at the run:
// Claim gives it the next attempt number. The fence is a condition on the run's item. It holds if
// four attributes are as the worker last read or wrote them (a Claim that takes a permit also
// compares Run.Dispatches, and the first Claim of a delayed run the lock's epoch):
//
//   - the status: an interrupt, a rollback, a cancel, Finish, Fail and TimeOut change it;
//   - the attempt number: another worker's Claim changes it;
//   - the position, which is the number of the run's newest event: it refuses a repetition of a
//     write that has added events already;
//   - the last handover, which is the number of the newest attempt that left the run to a next
//     attempt (see Slices): it refuses each write after the worker's own HandOver or GiveBack.
//
// Each successful write of the owner sets the fence for its next write. When any other process has
// changed an attribute, or after HandOver or GiveBack, every later write of the old worker fails
// with ErrFenced. After a write whose result is unknown, the worker writes nothing more. While the
// agent works, the worker also watches the thread (WatchLoss): an interrupt wakes it, and
// CheckOwned tells it that it has lost the run. Readers read the run first, and then only the
// events up to its position, so an event that the fence refused is never seen.
//
// The fence guards a worker's writes in one of two ways:
//
//   - Claim, HandOver, GiveBack, Finish, and a Flush that has more to store than events
//     (checkpoints, results of tasks) each commit one transaction under the fence: the events, the
//     other items, and the run's new position.
//   - A Flush that stores only events makes two writes, because a transaction costs twice as much
//     in DynamoDB. The first write stores the batch of events without the fence. Its only condition
//     is that no batch of a later attempt stands in its place. The second write moves the position
//     under the fence, and so makes the batch visible. If the fence refuses the move, the batch is
//     void, and the worker erases it. void.go says how readers and later workers pass over a void
//     batch whose worker died first.
//
// Where each write costs money (Config.Paced), a worker writes seldom until a reader comes. A
// reader notes in the run that it waits (Run.HasReader). A run that is created by a request that
// streams its events has this note from its creation on. Until the worker knows of a reader, each
// of its writes except Finish has the further condition that this note is not there. If this
// condition alone fails, the worker still owns the run: it makes the same write again without the
// condition, and writes more often from then on.
//
// A lease is the time after which Rescue looks at a run. While a worker has the run, Claim and
// Flush extend the lease. It is 30 s on one machine, and 5 min in a stack (Config.WorkLease), where
// the workflow engine itself calls another worker when a worker has died. The lease of a run
// without a worker (created, handed over, ended by another process and not yet sealed) is 30 s
// everywhere (Config.Lease). A worker keeps its run when the lease ends. Rescue, which the timer
// "reconcile" calls, then starts a workflow if the run has no workflow at work, and only the next
// Claim takes the run. If Rescue finds a workflow at work, the run gets the lease of a run with a
// worker, because it may wait long for a worker. No clocks of two hosts are compared for
// correctness.
//
// # Seal: shown output is kept
//
// Events have positions that increase along the thread, and they are durable before a reader
// sees them. So a reader may have seen words of a run that an interrupt then fenced, before a
// checkpoint held them. To seal a thread (this has nothing to do with encryption) is to put such
// leftovers into its state, so that the next run's agent knows what the reader saw. If the lock
// says Unsealed, the next Claim on the thread seals it before the run begins. Seal first erases the
// runs that a rollback removed. Then it goes through the runs that ended early (interrupted or
// cancelled) in the order of their ids, and puts their leftovers into the thread's state:
//
//   - the updates that finished steps of an interrupted run returned after the newest checkpoint
//     of an agent that keeps checkpoints;
//   - the shown text of the interrupted run's steps under way, marked incomplete;
//   - the input of an interrupted run, if the newest checkpoint is the agent's own for this input:
//     its values lack the input, because no step has taken it;
//   - the inputs of runs that were interrupted before their first claim.
//
// Some runs that ended before their first claim leave nothing in the state:
//
//   - a run that was withdrawn: its client cancelled it, or gave its input to another run. If the
//     client only lost its connection, the run is not withdrawn, and the state gets its input;
//   - a run without an input, such as an answer to questions;
//   - a run that Refuse has created.
//
// The input of a fork whose checkpoint is gone goes into no state, either.
//
// The webhook of a run that is cancelled in the queue, and the Observer, hear of its end from the
// cancel itself (Run.EndNotified). If the run was withdrawn, nothing is left to seal, and Finish
// and Seal pass over it, as over a refused run. If its client was lost, the run is sealed when the
// active run has ended, because its input follows what that run leaves.
//
// Seal works in batches, each in a transaction of its own. A batch starts behind the mark
// SealedUpTo, and has the condition that the lock's epoch is the epoch that was read. So Seal is
// idempotent, and two workers that seal at once add everything once. The transaction of a batch
// also holds the messages to the webhooks of the interrupted runs, and its outbox calls the
// Observer after the commit.
//
// Leftovers that the state cannot hold stay with their run, which ends with the failure
// StateTooLarge.
//
// These functions call Seal before their own work:
//
//   - Claim, Fail and TimeOut;
//   - Create and Cancel, if they would replace a mark of the lock that Seal still needs
//     (mustSealFirst, sealAndRetry), or go before superseded runs, or fork while a removal is not
//     complete, or have to send or show the state;
//   - each reader and each other writer of the newest state: for example Delete, the copy of a
//     thread, a client's update of the state, and the reader of an interrupted run's result.
//
// Create, Cancel, Finish, Fail and TimeOut also call Seal after their commit, if they leave runs to
// seal and no worker will seal them soon: no run follows, or a delayed run. If the process dies
// before, Rescue seals the thread, because one of the runs to seal has a lease: the run that Create
// or Cancel has ended, or the newest of the runs behind the run that has finished.
//
// The lock's mark SealedUpTo is the newest run that the state accounts for: Finish or Seal sets it.
// Unsealed says that Seal has work. SupersededUpTo marks superseded runs, RemoveFrom and RemoveTo
// mark removed runs. Type thread.Lock describes each mark.
//
// Seal keeps the text of a step only if the text goes to the root graph's channel "messages",
// directly or through the "messages" of subgraphs. Only the runtime of the agent knows the graph,
// so the agent lists these messages in "unfinished" events (Attempt.Unfinished). Each list replaces
// the list before it. For an agent that sends no list, Seal keeps the messages of a node from their
// first chunk to the node's next update or the next "values", and only while the state has
// messages. After an agent's own error no unfinished text is kept; the run's input is kept if no
// step had taken it. If the agent refuses the invocation because of what it holds (400, 413, 422),
// RevertInput makes the thread's state as it was before the run: each later run would hold the
// same.
//
// The checkpoint of an agent that keeps checkpoints of its own lacks these changes. The agent gets
// them as pending updates (Attempt.Pending) and applies them itself.
//
// # Rollback and removal
//
// Rollback, and a cancel with the action rollback, remove runs. The lock names the removed range
// (RemoveFrom, RemoveTo). From that commit on, readers skip the range. Seal erases its items in
// batches before a worker claims another run of the thread.
//
// # Slices and attempts
//
// A worker whose time is limited (a Lambda function has 15 minutes) ends its attempt with HandOver,
// and the next attempt goes on from the last checkpoint. Such a slice has its own attempt number
// but is no failure. MaxAttempts bounds the attempts that ended without a handover. MaxIdleSlices
// bounds the slices in a row without a checkpoint of a step: the run then ends as Timeout, because
// the next slice would start at the same checkpoint again. An attempt that no agent took ends with
// GiveBack. It counts neither as a failure nor as a slice, and the run keeps its permit.
//
// # Permits: concurrency permits
//
// A deployment may bound its working runs. Each working run holds a permit. A run takes it with its
// first claim; a waiting run gets it from the run that releases it, before the first claim.
// Finish releases the permit. For an interrupted run, Seal releases it. For a removed run, the
// transaction that deletes the run releases it. For a run that was deleted with its thread, its
// worker or its next worker releases it. The run holds the permit, not its worker. A run
// without a free permit waits in the order of ids, and its workflow ends. The release of a permit
// gives it to the first waiting run and starts that run's workflow. No process polls; a worker
// checks a waiting run again after ten leases, in case the start was lost.
//
// To take a permit costs one read and one write, and so does its release. A row of items holds
// 64 permits and takes some 250 runs a second, because a partition takes 1,000 write units a
// second. A deployment with more permits has up to 32 rows, and its threads are spread over them:
// the order of waiting runs holds within a row.
//
// # Checkpoints of agents
//
// From an agent's first checkpoint on, the agent's checkpoints are the state. Its updates are
// shown, and become part of the state only as leftovers. A run may start at any checkpoint of its
// thread (Request.Fork): its first claim takes the state from there and begins a branch.
// Run.CheckpointBefore is the number of the thread's newest checkpoint before the run.
package run

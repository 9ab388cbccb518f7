// Package run is the run protocol: how a run is created on a thread, worked on, interrupted, ended
// and read.
//
// Read these files in this order: create.go (how a new run changes the active run), attempt.go,
// draft.go and flush.go (a worker's events, changes and commits, and the fence), seal.go (the
// leftovers of an interrupted run in the thread). Package thread has the lock and the log of
// checkpoints.
//
// # One active run
//
// A thread has at most one active run. The thread's lock names it. The lock is part of the thread's
// item and carries an epoch, which each change of the lock increases; every change has the
// condition that the epoch is the epoch that was read. A writer that loses this race reads and
// decides again (record.Decide).
//
// Create reads the lock and commits one transaction:
//
//   - reject: the new run is refused (409), nothing is written;
//   - enqueue: the new run is written as pending, behind the active run;
//   - interrupt: the active run becomes interrupted, the new run is written, and the lock moves to
//     the new run;
//   - rollback: like interrupt, but the active run and the runs behind it become removed.
//
// Run ids sort by creation on their thread. The queue is the pending runs behind the active run. A
// pending run up to the lock's mark (Overtaken) was superseded, so an interrupt of a thousand
// queued runs writes to none of these runs.
//
// A delayed run (Request.After) has an id of the time when it is due, so every run that is created
// earlier goes before it. Its workflow sleeps until then.
//
// # The fence
//
// A worker owns one attempt at a run. Claim gives the worker the next attempt number. Each write of
// the worker (Claim, Flush, HandOver, Finish) is one transaction of events, checkpoints and the
// run's new position. Its condition is the fence: the run's stored status, attempt, position and
// last handover are those that the worker wrote or read last. An interrupt changes the status.
// Another worker's Claim changes the attempt. The worker's own HandOver changes the last handover.
// After each of these, every later write of the old worker fails with ErrFenced. The worker also
// watches the thread (WatchLoss), and CheckOwned tells it early that it has lost the run. Readers
// trust events up to the run's position only, so they never see an event that the fence refused.
//
// Where each write costs money (Config.Paced), a worker writes seldom until a reader comes. A
// reader notes in the run that it waits, and the worker's next write has the condition that no
// reader has come. If this condition alone fails, the worker still owns the run: it makes the same
// write again without the condition, and writes more often from then on.
//
// Leases decide only when another worker tries. No clocks of two hosts are compared for
// correctness.
//
// # Seal: shown output is kept
//
// Events have positions that increase along the thread, and they are durable before a reader sees
// them. Before the next run starts, Seal goes through the superseded runs in the order of their
// ids, and puts their leftovers into the thread's state:
//
//   - the updates that an interrupted run's finished steps returned, if the state does not have
//     them yet;
//   - the shown text of the interrupted run's steps under way, marked incomplete;
//   - the inputs of queued runs that were interrupted before they started.
//
// A run that its client cancelled before it started leaves nothing: the client took it back.
//
// Leftovers that the state cannot hold stay with their run, which ends with the failure
// StateTooLarge. Seal is idempotent. Claim, Create (before a rollback or a fork), Cancel, Delete
// and every reader of the state call Seal. Rescue calls it when a superseded run's lease is over.
//
// The lock says how far Seal has come: Overtaken, Cut, Sealed and Unsealed. Package thread has a
// table of these words.
//
// The text of a step counts only if it belongs to the graph's own channel "messages", or if a
// subgraph hands it to that channel of its parent. Only the runtime of the agent knows the graph,
// so the agent lists these messages in "unfinished" events (Attempt.Unfinished); the newest list
// counts. For an agent that sends no list, the messages of a node count from their first chunk to
// the node's next update or the next "values", and only while the state has messages. After an
// agent's own error no unfinished text is kept; the run's input is kept
// if no step had taken it.
//
// An agent with checkpoints of its own gets the same changes as updates that it makes itself
// (Attempt.Pending), because its checkpoint does not have them.
//
// # Rollback and removal
//
// Rollback, and a cancel with the action rollback, remove runs. The lock names the removed range
// (Cut, CutTo). From that commit on, readers skip the range. Its items are erased in batches before
// anything else is written on the thread.
//
// # Slices and attempts
//
// A worker whose time is limited (a Lambda function has 15 minutes) ends its attempt with HandOver,
// and the next attempt goes on from the last checkpoint. Such a slice has its own attempt number
// but is no failure. MaxAttempts bounds the attempts that ended without a handover. MaxIdleSlices
// bounds the slices in a row without a checkpoint: the run then ends as Timeout, because the next
// slice would start at the same checkpoint again.
//
// # Permits: concurrency permits
//
// A deployment may bound its working runs. Each working run holds a permit from its first claim on.
// Finish releases the permit. For an interrupted run, Seal releases it. For a removed run, the
// transaction that deletes the run releases it. The run holds the permit, not its worker. A run
// without a free permit waits in the order of ids, and its workflow ends. The release of a permit
// gives it to the first waiting run and starts that run's workflow. No process polls; a worker
// checks a waiting run again after ten leases, in case the start was lost.
//
// A permit costs one read and one write when it is taken and when it is left. A row of items holds
// 64 permits and takes some 250 runs a second, because a partition takes 1,000 write units a
// second. A deployment with more permits has up to 32 rows, and its threads are spread over them:
// the order of waiting runs holds within a row.
//
// # Checkpoints of agents
//
// From an agent's first checkpoint on, the agent's checkpoints are the state, and its updates are
// only shown. A run may start at any checkpoint of its thread (Request.Fork): its first claim takes
// the state from there and begins a branch. Run.Before is the number of the thread's newest
// checkpoint before the run.
package run

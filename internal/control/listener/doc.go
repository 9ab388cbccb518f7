// Package listener holds the parties that run releases elsewhere, and what they are told. A
// listener runs in a cluster of a customer's, which the control plane cannot reach: it calls out,
// asks for work, does it, and reports. A Kubernetes operator is one; whatever keeps the promises
// below is another.
//
// The words. A Listener is the resource that users create, and the record of who speaks for it. A
// Session is one process's hold on it. A release is one revision that a listener is to run, with
// the listener's last report. An order is one wish about a release: apply it or remove it. A task
// is an order that has not been carried out; a revision has one at most, because a new order takes
// the place of the one before. Work is a task as it is handed out.
//
// The life of a release:
//
//  1. The rollout calls Target.Apply. One transaction writes the release, whose specification is
//     sealed, and its task, and rings the listener's bell.
//  2. The listener is in Claim, a long poll. The bell wakes it; it is given the work, secrets
//     opened, and the task is noted as delivered.
//  3. It calls Report: progressing as often as it likes, then healthy with a URL, or failed with a
//     reason. Each report wakes who is in Target.Await. The one that settles the order deletes the
//     task.
//  4. From then on it reports what changes, and hands in what the agent prints. Runs are invoked at
//     the URL, with the token that is derived from the revision.
//  5. Target.Remove erases the specification and leaves a task to remove the release. When the
//     listener reports it absent, release and task are deleted.
//
// What a listener can rely on, and must do:
//
//   - One process speaks for a listener. A Session has an epoch, which every write of its holder is
//     conditioned on. It is renewed by each Claim and Heartbeat, and is over leaseTime after the
//     last of them; then another process may Claim, with the next epoch. A process whose epoch is
//     not the present one is refused with a Conflict, whatever it was doing. The clocks of the two
//     are never compared. The holder's name must be new for each process.
//   - Work is delivered at least once: again in each new session, and again in the same session
//     when the listener did not report for redeliverAfter. Work of an order that is being carried
//     out, or was, is to be ignored, but for the report of what came of it.
//   - An order to apply a revision that runs for a smaller order replaces what runs, which drains:
//     an order to remove it may have come in between. What has failed is tried anew.
//   - The epoch keeps a process from reporting that was taken for dead, not from touching its
//     cluster. For that, orders of a revision sort: what was done for one order must not be undone
//     for a smaller one. The order belongs into an annotation of what is made.
//   - Reports of a session are numbered, by order or overall. One that is not greater than the one
//     before on the order is a repetition, and changes nothing.
//   - A report about an order that is not the present one is a Conflict; the listener forgets the
//     order. The work that took its place comes by Claim.
//   - The listener drains: a removed release takes no new callers, and lets the present ones
//     finish, before it is stopped and reported absent.
//   - A listener that lost what it ran asks for Releases and applies them. That list may lag behind
//     by a moment, as an index does.
//   - What its agents print it hands in, for as long as the release is there: until it reports
//     absent. A release has an allowance of output, and the text goes where the deployments' logs
//     are, which is not this package's business; Admit decides whether it may.
//   - It is told about the releases in its own namespaces that deployments have placed there, and
//     nothing else of them than what it is to run.
//
// A listener that is away fails a rollout, as nobody else can run it: with LISTENER_OFFLINE after
// it has not been heard of for OfflineLimit (5 min) since the order, or with NOT_READY when it is
// there but has no healthy release within its own limit, or ReadyLimit (15 min). What was healthy
// stays so when its listener goes away. Both are read from the times of the last order and the last
// call, and never stored, so that no timer has to fire. That a listener is away is an event
// besides, told once by TellAway, which a timer calls, until the listener calls again, which is one
// too. A failed rollout removes its release; one that was never delivered is deleted at once, so
// that a listener which never comes leaves nothing behind.
//
// Start reading at Target.Apply, then Store.Claim and Store.Report.
package listener

// Package listener holds the parties that run releases elsewhere, and the orders for them. A
// listener runs in a customer's cluster, which the control plane cannot reach: the listener
// calls the control plane, asks for work, does the work, and reports. A Kubernetes operator is
// a listener; so is any other program that keeps the promises below.
//
// Terms. A Listener is the resource that users create, and the record of the process that
// speaks for it. A Session is one process's hold on a listener. A release is one revision that
// a listener must run, with the listener's last report. An order is one request about a
// release: apply it or remove it. A task is an order that has not been carried out; a revision
// has at most one task, because a new order replaces the previous order. Work is a task as it
// is handed out.
//
// The life of a release:
//
//  1. The rollout calls Target.Apply. One transaction writes the release, whose specification
//     is sealed, and its task, and writes the listener's wake key.
//  2. The listener is in Claim, a long poll. The wake key wakes the Claim. The listener receives
//     the work with its secrets opened, and the task is noted as delivered.
//  3. The listener calls Report: progressing as often as it likes, then healthy with a URL, or
//     failed with a reason. Each report wakes the callers that wait in Target.Await. The
//     report that settles the order deletes the task.
//  4. From then on the listener reports changes, and hands in the output of the agent. Runs
//     are invoked at the URL, with the token that is derived from the revision.
//  5. Target.Remove erases the specification and leaves a task to remove the release. When the
//     listener reports it absent, release and task are deleted.
//
// The guarantees for a listener, and its duties:
//
//   - One process speaks for a listener. A Session has an epoch, and every write of the
//     session's holder is conditioned on it. Each Claim and Heartbeat renews the session. The
//     session is over leaseTime after the last renewal; then another process may Claim, with
//     the next epoch. A process whose epoch is not the present epoch is refused with a
//     Conflict for all that it does. The clocks of the two processes are never compared. The
//     holder's name must be new for each process.
//   - Work is delivered at least once: again in each new session, and again in the same
//     session when the listener did not report for redeliverAfter. The listener must ignore
//     work of an order that it is carrying out or has carried out, except that it reports the
//     result.
//   - An order to apply a revision that already runs for a smaller order replaces the running
//     release, which drains: an order to remove it may have come in between. A release that
//     has failed is tried again.
//   - The epoch keeps a process that was taken for dead from reporting, but not from changing
//     its cluster. For this reason the orders of a revision sort: a smaller order must not
//     undo the result of a greater order. The listener must write the order into an annotation
//     of the objects that it makes.
//   - Reports of a session are numbered, by order or overall. A report whose number is not
//     greater than the number of the previous report on the order is a repetition, and changes
//     nothing.
//   - A report about an order that is not the present order is a Conflict; the listener
//     forgets the order. The work that replaced it comes by Claim.
//   - The listener drains: a removed release takes no new callers, and lets the present
//     callers finish, before it is stopped and reported absent.
//   - A listener that lost its releases asks for Releases and applies them. That list may lag
//     behind by a moment, as an index does.
//   - The listener hands in the output of its agents as long as the release exists: until the
//     listener reports absent. A release has an allowance of output. The text is stored with
//     the deployments' logs, outside of this package; Admit decides whether the listener may
//     hand it in.
//   - The listener is told only about the releases in its own namespaces that deployments have
//     placed there, and of these only what it must run.
//
// A listener that is away fails a rollout, because no other process can run the release: with
// LISTENER_OFFLINE when the listener has not been heard of for OfflineLimit (5 min) since the
// order, or with NOT_READY when the listener is there but has no healthy release within the
// release's own limit, or ReadyLimit (15 min). A release that was healthy stays healthy when its
// listener goes away. Both failures are computed from the times of the last order and the last
// call, and never stored, so that no timer has to fire. In addition, the absence of a listener is
// an event. ReportOffline, which a timer calls, reports it once until the listener calls again;
// that call is an event too. A failed rollout removes its release. A release that was never
// delivered is deleted at once, so that a listener which never comes leaves nothing behind. A
// deployment that was deleted stays until its listener has reported its releases absent, unless it
// was deleted by force.
//
// Start reading at Target.Apply, then Store.Claim and Store.Report.
package listener

// Package event stores the events of the deployments of a workspace: a deployment was created,
// changed or deleted, a revision reached a status, a revision begins as a canary, or the
// serving agent has crashed or recovered. It also stores that a listener went offline, or is
// online again.
//
// An event is written in the transaction of the change that it reports, by package deployment
// or listener, so both are stored or neither is. Each event costs one item: the item is in the
// log of its deployment or listener, and through an index also in the log of the workspace.
// Events are kept for 90 days, also the events of a deleted deployment.
//
// The events of a deployment form a chain, and so do the events of a listener: each event
// names the previous event, the deployment or listener holds the newest event, and an event is
// written under the condition that the previous event is still the newest. So their ids
// increase in the order of the commits, and a reader that continues after an id misses
// nothing.
//
// A workspace has no such order, because an order would make all of its deployments wait for
// each other: an event may become visible after later events of other deployments. A position
// in its log therefore holds a moment before which everything was read, and how far each
// deployment was read since then (position.go). An event that becomes visible up to a minute
// late is read once, and so is every other event.
//
// QuestionsChanged (notice.go) is the exception: it is not stored, and only those who follow the
// log of a workspace on one machine get it. A run would otherwise write to its deployment
// whenever a graph pauses.
//
// Start reading at Follow.
package event

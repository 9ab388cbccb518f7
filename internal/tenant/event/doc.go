// Package event keeps what happened to the deployments of a workspace: that one was created,
// changed or deleted, each status that a revision came to, that one begins as a canary, and that
// the agent which serves has crashed or recovered; and that a listener went offline, or is online
// again.
//
// An event is written in the transaction of what it tells of, by package deployment or listener, so
// that neither is there without the other. Each costs one item: it stands in the log of its
// deployment or listener, and through an index in that of the workspace. Events are kept for 90
// days, also those of a deployment that is gone.
//
// The events of a deployment, and those of a listener, form a chain: each names the one before, the
// deployment holds the newest, and an event is written under the condition that it still is. So
// their ids increase in the order of the commits, and a reader that goes on after an id misses
// nothing.
//
// A workspace has no such order, since one would make all of its deployments wait for each other:
// an event may become visible after later ones of other deployments. A position in its log
// therefore holds, beside a moment before which everything was read, how far each deployment was
// read since then (position.go). What becomes visible up to a minute late is read once, and so is
// everything else.
//
// Start reading at Follow.
package event

// Package deployment holds what a team asked to run: deployments, the rules that a request must
// keep, and the slot through which their revisions go one at a time.
//
// A create, and each PATCH that asks for it, makes a revision. The first takes the deployment's
// rollout slot; while the slot is taken newer ones are QUEUED. When the slot frees, the newest of
// them takes it and the others are SKIPPED. latest_revision_id moves at once, active_revision_id
// when a revision is promoted.
//
// A revision that is cancelled is INTERRUPTED at once. When it holds the slot, its rollout takes
// away what it began and then passes the slot on; when it waits, the newest of those before it has
// its place. A deployed revision can be deployed again: as a new one, which has its build.
//
// A revision that is healthy may be a canary before it is promoted (canary.go): the deployment,
// which is read for each run anyhow, says how many percent of the threads it serves.
//
// Variables of a deployment may have their values in secrets of the workspace (reference.go), which
// are read when an agent is started, and in logs are hidden as its own are.
//
// The tracing project of a deployment has its name and is made in the same transaction. It outlives
// the deployment unless it is deleted with it, and belongs to the next one of the name.
//
// A deleted deployment may have a recovery window (undelete.go): it is stopped at once like any
// other, but what it has is kept until the window is over, and it can be undeleted until then. Each
// deletion has a teardown of its own, by number, so that one of before does nothing to a deployment
// that lives again.
//
// Every change of a deployment is written under the condition that nobody changed it since it was
// read, so that two PATCHes that meet are both kept.
package deployment

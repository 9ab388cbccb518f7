// Package deployment holds the deployments that teams asked to run, the rules that a request
// must keep, and the slot through which the revisions of a deployment go one at a time.
//
// A create, and each PATCH that asks for it, makes a revision. The first revision takes the
// deployment's rollout slot; while the slot is taken, newer revisions are QUEUED. When the
// slot becomes free, the newest queued revision takes it and the other queued revisions are
// SKIPPED. latest_revision_id changes at once, active_revision_id when a revision is promoted.
//
// A revision that is cancelled is INTERRUPTED at once. If it holds the slot, its rollout
// removes what it began and then passes the slot on. If it waits, the newest of the older
// waiting revisions takes its place. A deployed revision can be deployed again: as a new
// revision, which has the same build.
//
// A revision that is healthy may be a canary before it is promoted (canary.go): the
// deployment, which is read for each run anyway, says how many percent of the threads the
// canary serves.
//
// Variables of a deployment may have their values in secrets of the workspace (reference.go).
// These values are read when an agent is started, and are hidden in logs like the deployment's
// own secrets.
//
// The tracing project of a deployment has the deployment's name and is created in the same
// transaction. It outlives the deployment, unless it is deleted together with the deployment,
// and belongs to the next deployment of that name.
//
// A deleted deployment may have a recovery window (undelete.go): it is stopped at once like
// any other deleted deployment, but its data is kept until the window is over, and it can be
// undeleted until then. Each deletion has its own numbered teardown, so that an earlier
// teardown does nothing to a deployment that lives again.
//
// Every change of a deployment is written under the condition that nobody changed it since it
// was read, so that of two concurrent PATCHes both are kept.
package deployment

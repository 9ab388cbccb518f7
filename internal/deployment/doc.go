// Package deployment holds what a team asked to run: deployments, the rules that a request must keep, and the slot through which their revisions
// go one at a time.
//
// A create, and each PATCH that asks for it, makes a revision. The first takes the deployment's rollout slot; while the slot is taken newer ones
// are QUEUED. When the slot frees, the newest of them takes it and the others are SKIPPED. latest_revision_id moves at once, active_revision_id
// when a revision is promoted.
//
// Every change of a deployment is written under the condition that nobody changed it since it was read, so that two PATCHes that meet are both kept.
package deployment

// Package compute is the seam to where agents run: processes or containers on one machine, ECS on AWS.
//
// A release is one revision of a deployment made ready to serve. A Target applies it, reports it and removes it; every call is
// idempotent by revision id, so that a rollout step may be repeated.
package compute

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/build"
)

// Ref names a release.
type Ref struct {
	Workspace, Deployment, Revision string
}

// Release is what a target needs to run a revision.
type Release struct {
	Ref
	// Artifact is what the builder made.
	Artifact build.Artifact
	// Env is the agent's environment: its secrets and the settings of the platform. The target adds HOST and PORT.
	Env map[string]string
	// Token is the bearer token that the agent expects on each invocation (SLIPWAY_INVOKE_TOKEN).
	Token string
}

// State is how far a release is.
type State string

const (
	// Progressing: applied, not yet answering.
	Progressing State = "progressing"
	// Healthy: it answers GET /ping.
	Healthy State = "healthy"
	// Failed: it will not become healthy without a new release. Reason and Message say why.
	Failed State = "failed"
	// Absent: never applied here, or removed.
	Absent State = "absent"
)

// Status is a target's report of a release.
type Status struct {
	State State
	// Reason is a constant for machines, Message a sentence for people that may hold the agent's last output lines.
	Reason, Message string
}

// Endpoint is where a healthy release answers.
type Endpoint struct {
	// URL is the base URL, without a trailing slash.
	URL string
	// Token goes into the Authorization header of each invocation.
	Token string
}

// Target runs releases. All methods may be called concurrently.
type Target interface {
	// Apply makes the release run and keeps it running until Remove; it returns as soon as the work is accepted.
	// Applying a revision again does nothing, except that one that had failed is tried anew.
	Apply(ctx context.Context, release Release) error
	// Await returns the release's status. While it is Progressing, Await waits for a change until ctx ends and then
	// returns Progressing without an error.
	Await(ctx context.Context, ref Ref) (Status, error)
	// Acquire returns where to invoke a release, waiting while the target restarts it, and counts the caller in until it calls
	// done: Remove lets those that were counted in finish. The error is an *UnavailableError when the release is not to be had.
	Acquire(ctx context.Context, ref Ref) (endpoint Endpoint, done func(), err error)
	// Remove takes no new callers, lets the present ones finish within the target's drain limit, then stops the release. It returns as
	// soon as the work is accepted. Removing an absent release does nothing.
	Remove(ctx context.Context, ref Ref) error
}

// UnavailableError is returned by Acquire when the release is absent, failed, or not healthy in time.
type UnavailableError struct {
	Ref    Ref
	Status Status
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("revision %s is %s: %s", e.Ref.Revision, e.Status.State, e.Status.Message)
}

// Reasons of a Failed release.
const (
	// ReasonStartFailed: the agent's process could not be started or ended at once.
	ReasonStartFailed = "START_FAILED"
	// ReasonNotReady: the agent never answered GET /ping in time.
	ReasonNotReady = "NOT_READY"
	// ReasonPortTaken: the address that the agent must listen on belongs to another process.
	ReasonPortTaken = "PORT_TAKEN"
)

// Package revision holds one build and rollout of a deployment's source: what was asked for, which
// never changes, and how far it is.
//
// Status, reason and message are three fields: the status is one of the interface's 13 words, the
// reason a constant for machines, the message a sentence for people. Statuses change only along the
// transition table below, each by a write under the condition that the stored status allows it.
package revision

import "slices"

// Status is how far a revision is.
type Status string

const (
	// Creating: recorded. The rollout provisions what the deployment needs once.
	Creating Status = "CREATING"
	// Queued: another revision of the deployment is in flight. Goes on when that one ends, if it is
	// the newest then.
	Queued Status = "QUEUED"
	// AwaitingBuild: provisioned. The rollout starts the build.
	AwaitingBuild Status = "AWAITING_BUILD"
	// Building: the builder works and ends it.
	Building Status = "BUILDING"
	// AwaitingDeploy: built, or an image that needs no build. The rollout hands it to the compute
	// target.
	AwaitingDeploy Status = "AWAITING_DEPLOY"
	// Deploying: the compute target starts it; the rollout waits for its health check.
	Deploying Status = "DEPLOYING"
	// Deployed: it was healthy and became the active revision. Terminal, also when a later revision
	// takes its place.
	Deployed Status = "DEPLOYED"
	// CreateFailed: provisioning failed. Terminal.
	CreateFailed Status = "CREATE_FAILED"
	// BuildFailed: the build failed. Terminal.
	BuildFailed Status = "BUILD_FAILED"
	// DeployFailed: it did not become healthy. Terminal.
	DeployFailed Status = "DEPLOY_FAILED"
	// Skipped: overtaken by a newer revision while it was queued. Terminal.
	Skipped Status = "SKIPPED"
	// Interrupted: stopped by a person. Terminal.
	Interrupted Status = "INTERRUPTED"
	// Unknown: part of the interface; never stored.
	Unknown Status = "UNKNOWN"
)

// transitions lists what may follow each status.
var transitions = map[Status][]Status{
	Creating:       {AwaitingBuild, AwaitingDeploy, CreateFailed, Interrupted},
	Queued:         {AwaitingBuild, AwaitingDeploy, CreateFailed, Skipped, Interrupted},
	AwaitingBuild:  {Building, BuildFailed, Interrupted},
	Building:       {AwaitingDeploy, BuildFailed, Interrupted},
	AwaitingDeploy: {Deploying, DeployFailed, Interrupted},
	Deploying:      {Deployed, DeployFailed, Interrupted},
}

// Terminal reports whether nothing follows the status.
func (s Status) Terminal() bool { return len(transitions[s]) == 0 }

// Failed reports whether the revision failed.
func (s Status) Failed() bool { return s == CreateFailed || s == BuildFailed || s == DeployFailed }

// MayBecome reports whether next may follow s.
func (s Status) MayBecome(next Status) bool { return slices.Contains(transitions[s], next) }

// Failure is the status of a revision that fails in this one.
func (s Status) Failure() Status {
	switch s {
	case Creating, Queued:
		return CreateFailed
	case AwaitingBuild, Building:
		return BuildFailed
	default:
		return DeployFailed
	}
}

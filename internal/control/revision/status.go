package revision

import "slices"

// Status is how far a revision is.
type Status string

const (
	// Creating: recorded. The rollout provisions the things that the deployment needs once.
	Creating Status = "CREATING"
	// Queued: another revision of the deployment is in flight. The queued revision continues
	// when that revision ends, if it is then the newest.
	Queued Status = "QUEUED"
	// AwaitingBuild: provisioned. The rollout starts the build.
	AwaitingBuild Status = "AWAITING_BUILD"
	// Building: the builder works and ends this status.
	Building Status = "BUILDING"
	// AwaitingDeploy: built, or an image that needs no build. The rollout hands the release to
	// the compute target.
	AwaitingDeploy Status = "AWAITING_DEPLOY"
	// Deploying: the compute target starts the release, and the rollout waits for its health.
	Deploying Status = "DEPLOYING"
	// Deployed: the release was healthy and the revision became the active revision. Terminal,
	// also when a later revision takes its place.
	Deployed Status = "DEPLOYED"
	// CreateFailed: provisioning failed. Terminal.
	CreateFailed Status = "CREATE_FAILED"
	// BuildFailed: the build failed. Terminal.
	BuildFailed Status = "BUILD_FAILED"
	// DeployFailed: the release did not become healthy. Terminal.
	DeployFailed Status = "DEPLOY_FAILED"
	// Skipped: superseded by a newer revision while it was queued. Terminal.
	Skipped Status = "SKIPPED"
	// Interrupted: stopped by a person. Terminal.
	Interrupted Status = "INTERRUPTED"
)

// transitions lists the statuses that may follow each status.
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

// Failure is the status that follows if a revision fails in this status.
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

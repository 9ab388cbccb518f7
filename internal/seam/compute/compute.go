// Package compute is the seam to the place where agents run: processes or containers on one
// machine, or ECS on AWS.
//
// A release is one revision of a deployment made ready to serve. A Target applies a release,
// reports it and removes it. Every call is idempotent by revision id, so a rollout step may be
// repeated.
package compute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// Ref names a release.
type Ref struct {
	Workspace, Deployment, Revision string
}

// Release holds everything that a target needs to run a revision.
type Release struct {
	Ref
	// Artifact is the output of the builder.
	Artifact build.Artifact
	// Env is the agent's environment: its secrets and the settings of the platform. The target adds
	// HOST and PORT.
	Env map[string]string
	// Settings are the names in Env that are the platform's settings. Their values are no
	// secrets: branches, paths and names, which stand in every second line of a log.
	Settings []string `json:",omitempty"`
	// SecretReferences are further variables of the agent. Their values are known only at the
	// place where the agent runs. Only a release at a listener can have them; the values of
	// all other releases are in Env.
	SecretReferences []SecretReference `json:",omitempty"`
	// Token is the bearer token that the agent expects on each invocation (SLIPWAY_INVOKE_TOKEN).
	Token string
	// Resources are the CPU, the memory and the number of replicas that the agent gets, as far
	// as the target can provide them.
	Resources Resources
	// ResourceSpec is the interface's ResourceSpec with its defaults filled in, for targets
	// that know more of it than Resources says; nil if there is no ResourceSpec.
	ResourceSpec json.RawMessage `json:",omitempty"`
	// ReadyLimit is how long the release may take to become healthy, 0 for the target's own
	// limit.
	ReadyLimit time.Duration `json:",omitempty"`
	// Rested says that the release serves already and has not crashed. A target that lost it
	// with an earlier server may leave it asleep.
	Rested bool `json:",omitempty"`
	// Placement is where the release is to run if the target does not choose the place itself.
	Placement Placement
}

// SecretReference is the interface's SecretReference: a variable whose value is in a secret of
// the workspace, or at a listener in a Kubernetes Secret of the release's namespace.
type SecretReference struct {
	Name       string `json:"name"`
	SecretKey  string `json:"secret_key"`
	SecretName string `json:"secret_name"`
}

// Placement is a place at a listener. A listener is a party that runs releases elsewhere.
// Placement is zero for all other releases.
type Placement struct {
	// Listener is the listener's id. Namespace is one of its namespaces.
	Listener, Namespace string
}

// settingPrefix begins the names of settings that need not be listed.
const settingPrefix = "SLIPWAY_"

// IsSetting reports whether a variable of Env is a setting of the platform, and no secret.
func (r Release) IsSetting(name string) bool {
	return strings.HasPrefix(name, settingPrefix) || slices.Contains(r.Settings, name)
}

// SecretValues are the values that must not appear in a log: the token, and the release's
// environment except the platform's settings.
func (r Release) SecretValues() []string {
	values := []string{r.Token}
	for name, value := range r.Env {
		if !r.IsSetting(name) {
			values = append(values, value)
		}
	}
	return values
}

// Resources are the CPU, the memory and the number of replicas of one release. A target rounds
// up to a size that it has. A release that asks for more than the target's largest size gets
// that size.
type Resources struct {
	// CPU is in cores, MemoryMB in MiB, both for each replica. A CPU of 0 means DefaultCPU, a
	// MemoryMB of 0 means twice as many GiB as cores.
	CPU      float64
	MemoryMB int
	// MinScale and MaxScale bound the number of replicas. A MinScale of 0 means one replica,
	// which a target may end while nobody calls it. A MaxScale below MinScale means MinScale.
	MinScale, MaxScale int
}

// DefaultCPU is the number of cores of a replica whose Resources name no number.
const DefaultCPU = 0.5

// OrDefaults returns the resources with the defaults in the place of zeros.
func (r Resources) OrDefaults() Resources {
	if r.CPU <= 0 {
		r.CPU = DefaultCPU
	}
	if r.MemoryMB <= 0 {
		r.MemoryMB = int(r.CPU * 2048)
	}
	r.MinScale = max(r.MinScale, 1)
	r.MaxScale = max(r.MaxScale, r.MinScale)
	return r
}

// Scales reports whether the number of replicas may change.
func (r Resources) Scales() bool { return r.MaxScale > r.MinScale }

// State is the state of a release.
type State string

const (
	// Progressing: the release was applied, but does not answer yet.
	Progressing State = "progressing"
	// Healthy: the release answers GET /ping.
	Healthy State = "healthy"
	// Failed: the release will not become healthy without a new release. Reason and Message
	// say why.
	Failed State = "failed"
	// Absent: the release was never applied here, or was removed.
	Absent State = "absent"
)

// Status is a target's report of a release.
type Status struct {
	State State
	// Reason is a constant for machines. Message is a sentence for people and may hold the
	// agent's last output lines.
	Reason, Message string
	// Image is the image of a Healthy release by its digest, "" if the target does not resolve
	// tags. A release that is applied again with this Image runs the same image, even if
	// its tag names another image by then.
	Image string
}

// Endpoint is where a healthy release answers.
type Endpoint struct {
	// URL is the base URL, without a trailing slash.
	URL string
	// Token goes into the Authorization header of each invocation.
	Token string
	// Revision goes into the X-Slipway-Revision header. A load balancer that many releases
	// share finds the release by it.
	Revision string
	// Witness knows how the agent that answers here ends; nil if the target does not know.
	Witness Witness `json:"-"`
	// Private are the networks, beside public ones, in which the agent may be. It is set if a
	// user has named the agent's address, and nil if the platform has named it.
	Private *outbound.Networks `json:"-"`
}

// Witness knows how one agent ends.
type Witness interface {
	// WhyEnded returns, in a sentence, why the agent has ended. If the target is only just
	// noticing the end, WhyEnded waits for it. If ctx ends first, it returns "".
	WhyEnded(ctx context.Context) string
}

// DrainLimit is how long a target lets callers finish, unless its configuration says otherwise.
const DrainLimit = 10 * time.Minute

// Target runs releases. All methods may be called concurrently. The releases of some targets sleep
// while nobody calls them: they stay Healthy without a process, and Acquire wakes them.
type Target interface {
	// Apply makes the release run and keeps it running until Remove; it returns as soon as the
	// work is accepted. Applying a revision again does nothing, except that a failed release
	// is tried again.
	Apply(ctx context.Context, release Release) error
	// Await returns the release's status. While it is Progressing, Await waits for a change until
	// ctx ends and then returns Progressing without an error.
	Await(ctx context.Context, ref Ref) (Status, error)
	// Acquire returns where to invoke a release. It waits while the target restarts the
	// release, and counts the caller in until the caller calls done: Remove lets counted
	// callers finish. The error is an *UnavailableError if the release is not available. Where a
	// load balancer is between callers and agents, Acquire returns the address of the load
	// balancer at once, which answers for agents that are not available.
	Acquire(ctx context.Context, ref Ref) (endpoint Endpoint, done func(), err error)
	// Serves reports whether Acquire would have an endpoint, if need be after it has woken the
	// release. Serves wakes no release, and does not keep it awake. While the release is
	// Progressing, Serves waits until ctx ends.
	Serves(ctx context.Context, ref Ref) (bool, error)
	// AwaitRelapse returns, in a sentence, why a release that was healthy cannot be relied on:
	// it ends time and again, or it does not answer its health check any more. The target
	// tries to keep the release running all the same. AwaitRelapse waits until there is such a
	// reason. If ctx ends first, it returns "" without an error.
	AwaitRelapse(ctx context.Context, ref Ref) (reason string, err error)
	// Remove takes no new callers, lets the present ones finish within the target's drain limit,
	// then stops the release. It returns as soon as the work is accepted. Removing an absent
	// release does nothing.
	Remove(ctx context.Context, ref Ref) error
}

// AcquireWithin acquires a release that is available within limit. A release that slept may take
// its own start time in addition. If the limit ends, the error is an *UnavailableError.
func AcquireWithin(ctx context.Context, target Target, ref Ref, limit time.Duration) (Endpoint, func(), error) {
	for {
		wait, cancel := context.WithTimeout(ctx, limit)
		endpoint, done, err := target.Acquire(wait, ref)
		late := wait.Err() != nil
		cancel()
		unavailable, ok := errors.AsType[*UnavailableError](err)
		switch {
		case err == nil || ctx.Err() != nil:
			return endpoint, done, err
		case ok && unavailable.Status.Reason == ReasonWaking:
		case !ok && late:
			return endpoint, nil, &UnavailableError{Ref: ref, Status: Status{State: Progressing, Message: err.Error()}}
		default:
			return endpoint, nil, err
		}
	}
}

// Restarter is a Target that can start a release's agents again without another revision, so
// that they get another environment.
type Restarter interface {
	// Restart starts the agents of a release again, as the release is described now. The
	// present agents serve until a successor is healthy, and then finish their callers as with
	// Remove. If only one agent can run at a time, callers wait for the successor. If no
	// successor becomes healthy, the present agents serve on. Restart returns as soon as the
	// work is accepted. A release that is absent or failed is applied. A restart is named by
	// its id: asking for the same id again does nothing, and a restart with another id takes
	// its place.
	Restart(ctx context.Context, release Release, restartID string) error
	// AwaitRestart is Await for a restart. The status is Healthy when the restart's
	// successors, or the successors of a restart that took its place, serve all new callers.
	// It is Failed when they will not, and the earlier agents serve on. If the restart is not
	// known, AwaitRestart returns the release's status, because every agent that runs was
	// started after it.
	AwaitRestart(ctx context.Context, ref Ref, restartID string) (Status, error)
}

// Distant is a Target whose releases another party stops, which may be away when Remove is called.
type Distant interface {
	// RemovedSince returns since when the other party is to stop a release that Remove was called
	// for; zero if it has stopped the release.
	RemovedSince(ctx context.Context, ref Ref) (time.Time, error)
}

// MachineTarget is the interface of the targets of one machine.
type MachineTarget interface {
	Target
	Restarter
}

// Alarm is called by a target for each end of an agent that was healthy, which the target
// starts again, and for an agent that cannot be started at all. The status says why, and what
// the agent printed last. The target calls Alarm in parallel to its other work, and Alarm
// handles its own errors.
type Alarm func(ctx context.Context, ref Ref, status Status)

// UnavailableError is returned by Acquire if the release is absent, failed, or not healthy in
// time.
type UnavailableError struct {
	Ref    Ref
	Status Status
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("revision %s is %s: %s", e.Ref.Revision, e.Status.State, e.Status.Message)
}

// Reasons of a Failed release, and of a release that wakes.
const (
	// ReasonStartFailed: the agent's process could not be started, or ended at once.
	ReasonStartFailed = "START_FAILED"
	// ReasonEnded: the agent, which had been healthy, ended by itself.
	ReasonEnded = "AGENT_ENDED"
	// ReasonNotReady: the agent never answered GET /ping in time.
	ReasonNotReady = "NOT_READY"
	// ReasonPortTaken: the address that the agent must listen on belongs to another process.
	ReasonPortTaken = "PORT_TAKEN"
	// ReasonImageUnavailable: the image does not exist, or may not be pulled.
	ReasonImageUnavailable = "IMAGE_UNAVAILABLE"
	// ReasonNoContract: the started program runs, but does not know GET /ping.
	ReasonNoContract = "NO_CONTRACT"
	// ReasonOutOfMemory: the agent was ended because it used more memory than it may.
	ReasonOutOfMemory = "OUT_OF_MEMORY"
	// ReasonOutOfDisk: the agent was ended, or not started, because its files took more disk
	// than they may.
	ReasonOutOfDisk = "OUT_OF_DISK"
	// ReasonOutOfSockets: the agent was ended because it held more sockets than it may.
	ReasonOutOfSockets = "OUT_OF_SOCKETS"
	// ReasonNoContainerEngine: this machine has nothing that can run a container image.
	ReasonNoContainerEngine = "NO_CONTAINER_ENGINE"
	// ReasonNoCapacity: there was no room to run the agent on.
	ReasonNoCapacity = "NO_CAPACITY"
	// ReasonWaking: the agent slept, and is starting. It is the reason of a release that is
	// Progressing for its callers.
	ReasonWaking = "WAKING"
	// ReasonInternal: a fault of the platform, which its log explains.
	ReasonInternal = "INTERNAL_ERROR"
)

// NoCapacity is the error of an Apply that cannot be done because a quota of the platform's
// account is used up. Repeating the Apply helps after room was made.
type NoCapacity struct {
	// Quota is the vendor's name of the quota.
	Quota string
}

func (e *NoCapacity) Error() string {
	return "There is no room to run the agent on: the quota " + e.Quota + " of the platform's account is used up."
}

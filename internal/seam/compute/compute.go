// Package compute is the seam to where agents run: processes or containers on one machine, ECS on
// AWS.
//
// A release is one revision of a deployment made ready to serve. A Target applies it, reports it
// and removes it; every call is idempotent by revision id, so that a rollout step may be repeated.
package compute

import (
	"context"
	"encoding/json"
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

// Release is what a target needs to run a revision.
type Release struct {
	Ref
	// Artifact is what the builder made.
	Artifact build.Artifact
	// Env is the agent's environment: its secrets and the settings of the platform. The target adds
	// HOST and PORT.
	Env map[string]string
	// Settings are the names in Env that are the platform's settings, whose values are no secrets:
	// branches, paths and names, which stand in every second line of a log.
	Settings []string `json:",omitempty"`
	// SecretReferences are further variables of the agent, whose values the place where it runs
	// has. Only a listener's can have any; elsewhere they are in Env.
	SecretReferences []SecretReference `json:",omitempty"`
	// Token is the bearer token that the agent expects on each invocation (SLIPWAY_INVOKE_TOKEN).
	Token string
	// Resources is what the agent gets to run on, as far as the target can give it out.
	Resources Resources
	// ResourceSpec is the interface's ResourceSpec with its defaults filled in, for targets that
	// know more of it than Resources says; nil when there is none.
	ResourceSpec json.RawMessage `json:",omitempty"`
	// ReadyLimit is how long it may take to become healthy, 0 for the target's own limit.
	ReadyLimit time.Duration `json:",omitempty"`
	// Placement is where it is to run when that is not the target's own choice.
	Placement Placement
}

// SecretReference is the interface's: a variable whose value is in a secret of the workspace, or at
// a listener in a Kubernetes Secret of the release's namespace.
type SecretReference struct {
	Name       string `json:"name"`
	SecretKey  string `json:"secret_key"`
	SecretName string `json:"secret_name"`
}

// Placement is a place at a listener, a party that runs releases elsewhere; zero for all other
// releases.
type Placement struct {
	// Listener is the listener's id, Namespace one of its namespaces.
	Listener, Namespace string
}

// settingPrefix begins the names of settings that need not be listed.
const settingPrefix = "SLIPWAY_"

// IsSetting tells whether a variable of Env is a setting of the platform, and no secret.
func (r Release) IsSetting(name string) bool {
	return strings.HasPrefix(name, settingPrefix) || slices.Contains(r.Settings, name)
}

// SecretValues are the values that must not appear in a log: the token, and the release's
// environment but for the platform's settings.
func (r Release) SecretValues() []string {
	values := []string{r.Token}
	for name, value := range r.Env {
		if !r.IsSetting(name) {
			values = append(values, value)
		}
	}
	return values
}

// Resources is what one release runs on. A target rounds up to what it has, and gives the most that
// it has to who wants more.
type Resources struct {
	// CPU is in cores, MemoryMB in MiB, both for each replica; 0 is DefaultCPU, and twice as many
	// GiB as cores.
	CPU      float64
	MemoryMB int
	// MinScale and MaxScale bound the number of replicas; MinScale 0 is one, as nothing would start
	// a release that sleeps, and a MaxScale below MinScale is MinScale.
	MinScale, MaxScale int
}

// DefaultCPU is how many cores a replica gets that asks for none.
const DefaultCPU = 0.5

// OrDefaults returns the resources with what is meant by zeros.
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
	// Reason is a constant for machines, Message a sentence for people that may hold the agent's
	// last output lines.
	Reason, Message string
	// Image is the image of a Healthy release by its digest, "" where the target does not resolve
	// tags: applied again with it, the release runs the same image whatever its tag names by then.
	Image string
}

// Endpoint is where a healthy release answers.
type Endpoint struct {
	// URL is the base URL, without a trailing slash.
	URL string
	// Token goes into the Authorization header of each invocation.
	Token string
	// Revision goes into the X-Slipway-Revision header, by which a load balancer that many releases
	// share knows which one is meant.
	Revision string
	// Witness knows how the agent that answers here ends; nil where the target does not.
	Witness Witness `json:"-"`
	// Private are the networks in which the agent may be beside public ones, where a user has named
	// its address; nil where the platform has.
	Private *outbound.Networks `json:"-"`
}

// Witness knows how one agent ends.
type Witness interface {
	// WhyEnded returns, in a sentence, why the agent has ended. It waits for an end that is only
	// just being noticed; when ctx ends before, it returns "".
	WhyEnded(ctx context.Context) string
}

// Target runs releases. All methods may be called concurrently.
type Target interface {
	// Apply makes the release run and keeps it running until Remove; it returns as soon as the work
	// is accepted. Applying a revision again does nothing, except that one that had failed is tried
	// anew.
	Apply(ctx context.Context, release Release) error
	// Await returns the release's status. While it is Progressing, Await waits for a change until
	// ctx ends and then returns Progressing without an error.
	Await(ctx context.Context, ref Ref) (Status, error)
	// Acquire returns where to invoke a release, waiting while the target restarts it, and counts
	// the caller in until it calls done: Remove lets those that were counted in finish. The error
	// is an *UnavailableError when the release is not to be had.
	Acquire(ctx context.Context, ref Ref) (endpoint Endpoint, done func(), err error)
	// Remove takes no new callers, lets the present ones finish within the target's drain limit,
	// then stops the release. It returns as soon as the work is accepted. Removing an absent
	// release does nothing.
	Remove(ctx context.Context, ref Ref) error
}

// Minder is a Target that goes on looking at its releases when they have been healthy.
type Minder interface {
	// AwaitRelapse returns, in a sentence, why a release that was healthy cannot be relied on: it
	// ends time and again, or does not answer its health check any more. The target tries to keep
	// it running all the same. It waits until there is such a reason; when ctx ends before, it
	// returns "" without an error.
	AwaitRelapse(ctx context.Context, ref Ref) (reason string, err error)
}

// Restarter is a Target that can start a release's agents anew without another revision, so that
// they get another environment.
type Restarter interface {
	// Restart starts the agents of a release anew, as it is described now: those that run serve on
	// until a successor is healthy, and finish their callers as with Remove. Where only one can run
	// at a time, callers wait for the successor. When no successor becomes healthy, those that run
	// serve on. Restart returns as soon as the work is accepted. A release that is absent, or
	// failed, is applied. A restart is named by its id: asking for it again does nothing, and
	// another one takes its place.
	Restart(ctx context.Context, release Release, restartID string) error
	// AwaitRestart is Await for a restart: Healthy when its successors, or those of one that took
	// its place, serve all new callers; Failed when they will not, and the agents before serve on.
	// Of a restart that is not known it returns the release's status, as all that runs was started
	// since.
	AwaitRestart(ctx context.Context, ref Ref, restartID string) (Status, error)
}

// Alarm is told by a target of each end of an agent that was healthy, which it starts again, and of
// an agent that cannot be started at all: why, and what it printed last. It is called beside what
// goes on, and sees to its own errors.
type Alarm func(ctx context.Context, ref Ref, status Status)

// UnavailableError is returned by Acquire when the release is absent, failed, or not healthy in
// time.
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
	// ReasonEnded: the agent, which had been healthy, ended by itself.
	ReasonEnded = "AGENT_ENDED"
	// ReasonNotReady: the agent never answered GET /ping in time.
	ReasonNotReady = "NOT_READY"
	// ReasonPortTaken: the address that the agent must listen on belongs to another process.
	ReasonPortTaken = "PORT_TAKEN"
	// ReasonImageUnavailable: the image does not exist, or may not be pulled.
	ReasonImageUnavailable = "IMAGE_UNAVAILABLE"
	// ReasonNoContract: what was started runs, but does not know GET /ping.
	ReasonNoContract = "NO_CONTRACT"
	// ReasonOutOfMemory: the agent was ended because it used more memory than it may.
	ReasonOutOfMemory = "OUT_OF_MEMORY"
	// ReasonNoContainerEngine: nothing here can run a container image.
	ReasonNoContainerEngine = "NO_CONTAINER_ENGINE"
	// ReasonNoCapacity: there was no room to run the agent on.
	ReasonNoCapacity = "NO_CAPACITY"
	// ReasonInternal: a fault of the platform, which its log explains.
	ReasonInternal = "INTERNAL_ERROR"
)

// NoCapacity is the error of an Apply that a quota of the platform's account stands in the way of.
// Repeating it helps when somebody has made room.
type NoCapacity struct {
	// Quota is what the vendor calls it.
	Quota string
}

func (e *NoCapacity) Error() string {
	return "There is no room to run the agent on: the quota " + e.Quota + " of the platform's account is used up."
}

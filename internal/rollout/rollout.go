package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/thread"
	"github.com/slipway-run/slipway/internal/workflow"
)

// Reasons of failures that the rollout itself finds.
const (
	// ReasonInternal: a fault of the platform, which its log explains.
	ReasonInternal = "INTERNAL_ERROR"
	// ReasonNoContainerEngine: this server cannot run container images.
	ReasonNoContainerEngine = "NO_CONTAINER_ENGINE"
)

// next is the answer of a step: the state that the machine goes to.
type next string

const (
	provision       next = "Provision"
	startBuild      next = "Build"
	awaitBuild      next = "AwaitBuild"
	deploy          next = "Deploy"
	awaitHealthy    next = "AwaitHealthy"
	promote         next = "Promote"
	fail            next = "Fail"
	done            next = "Done"
	eraseThreads    next = "EraseThreads"
	eraseDeployment next = "EraseDeployment"
)

// Forgetter erases what is kept about a revision outside of the table.
type Forgetter interface {
	Remove(revision string) error
}

// Config is what a Rollout works with.
type Config struct {
	Deployments *deployment.Store
	Threads     *thread.Store
	Workflow    workflow.Engine
	Builder     build.Builder
	// Targets run the releases of each source; a source without one cannot be deployed here.
	Targets map[revision.Source]compute.Target
	Logs    Forgetter
	Now     clock.Clock
	Log     *slog.Logger
	// Patience is how long one step waits for a build or a release before it lets the machine ask again; default 20 s.
	Patience time.Duration
}

// Rollout performs the steps. It is safe for concurrent use.
type Rollout struct{ Config }

// New returns a Rollout.
func New(c Config) *Rollout {
	if c.Patience == 0 {
		c.Patience = 20 * time.Second
	}
	return &Rollout{c}
}

// task is the input of a Task state.
type task struct {
	Step string `json:"step"`
	deployment.Task
}

func (t task) deployment() deployment.Ref {
	return deployment.Ref{Workspace: t.Workspace, Deployment: t.Deployment}
}

// Task is the workflow.TaskFunc of both machines.
func (r *Rollout) Task(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var t task
	if err := json.Unmarshal(input, &t); err != nil {
		return nil, fmt.Errorf("decode task: %w", err)
	}
	answer, err := r.step(ctx, t)
	if err != nil {
		r.Log.WarnContext(ctx, "rollout step ended with an error", "step", t.Step, "deployment", t.Deployment, "revision", t.Revision, "error", err)
		return nil, fmt.Errorf("%s: %w", t.Step, err)
	}
	return json.Marshal(map[string]next{"next": answer})
}

func (r *Rollout) step(ctx context.Context, t task) (next, error) {
	switch t.Step {
	case "StopReleases":
		return eraseThreads, r.stopReleases(ctx, t.deployment())
	case "EraseThreads":
		return r.eraseThreads(ctx, t.deployment())
	case "EraseDeployment":
		return r.eraseDeployment(ctx, t.deployment())
	}
	step, ok := map[string]func(context.Context, position) (next, error){
		"Prepare": r.prepare, "Provision": r.provision, "Build": r.build, "AwaitBuild": r.awaitBuild,
		"Deploy": r.deploy, "AwaitHealthy": r.awaitHealthy, "Promote": r.promote, "Fail": r.fail,
	}[t.Step]
	if !ok {
		return "", errors.New("there is no such step")
	}
	// Others may change the deployment between reading and writing; each time it was to somebody's success.
	for range contention {
		answer, err := r.attempt(ctx, t, step)
		if !errors.Is(err, deployment.ErrOvertaken) {
			return answer, err
		}
	}
	return "", deployment.ErrOvertaken
}

// contention is how often a step is tried anew because a request changed the deployment meanwhile.
const contention = 100

func (r *Rollout) attempt(ctx context.Context, t task, step func(context.Context, position) (next, error)) (next, error) {
	at, err := r.read(ctx, t)
	if fault.Is(err, fault.NotFound) || (err == nil && at.deployment.Status == deployment.AwaitingDelete) {
		return done, nil // the teardown takes care of the rest
	}
	if err != nil {
		return "", err
	}
	if at.revision.Status.Terminal() && t.Step != "Promote" {
		return done, r.startNext(ctx, at.deployment)
	}
	answer, err := step(ctx, at)
	return answer, errors.Join(err, r.takeBack(ctx, at))
}

// takeBack undoes what a step has started for a deployment that was deleted meanwhile, as the teardown may have passed by already. It does so
// even for a step that was cut off.
func (r *Rollout) takeBack(ctx context.Context, at position) error {
	ctx = context.WithoutCancel(ctx)
	d, err := r.Deployments.Get(ctx, at.deployment.Ref)
	if fault.Is(err, fault.NotFound) || (err == nil && d.Status == deployment.AwaitingDelete) {
		return r.forget(ctx, at.deployment.Source, at.revision.Ref)
	}
	return err
}

// position is a rollout as it was read.
type position struct {
	deployment deployment.Deployment
	revision   revision.Revision
}

func (r *Rollout) read(ctx context.Context, t task) (position, error) {
	d, rev, err := r.Deployments.GetRevision(ctx, t.deployment().Revision(t.Revision))
	return position{d, rev}, err
}

// prepare takes the revision up. One that does not hold the slot waits for its turn, or was overtaken.
func (r *Rollout) prepare(_ context.Context, at position) (next, error) {
	if at.deployment.Slot != at.revision.Revision {
		return done, nil
	}
	return provision, nil
}

// provision makes what the deployment needs once. Its tracing project was created with it; its threads need no database of their own.
func (r *Rollout) provision(ctx context.Context, at position) (next, error) {
	status, answer := revision.AwaitingBuild, startBuild
	if at.revision.Source == revision.ExternalDocker {
		status, answer = revision.AwaitingDeploy, deploy
	}
	if at.revision.Status != revision.Creating && at.revision.Status != revision.Queued {
		return answer, nil
	}
	return answer, r.Deployments.Provisioned(ctx, at.deployment, at.revision.Change(r.Now(), status))
}

func (r *Rollout) build(ctx context.Context, at position) (next, error) {
	spec, err := r.buildSpec(ctx, at.revision)
	if err != nil {
		return "", err
	}
	if err := r.Builder.Start(ctx, spec); err != nil {
		return "", fmt.Errorf("start build: %w", err)
	}
	if at.revision.Status != revision.AwaitingBuild {
		return awaitBuild, nil
	}
	return awaitBuild, r.Deployments.Advance(ctx, at.deployment, at.revision.Change(r.Now(), revision.Building))
}

func (r *Rollout) buildSpec(ctx context.Context, rev revision.Revision) (build.Spec, error) {
	spec := build.Spec{
		Workspace: rev.Workspace, Deployment: rev.Deployment, Revision: rev.Revision,
		RepoURL: text(rev.RepoURL), Ref: text(rev.Config.RepoRef), ConfigPath: text(rev.Config.ConfigPath),
	}
	if len(rev.Credentials) > 0 {
		credentials, err := r.Deployments.Open(ctx, owner(rev.Ref), rev.Credentials)
		if err != nil {
			return build.Spec{}, err
		}
		spec.Credentials = string(credentials)
	}
	return spec, nil
}

func (r *Rollout) awaitBuild(ctx context.Context, at position) (next, error) {
	if at.revision.Status != revision.Building {
		return deploy, nil // an earlier delivery of this step has moved it on
	}
	if at.revision.Reason != "" {
		return fail, nil // or has noted why it fails
	}
	wait, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	result, err := r.Builder.Await(wait, at.revision.Revision)
	if err != nil {
		return "", fmt.Errorf("await build: %w", err)
	}
	switch result.State {
	case build.Succeeded:
		return deploy, r.Deployments.Built(ctx, at.deployment, at.revision, result)
	case build.Failed:
		return fail, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), result.Reason, result.Message))
	case build.Absent: // lost with the process that did it
		return r.build(ctx, at)
	default:
		return awaitBuild, nil
	}
}

// fail ends the revision with the failure that was noted on it, or as a fault of the platform when the machine's retries ran out.
func (r *Rollout) fail(ctx context.Context, at position) (next, error) {
	reason, message := at.revision.Reason, at.revision.Message
	if reason == "" {
		reason, message = ReasonInternal, "The platform could not complete this step; the server's log says why. Try again, and tell its operator if it persists."
	}
	if target, ok := r.Targets[at.revision.Source]; ok {
		if err := target.Remove(ctx, compute.Ref(at.revision.Ref)); err != nil {
			return "", fmt.Errorf("remove release: %w", err)
		}
	}
	if err := r.Builder.Remove(ctx, at.revision.Revision); err != nil {
		return "", fmt.Errorf("remove build: %w", err)
	}
	if err := r.Deployments.Fail(ctx, at.deployment, at.revision, reason, message); err != nil {
		return "", err
	}
	return "", deployment.ErrOvertaken // by this step: who goes next is read anew
}

// startNext starts the rollout of the revision that the slot was passed on to, if there is one.
func (r *Rollout) startNext(ctx context.Context, d deployment.Deployment) error {
	if !d.Busy {
		return nil
	}
	return r.Deployments.StartRollout(ctx, d)
}

func owner(ref revision.Ref) deployment.Ref {
	return deployment.Ref{Workspace: ref.Workspace, Deployment: ref.Deployment}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// internalTrouble is the message for a person about compute.ReasonInternal.
const internalTrouble = "The platform could not complete this step; the server's log says why. Try again, and tell its operator if it persists."

// next is what a step answers: the state of the machine that comes next.
type next string

const (
	provision       next = "Provision"
	startBuild      next = "Build"
	awaitBuild      next = "AwaitBuild"
	deploy          next = "Deploy"
	awaitHealthy    next = "AwaitHealthy"
	canary          next = "Canary"
	promote         next = "Promote"
	observe         next = "Observe"
	await           next = "Wait"
	beginPurge      next = "BeginPurge"
	fail            next = "Fail"
	done            next = "Done"
	eraseThreads    next = "EraseThreads"
	eraseDeployment next = "EraseDeployment"
	restart         next = "Restart"
	awaitRestart    next = "AwaitRestart"
	failed          next = "Failed"

	// again is the answer of a step that has written, and must read the remaining work.
	again next = "again"
)

// Forgetter erases the data about a revision that is kept outside of the table.
type Forgetter interface {
	Remove(revision string) error
}

// Integrations provides the credentials of repositories. *integration.Service is an
// implementation.
type Integrations interface {
	// CloneCredentials returns "user:password". A fault.Unavailable may go away by itself; the
	// message of any other fault tells people what to do.
	CloneCredentials(ctx context.Context, workspace, integrationID, repoURL string) (string, error)
	// CloneRefused says why a clone with such credentials may have been refused, as a fault
	// like the faults of CloneCredentials; nil if it knows no cause.
	CloneRefused(ctx context.Context, workspace, integrationID, repoURL string) error
}

// Eraser removes all data that it keeps about a deployment.
type Eraser interface {
	Erase(ctx context.Context, workspace, deployment string) error
}

// PageEraser removes a page of the data that it keeps about a deployment, and reports whether more
// may be left. It ends in time before the deadline of ctx.
type PageEraser interface {
	Erase(ctx context.Context, workspace, deployment string) (more bool, err error)
}

// Config is the configuration of a Rollout.
type Config struct {
	Deployments *deployment.Store
	Threads     *thread.Store
	// Kept are the stores of the other data of a deployment, crons first.
	Kept []Eraser
	// Items are what the agents of a deployment have stored.
	Items    PageEraser
	Workflow workflow.Engine
	Builder  build.Builder
	// Uploads are the sources of revisions of uploaded sources; nil if there are no uploads.
	Uploads upload.Store
	// Integrations are asked for credentials when a revision names an integration.
	Integrations Integrations
	// Targets run the releases of each source; a source without a target cannot be deployed
	// here.
	Targets map[revision.Source]compute.Target
	// Listeners runs the releases of deployments that are placed at a listener, of all
	// sources.
	Listeners compute.Target
	// Images are the images that clients have pushed; nil where clients cannot push.
	Images registry.Registry
	Logs   Forgetter
	// Hasher derives the token of each release.
	Hasher secret.Hasher
	Now    clock.Clock
	Log    *slog.Logger
	// Patience is how long one step waits for a build or a release before it lets the machine ask
	// again; default 20 s.
	Patience time.Duration
	// Probation is how long a revision is observed after its promotion, where its deployment asks
	// for automatic rollback; default 10 min.
	Probation time.Duration
	// Steady is how long an agent that had crashed must run without an end to count as
	// recovered; default 5 min.
	Steady time.Duration
	// Stopping ends when the process is about to end. Then all waits for releases end; the
	// releases stay as they are without the process. Nil: the process does not announce its
	// end.
	Stopping context.Context
	// Trials watch releases that are started again; nil: they are not watched.
	Trials workflow.Trials
}

// Rollout performs the steps. It is safe for concurrent use.
type Rollout struct {
	Config

	// missing holds the revision.Ref of each release that Restore could not restore. If the table
	// takes no write, because the disk is full, no record tells that such a release is missing.
	missing sync.Map
}

// New returns a Rollout.
func New(c Config) *Rollout {
	c.Patience = cmp.Or(c.Patience, 20*time.Second)
	c.Probation = cmp.Or(c.Probation, 10*time.Minute)
	c.Steady = cmp.Or(c.Steady, 5*time.Minute)
	c.Stopping = cmp.Or(c.Stopping, context.Background())
	return &Rollout{Config: c}
}

// task is the input of a Task state.
type task struct {
	Step string `json:"step"`
	deployment.Task

	// rescue says that no workflow performs the step.
	rescue bool
}

func (t task) deployment() deployment.Ref {
	return deployment.Ref{Workspace: t.Workspace, Deployment: t.Deployment}
}

// Task is the workflow.TaskFunc of the three machines.
func (r *Rollout) Task(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var t task
	if err := json.Unmarshal(input, &t); err != nil {
		return nil, fmt.Errorf("decode task: %w", err)
	}
	answer, err := r.perform(ctx, t)
	if err != nil {
		r.Log.WarnContext(ctx, "rollout step ended with an error", "step", t.Step, "deployment", t.Deployment, "revision", t.Revision, "error", err)
		return nil, fmt.Errorf("%s: %w", t.Step, err)
	}
	return json.Marshal(answer)
}

// result is the answer of a step, and the output of its Task state.
type result struct {
	Next next `json:"next"`
	// Due is when a machine that waits (await) goes on; "" in any other answer.
	Due string `json:"due"`
}

// position is a rollout in the state that was read.
type position struct {
	deployment deployment.Deployment
	revision   revision.Revision
	// changes wakes a wait within a step. It is nil if the position was not read for a wait.
	changes table.Watcher
}

// torn reports whether the deployment was read before the revision's promotion, and the revision
// after it.
func (at position) torn() bool {
	id := at.revision.Revision
	return at.revision.Status == revision.Deployed && at.deployment.Slot == id && at.deployment.Active != id
}

func (r *Rollout) read(ctx context.Context, ref revision.Ref) (position, error) {
	d, rev, err := r.Deployments.GetRevision(ctx, ref)
	return position{deployment: d, revision: rev}, err
}

// readForWait is read for a step that may wait. The watch begins before the revision is read, so
// that the wait notices each change that the step did not see. stop ends the watch.
func (r *Rollout) readForWait(ctx context.Context, ref revision.Ref) (at position, stop func(), err error) {
	changes := r.Deployments.Watch(ref)
	at, err = r.read(ctx, ref)
	at.changes = changes
	return at, changes.Stop, err
}

// prepare begins the work on the revision. A revision that does not hold the slot waits for
// its turn, or was superseded. The releases that are left from before a deletion are removed
// first.
func (r *Rollout) prepare(ctx context.Context, at position) (next, error) {
	if at.deployment.Slot != at.revision.Revision {
		return done, nil
	}
	if len(at.deployment.Leftover) == 0 {
		return provision, nil
	}
	for _, id := range at.deployment.Leftover {
		if err := r.cutOff(ctx, at.deployment, at.deployment.Revision(id)); err != nil {
			return "", err
		}
	}
	return provision, r.Deployments.Cleared(ctx, at.deployment)
}

// provision makes the things that the deployment needs once. Its tracing project was created
// with it; its threads need no separate database. An image needs no build; a revision that was
// made from a built revision needs no build either.
func (r *Rollout) provision(ctx context.Context, at position) (next, error) {
	status, answer := revision.AwaitingBuild, startBuild
	if at.revision.IsBuilt() {
		status, answer = revision.AwaitingDeploy, deploy
	}
	if at.revision.Status != revision.Creating && at.revision.Status != revision.Queued {
		return answer, nil
	}
	return answer, r.Deployments.Provisioned(ctx, at.deployment, at.revision.Change(r.Now(), status))
}

// fail ends the revision with the failure that was noted on it or, when the machine's retries
// ran out, with a fault of the platform. That fault is noted first, so that no process regards
// the release as a release that must run while it is removed.
func (r *Rollout) fail(ctx context.Context, at position) (next, error) {
	if !at.revision.Doomed() {
		return again, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), compute.ReasonInternal, internalTrouble))
	}
	if at.deployment.Canary > 0 {
		// Afterwards the active release serves all threads, so the canary may go.
		return again, r.Deployments.EndCanary(ctx, at.deployment)
	}
	if err := r.discard(ctx, at.deployment, at.revision.Ref); err != nil {
		return "", err
	}
	// The next step starts the next revision.
	return again, r.Deployments.Fail(ctx, at.deployment, at.revision, at.revision.Reason, at.revision.Message)
}

// interrupted removes what the rollout of a cancelled revision has begun, and passes the slot
// on.
func (r *Rollout) interrupted(ctx context.Context, at position) (next, error) {
	if at.deployment.Slot != at.revision.Revision || !at.deployment.Busy {
		return done, r.startNext(ctx, at.deployment)
	}
	if err := r.discard(ctx, at.deployment, at.revision.Ref); err != nil {
		return "", err
	}
	return again, r.Deployments.PassOn(ctx, at.deployment) // the next step starts the next revision
}

// waitForRelease is wait for work that goes on outside of this process, or ends with it: the
// wait does not delay a process that is about to end.
func (r *Rollout) waitForRelease(ctx context.Context, at position) (_ context.Context, stop func()) {
	ctx, end := r.untilStopping(ctx)
	ctx, endWait := r.wait(ctx, at)
	return ctx, func() {
		endWait()
		end()
	}
}

// untilStopping returns a context that ends when the step's patience is over, or when the process
// is about to end.
func (r *Rollout) untilStopping(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	unlink := context.AfterFunc(r.Stopping, cancel)
	return ctx, func() {
		unlink()
		cancel()
	}
}

// wait returns a context for a wait within a step whose position was read by readForWait. The
// context ends when the step's patience is over, and as soon as the revision is cancelled, or is
// a canary that is promoted before its time. These are the only changes of the revision by others.
func (r *Rollout) wait(ctx context.Context, at position) (_ context.Context, stop func()) {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-at.changes.C():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}

// startNext starts the rollout of the revision that the slot was passed on to, if there is one.
func (r *Rollout) startNext(ctx context.Context, d deployment.Deployment) error {
	if !d.Busy {
		return nil
	}
	return r.Deployments.StartRollout(ctx, d)
}

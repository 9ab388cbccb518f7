package rollout

import (
	"context"
	"errors"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
)

// handler performs a step.
type handler func(*Rollout, context.Context, task) (result, error)

// steps has the handler of each Task state of the three machines: rollout.asl.json,
// restart.asl.json and teardown.asl.json.
var steps = map[string]handler{
	"Prepare":      ofRevision((*Rollout).prepare),
	"Provision":    ofRevision((*Rollout).provision),
	"Build":        ofRevision((*Rollout).build),
	"AwaitBuild":   ofRevision((*Rollout).awaitBuild),
	"Deploy":       ofRevision((*Rollout).deploy),
	"AwaitHealthy": ofRevision((*Rollout).awaitHealthy),
	"Canary":       ofRevision((*Rollout).canary),
	"Promote":      ofRevision((*Rollout).promote),
	"Observe":      ofRevision((*Rollout).observe),
	"Fail":         ofRevision((*Rollout).fail),

	"Restart":      undelayed((*Rollout).restart),
	"AwaitRestart": undelayed((*Rollout).awaitRestart),
	"FailRestart":  undelayed((*Rollout).failRestart),

	"StopReleases":    (*Rollout).stopReleases,
	"BeginPurge":      (*Rollout).beginPurge,
	"EraseThreads":    (*Rollout).eraseThreads,
	"EraseDeployment": (*Rollout).eraseDeployment,
}

// perform performs a step of one of the machines.
func (r *Rollout) perform(ctx context.Context, t task) (result, error) {
	perform, ok := steps[t.Step]
	if !ok {
		return result{}, errors.New("there is no such step")
	}
	return perform(r, ctx, t)
}

// undelayed is the handler of a step that names the next step, without a time for it.
func undelayed(step func(*Rollout, context.Context, task) (next, error)) handler {
	return func(r *Rollout, ctx context.Context, t task) (result, error) {
		name, err := step(r, ctx, t)
		return result{Next: name}, err
	}
}

// ofRevision is the handler of a step of a rollout, which reads the revision and performs the step.
func ofRevision(step func(*Rollout, context.Context, position) (next, error)) handler {
	return undelayed(func(r *Rollout, ctx context.Context, t task) (next, error) {
		return untilDone(ctx, func(ctx context.Context) (next, error) { return r.attempt(ctx, t, step) })
	})
}

// untilDone repeats an attempt that lost a race, and an attempt whose answer is "again": it has
// changed the data that it had read, so the next attempt reads them anew.
func untilDone(ctx context.Context, attempt func(context.Context) (next, error)) (next, error) {
	return record.Retry(ctx, func(ctx context.Context) (next, error) {
		name, err := attempt(ctx)
		if name == again && err == nil {
			err = record.ErrLost
		}
		return name, err
	})
}

// attempt reads the revision and performs a step of its rollout, unless the deployment was deleted
// or the revision has ended.
func (r *Rollout) attempt(ctx context.Context, t task, step func(*Rollout, context.Context, position) (next, error)) (next, error) {
	at, stop, err := r.readForWait(ctx, t.deployment().Revision(t.Revision))
	defer stop()
	if fault.Is(err, fault.NotFound) || (err == nil && at.deployment.Status == deployment.AwaitingDelete) {
		return done, nil // the teardown does the rest
	}
	if err != nil {
		return "", err
	}
	if at.deployment.Slot == at.revision.Revision && !at.revision.HadSlot() {
		if err := r.Deployments.Skip(ctx, at.deployment.Ref, at.revision.Revision); err != nil {
			return "", err
		}
	}
	if at.revision.Status == revision.Interrupted {
		return r.interrupted(ctx, at)
	}
	if at.torn() {
		return again, nil
	}
	promoted := at.revision.Status == revision.Deployed && t.Step == "Canary" // by request
	if at.revision.Status.Terminal() && !promoted && t.Step != "Promote" && t.Step != "Observe" {
		return done, r.startNext(ctx, at.deployment)
	}
	answer, err := step(r, ctx, at)
	return answer, errors.Join(err, r.undoStep(ctx, at))
}

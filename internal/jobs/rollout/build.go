package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// build starts the build of the revision's commit.
func (r *Rollout) build(ctx context.Context, at position) (next, error) {
	spec, err := r.buildSpec(ctx, at.revision)
	if f, known := errors.AsType[*fault.Error](err); known && f.Kind != fault.Unavailable {
		// A person must correct it: AwaitBuild finds the reason.
		return awaitBuild, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), build.ReasonRepoUnreachable, f.Message))
	}
	if err != nil {
		return "", err
	}
	err = r.Builder.Start(ctx, spec)
	if full, ok := errors.AsType[*build.NoCapacity](err); ok {
		return awaitBuild, r.awaitRoom(ctx, at, build.ReasonNoCapacity, full.Error())
	}
	if err != nil {
		return "", fmt.Errorf("start build: %w", err)
	}
	if at.revision.Status != revision.AwaitingBuild {
		return awaitBuild, r.hasRoom(ctx, at)
	}
	return awaitBuild, r.Deployments.Advance(ctx, at.deployment, at.revision.Change(r.Now(), revision.Building))
}

func (r *Rollout) buildSpec(ctx context.Context, rev revision.Revision) (build.Spec, error) {
	spec := build.Spec{
		Workspace: rev.Workspace, Deployment: rev.Deployment, Revision: rev.Revision,
		Tarball: optional.Text(rev.Config.TarballPath), RepoURL: optional.Text(rev.RepoURL), Ref: optional.Text(rev.Config.RepoRef), ConfigPath: optional.Text(rev.Config.ConfigPath),
		InstallCommand: optional.Text(rev.InstallCommand), BuildCommand: optional.Text(rev.BuildCommand),
	}
	if rev.Forgotten && rev.Source == revision.GitHub {
		spec.Commit = rev.CommitSHA
	}
	switch {
	case rev.IntegrationID != nil:
		var err error
		if spec.Credentials, err = r.Integrations.CloneCredentials(ctx, rev.Workspace, *rev.IntegrationID, spec.RepoURL); err != nil {
			return build.Spec{}, fmt.Errorf("credentials of integration %s: %w", *rev.IntegrationID, err)
		}
	case len(rev.Credentials) > 0:
		credentials, err := r.Deployments.Open(ctx, deployment.RefOf(rev.Ref), rev.Credentials)
		if err != nil {
			return build.Spec{}, err
		}
		spec.Credentials = string(credentials)
	}
	return spec, nil
}

func (r *Rollout) awaitBuild(ctx context.Context, at position) (next, error) {
	if at.revision.Doomed() {
		return fail, nil // the reason was already noted
	}
	if at.revision.Status != revision.Building {
		return deploy, nil // an earlier delivery of this step has moved it on
	}
	begun := r.Now()
	wait, stop := r.wait(ctx, at)
	defer stop()
	result, err := r.Builder.Await(wait, at.revision.Revision)
	if err != nil {
		return "", fmt.Errorf("await build: %w", err)
	}
	switch result.State {
	case build.Succeeded:
		return deploy, r.Deployments.Built(ctx, at.deployment, at.revision, result)
	case build.Failed:
		message, err := r.whyFailed(ctx, at.revision, result)
		if err != nil {
			return "", err
		}
		return fail, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), result.Reason, message))
	case build.Absent: // lost with the process that built it
		r.Log.WarnContext(ctx, "build was lost", "deployment", at.deployment.Deployment, "revision", at.revision.Revision, "why", result.Message)
		return r.buildAgain(ctx, at)
	default:
		return r.goesOn(ctx, at, result, begun)
	}
}

// goesOn notes whether a build that is not finished waits for room.
func (r *Rollout) goesOn(ctx context.Context, at position, result build.Result, begun time.Time) (next, error) {
	if err := r.renewCredentials(ctx, at, begun); err != nil {
		return "", err
	}
	if result.Reason == "" {
		return awaitBuild, r.hasRoom(ctx, at)
	}
	if inVain, err := r.noteRoom(ctx, at, result.Reason, result.Message); err != nil || inVain {
		return fail, err
	}
	return awaitBuild, nil
}

// mostLost is how often the build of one revision may be lost before the revision fails. A build
// is lost with its process; a build that is lost each time may be what ends the process.
const mostLost = 10

// buildAgain starts a build that was lost, and counts the loss. While the build waits for its
// place, its start is an error and no loss is counted.
func (r *Rollout) buildAgain(ctx context.Context, at position) (next, error) {
	if at.revision.Lost >= mostLost {
		r.Log.ErrorContext(ctx, "builds of a revision were lost again and again", "deployment", at.deployment.Deployment, "revision", at.revision.Revision, "builds", at.revision.Lost)
		return fail, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), build.ReasonInternal, internalTrouble))
	}
	answer, err := r.build(ctx, at)
	if err != nil {
		return "", err
	}
	return answer, r.Deployments.Advance(ctx, at.deployment, at.revision.Losing(r.Now()))
}

// renewal is the interval at which a queued build gets fresh credentials. It is much shorter than
// the time for which credentials are valid.
const renewal = 5 * time.Minute

// renewCredentials gives a queued build fresh credentials each time a renewal interval has passed.
func (r *Rollout) renewCredentials(ctx context.Context, at position, begun time.Time) error {
	since := at.revision.Since[revision.Building]
	if at.revision.IntegrationID == nil || begun.Sub(since)/renewal == r.Now().Sub(since)/renewal {
		return nil
	}
	spec, err := r.buildSpec(ctx, at.revision)
	if _, known := errors.AsType[*fault.Error](err); known {
		return nil // the clone will find the same fault, or the fault goes away
	}
	if err != nil {
		return err
	}
	if err := r.Builder.Start(ctx, spec); err != nil {
		return fmt.Errorf("renew credentials of build: %w", err)
	}
	return nil
}

// whyFailed returns the message for a person about a build that failed. If the clone failed,
// the integration may know the cause better than git.
func (r *Rollout) whyFailed(ctx context.Context, rev revision.Revision, result build.Result) (string, error) {
	if result.Reason != build.ReasonRepoUnreachable || rev.IntegrationID == nil {
		return result.Message, nil
	}
	err := r.Integrations.CloneRefused(ctx, rev.Workspace, *rev.IntegrationID, optional.Text(rev.RepoURL))
	f, known := errors.AsType[*fault.Error](err)
	switch {
	case known && f.Kind != fault.Unavailable:
		return f.Message, nil
	case err != nil && !known:
		return "", fmt.Errorf("ask integration %s about a clone: %w", *rev.IntegrationID, err)
	default: // the integration finds no fault, or there is no answer
		return result.Message, nil
	}
}

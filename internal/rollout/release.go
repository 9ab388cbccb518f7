package rollout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/revision"
)

// deploy hands the release to the compute target.
func (r *Rollout) deploy(ctx context.Context, at position) (next, error) {
	target, ok := r.Targets[at.revision.Source]
	if !ok {
		return awaitHealthy, nil // which says so
	}
	if at.revision.Status == revision.AwaitingDeploy {
		token, err := r.Deployments.Seal(ctx, owner(at.revision.Ref), []byte(rand.Text()))
		if err != nil {
			return "", fmt.Errorf("seal token: %w", err)
		}
		if err := r.Deployments.Advance(ctx, at.deployment, at.revision.Releasing(r.Now(), token)); err != nil {
			return "", err
		}
		at.revision.Token = token
	}
	return awaitHealthy, r.apply(ctx, target, at.deployment, at.revision)
}

func (r *Rollout) apply(ctx context.Context, target compute.Target, d deployment.Deployment, rev revision.Revision) error {
	release, err := r.release(ctx, d, rev)
	if err != nil {
		return err
	}
	if err := target.Apply(ctx, release); err != nil {
		return fmt.Errorf("apply release: %w", err)
	}
	return nil
}

// release opens what the revision's agent is given: its own secrets and the settings of the platform.
func (r *Rollout) release(ctx context.Context, d deployment.Deployment, rev revision.Revision) (compute.Release, error) {
	secrets, err := r.Deployments.Secrets(ctx, owner(rev.Ref), rev.Secrets)
	if err != nil {
		return compute.Release{}, err
	}
	token, err := r.Deployments.Open(ctx, owner(rev.Ref), rev.Token)
	if err != nil {
		return compute.Release{}, err
	}
	env := make(map[string]string, len(secrets)+4)
	for _, s := range secrets {
		env[s.Name] = s.Value
	}
	env["SLIPWAY_DEPLOYMENT_ID"] = rev.Deployment
	env["SLIPWAY_DEPLOYMENT_NAME"] = d.Name
	env["SLIPWAY_REVISION_ID"] = rev.Revision
	artifact := rev.Artifact
	if rev.Source == revision.ExternalDocker {
		artifact.Image = text(rev.Config.ImageURI)
	}
	return compute.Release{Ref: compute.Ref(rev.Ref), Artifact: artifact, Env: env, Token: string(token)}, nil
}

func (r *Rollout) awaitHealthy(ctx context.Context, at position) (next, error) {
	if at.revision.Reason != "" {
		return fail, nil // an earlier delivery of this step has noted why
	}
	target, ok := r.Targets[at.revision.Source]
	if !ok {
		return fail, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), ReasonNoContainerEngine,
			"This server has no container engine, so it cannot run an image. Deploy from a git repository, or let a server with Docker run it."))
	}
	wait, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	status, err := target.Await(wait, compute.Ref(at.revision.Ref))
	if err != nil {
		return "", fmt.Errorf("await release: %w", err)
	}
	switch status.State {
	case compute.Healthy:
		return promote, nil
	case compute.Failed:
		return fail, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), status.Reason, status.Message))
	case compute.Absent: // lost with the process that ran it
		return r.deploy(ctx, at)
	default:
		return awaitHealthy, nil
	}
}

// promote makes the revision the active one, then lets the release before it drain. A repetition finishes what is left to do.
func (r *Rollout) promote(ctx context.Context, at position) (next, error) {
	var err error
	switch {
	case at.deployment.Retiring != "":
		err = r.retire(ctx, at.deployment, at.deployment.Retiring)
	case at.revision.Status == revision.Deploying:
		err = r.Deployments.Promote(ctx, at.deployment, at.revision)
	default:
		return done, r.startNext(ctx, at.deployment)
	}
	if err != nil {
		return "", err
	}
	return "", deployment.ErrOvertaken // by this step: what is left to do is read anew
}

func (r *Rollout) retire(ctx context.Context, d deployment.Deployment, revisionID string) error {
	if target, ok := r.Targets[d.Source]; ok {
		if err := target.Remove(ctx, compute.Ref(d.Revision(revisionID))); err != nil {
			return fmt.Errorf("remove release: %w", err)
		}
	}
	return r.Deployments.Retired(ctx, d, revisionID)
}

// Restore starts the releases anew that a compute target lost with the process that ran them. What should not run any more is taken off the list.
func (r *Rollout) Restore(ctx context.Context) error {
	refs, err := r.Deployments.Releases(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, ref := range refs {
		if err := r.restore(ctx, ref); err != nil {
			problems = append(problems, fmt.Errorf("restore revision %s: %w", ref.Revision, err))
		}
	}
	return errors.Join(problems...)
}

func (r *Rollout) restore(ctx context.Context, ref revision.Ref) error {
	d, rev, err := r.Deployments.GetRevision(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.Status == deployment.AwaitingDelete || (ref.Revision != d.Active && rev.Status != revision.Deploying) {
		return r.retire(ctx, d, ref.Revision)
	}
	target, ok := r.Targets[rev.Source]
	if !ok {
		return nil
	}
	return r.apply(ctx, target, d, rev)
}

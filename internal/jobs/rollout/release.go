package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// deploy hands the release to the compute target.
func (r *Rollout) deploy(ctx context.Context, at position) (next, error) {
	target, ok := r.target(at.deployment)
	if !ok {
		return awaitHealthy, nil // that step reports it
	}
	if at.revision.Status == revision.AwaitingDeploy {
		return again, r.Deployments.Advance(ctx, at.deployment, at.revision.Releasing(r.Now()))
	}
	return awaitHealthy, r.start(ctx, target, at)
}

// start hands the release of a rollout to the compute target. A problem that a person must
// correct is noted on the revision, as the reason why the revision is about to fail.
func (r *Rollout) start(ctx context.Context, target compute.Target, at position) error {
	err := r.apply(ctx, target, at.deployment, at.revision)
	if unusable, ok := errors.AsType[*deployment.StartError](err); ok {
		return r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), unusable.Reason, unusable.Message))
	}
	if full, ok := errors.AsType[*compute.NoCapacity](err); ok {
		return r.awaitRoom(ctx, at, compute.ReasonNoCapacity, full.Error())
	}
	if err != nil {
		return err
	}
	return r.hasRoom(ctx, at)
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

// Reasons why a release cannot be started, and their messages.
const (
	// ReasonBuildOutdated: the build was made by earlier rules for configuration files, so it is
	// not known whether its agent would be served without something that its repository asks for.
	ReasonBuildOutdated = "BUILD_OUTDATED"
	buildOutdated       = "The build was made before every key of the configuration file was checked, so the agent is not started from it. Deploy the revision again: it is built again."
	// ReasonEncryptionMissing: the deployment's data are encrypted, and the revision cannot decrypt
	// them.
	ReasonEncryptionMissing = "ENCRYPTION_MISSING"
	encryptionMissing       = "encryption: the data of this deployment are encrypted by an earlier revision's own handlers, and this revision's configuration file lacks the key. Add it with handlers that decrypt these data, or create another deployment."
)

// release opens the values that the revision's agent is given: its secrets, and the settings
// of the platform.
func (r *Rollout) release(ctx context.Context, d deployment.Deployment, rev revision.Revision) (compute.Release, error) {
	if !rev.Checked() {
		return compute.Release{}, &deployment.StartError{Reason: ReasonBuildOutdated, Message: buildOutdated}
	}
	if d.Encrypted && rev.Artifact.Encryption == "" {
		return compute.Release{}, &deployment.StartError{Reason: ReasonEncryptionMissing, Message: encryptionMissing}
	}
	secrets, err := r.Deployments.AgentSecrets(ctx, d, rev)
	if err != nil {
		return compute.Release{}, err
	}
	if err := deployment.CheckWebhooks(rev, secrets); err != nil {
		return compute.Release{}, err
	}
	settings := settingsOf(d, rev, secrets)
	env := make(map[string]string, len(secrets)+len(settings))
	for _, s := range secrets {
		env[s.Name] = s.Value
	}
	maps.Copy(env, settings) // requests cannot set the variables that the platform sets
	artifact := rev.Artifact
	if artifact.Image, err = r.image(ctx, rev); err != nil {
		return compute.Release{}, err
	}
	resources, err := d.Resources(rev)
	if err != nil {
		return compute.Release{}, err
	}
	release := compute.Release{
		Ref: compute.Ref(rev.Ref), Artifact: artifact, Env: env, Settings: namesOf(settings), Resources: resources, Token: secret.InvokeToken(r.Hasher, rev.Revision),
		ReadyLimit: d.ReadyLimit(), Rested: rev.Revision == d.Active && d.Crashed.IsZero(),
	}
	if release.ResourceSpec, err = rev.Effective(); err != nil {
		return compute.Release{}, fmt.Errorf("revision %s: %w", rev.Revision, err)
	}
	if d.Remote() {
		release.Placement, release.SecretReferences = compute.Placement{Listener: *d.SourceConfig.ListenerID, Namespace: d.Namespace()}, rev.SecretReferences
	}
	return release, nil
}

// image returns the present address of the revision's image: an image that was pushed here
// stays reachable when the server gets another address.
func (r *Rollout) image(ctx context.Context, rev revision.Revision) (string, error) {
	image := rev.Image()
	if rev.Source != revision.InternalDocker || r.Images == nil {
		return image, nil
	}
	repository, err := r.Images.Repository(ctx, registry.Ref(deployment.RefOf(rev.Ref)))
	if err != nil {
		return "", fmt.Errorf("name repository: %w", err)
	}
	return registry.At(repository, image), nil
}

// namesOf returns the names of settings, in order, except the name of an address with
// credentials in it.
func namesOf(settings map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(settings)), func(name string) bool {
		return name == "PLATFORM_FRAMEWORK_GIT_REPO" && strings.Contains(settings[name], "@")
	})
}

// settingsOf returns the settings that the platform gives to the agent.
func settingsOf(d deployment.Deployment, rev revision.Revision, secrets []deployment.Secret) map[string]string {
	// The agent sends traces to the service for which it has a key; they belong to the project
	// with the deployment's name.
	traces := strconv.FormatBool(slices.ContainsFunc(secrets, func(s deployment.Secret) bool { return s.Name == "PLATFORM_API_KEY" && s.Value != "" }))
	settings := map[string]string{
		"SLIPWAY_DEPLOYMENT_ID": rev.Deployment, "SLIPWAY_DEPLOYMENT_NAME": d.Name, "SLIPWAY_REVISION_ID": rev.Revision,
		"PLATFORM_PROJECT": d.Name, "VENDOR_PROJECT": d.Name, "PLATFORM_TRACING_V2": traces, "VENDOR_TRACING_V2": traces,
		"PLATFORM_HOST_PROJECT_NAME": d.Name, "PLATFORM_HOST_PROJECT_ID": d.TracingProject, "PLATFORM_HOST_REVISION_ID": rev.Revision,
		"PLATFORM_DEPLOYMENT_NAME": d.Name, "PLATFORM_TENANT_ID": rev.Workspace,
		"PLATFORM_FRAMEWORK_GIT_REPO": optional.Text(rev.RepoURL), "PLATFORM_FRAMEWORK_GIT_REF": optional.Text(rev.Config.RepoRef),
		// The runtime does not serve a repository whose own authentication is not the
		// authentication that the platform asks.
		"SLIPWAY_AUTH": rev.Artifact.Auth,
		// The same holds for the repository's own encryption.
		"SLIPWAY_ENCRYPTION": rev.Artifact.Encryption,
		// It also does not serve a repository with other keys that it does not know, unless
		// the platform has read them.
		"SLIPWAY_KEYS":                   strings.Join(rev.Artifact.Settings.Keys(), " "),
		"PLATFORM_FRAMEWORK_GIT_REF_SHA": rev.Commit(), "FRAMEWORK_GIT_REPO_PATH": optional.Text(rev.Config.ConfigPath),
	}
	maps.DeleteFunc(settings, func(_, value string) bool { return value == "" })
	return settings
}

func (r *Rollout) awaitHealthy(ctx context.Context, at position) (next, error) {
	if at.revision.Doomed() {
		return fail, nil // an earlier delivery of this step has noted why
	}
	target, ok := r.target(at.deployment)
	if !ok {
		return r.cannotRun(ctx, at)
	}
	wait, stop := r.waitForRelease(ctx, at)
	defer stop()
	status, err := target.Await(wait, compute.Ref(at.revision.Ref))
	if err != nil {
		return "", fmt.Errorf("await release: %w", err)
	}
	switch status.State {
	case compute.Healthy:
		if rev := at.revision; rev.Source.IsImage() && rev.Status == revision.Deploying && status.Image != "" && status.Image != rev.Artifact.Image {
			if err := r.Deployments.Advance(ctx, at.deployment, rev.Pinned(r.Now(), status.Image)); err != nil {
				return "", err
			}
		}
		return r.afterHealth(wait, at, target)
	case compute.Failed:
		if status.Reason == compute.ReasonNoCapacity {
			return r.startLater(ctx, target, at, status.Message)
		}
		return fail, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), status.Reason, status.Message))
	case compute.Absent: // lost with the process that ran it
		return r.deploy(ctx, at)
	default:
		return awaitHealthy, nil
	}
}

// cannotRun notes that no target here runs releases of the revision's source, and what the operator
// can do.
func (r *Rollout) cannotRun(ctx context.Context, at position) (next, error) {
	what := "what it has built"
	if at.revision.Source.IsImage() {
		what = "an image"
	}
	message := "This server cannot run " + what + ". It has no container engine and no network for agents. On one machine, start Docker. " +
		"On AWS, update the stack with VpcId and the parameters that belong to it."
	return fail, r.Deployments.Advance(ctx, at.deployment, at.revision.Note(r.Now(), compute.ReasonNoContainerEngine, message))
}

// keptBuilds is the number of deployed revisions of a deployment whose builds are kept. An
// older revision that is deployed again is built again.
const keptBuilds = 10

// promote makes the revision the active revision, then lets the previous release drain. A
// repetition finishes the remaining work.
func (r *Rollout) promote(ctx context.Context, at position) (next, error) {
	switch {
	case at.deployment.Retiring != "":
		return again, r.retire(ctx, at.deployment, at.deployment.Retiring)
	case at.revision.Status == revision.Deploying:
		return again, r.Deployments.Promote(ctx, at.deployment, at.revision)
	}
	answer, err := r.afterPromotion(ctx, at)
	err = errors.Join(err, r.startNext(ctx, at.deployment))
	r.forgetBuilds(ctx, at)
	return answer, err
}

// forgetBuilds removes builds that are not needed any more, and the uploads for them. The
// agent is healthy even if forgetBuilds fails, and the next promotion tries again.
func (r *Rollout) forgetBuilds(ctx context.Context, at position) {
	d := at.deployment
	var err error
	if d.Source != revision.InternalDocker {
		err = r.Deployments.ForgetBuilds(ctx, d, keptBuilds, r.Builder.Remove)
	} else if r.Images != nil {
		err = r.Deployments.KeepImages(ctx, d, keptBuilds, func(ctx context.Context, images []string) error {
			return r.Images.Keep(ctx, registry.Ref(d.Ref), images)
		})
	}
	if err == nil && r.Uploads != nil {
		err = r.Deployments.ForgetUploads(ctx, d, r.Uploads)
	}
	if err != nil && !errors.Is(err, record.ErrLost) {
		r.Log.WarnContext(ctx, "old builds are left to the next promotion", "deployment", d.Deployment, "revision", at.revision.Revision, "error", err)
	}
}

func (r *Rollout) retire(ctx context.Context, d deployment.Deployment, revisionID string) error {
	if err := r.remove(ctx, d, d.Revision(revisionID)); err != nil {
		return err
	}
	return r.Deployments.Retired(ctx, d, revisionID)
}

// target returns the target that runs a deployment's releases; ok is false when there is no
// such target here.
func (r *Rollout) target(d deployment.Deployment) (_ compute.Target, ok bool) {
	if d.Remote() {
		return r.Listeners, true
	}
	target, ok := r.Targets[d.Source]
	return target, ok
}

func (r *Rollout) remove(ctx context.Context, d deployment.Deployment, ref revision.Ref) error {
	target, ok := r.target(d)
	if !ok || ref.Revision == "" {
		return nil
	}
	if err := target.Remove(ctx, compute.Ref(ref)); err != nil {
		return fmt.Errorf("remove release: %w", err)
	}
	return nil
}

// Restore starts again the releases that a compute target lost with the process that ran them.
// A release that must not run any more is removed from the list.
func (r *Rollout) Restore(ctx context.Context) error {
	refs, err := r.Deployments.Releases(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, ref := range refs {
		restore := func() error { return r.restore(ctx, ref) }
		if err := guard.Run(r.Log, "restore a release", restore); err != nil {
			problems = append(problems, fmt.Errorf("restore revision %s: %w", ref.Revision, err))
			r.missing.Store(ref, nil)
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
	target, ok := r.target(d)
	switch {
	case !ok:
		return nil
	case ref.Revision == d.Active:
		return r.startAgain(ctx, target, d, rev)
	default: // its rollout goes on and tells the result
		return r.applyAgain(ctx, target, d, rev)
	}
}

// applyAgain starts a release that may have caused the crash of a server before. After two
// crashes it is not started again.
func (r *Rollout) applyAgain(ctx context.Context, target compute.Target, d deployment.Deployment, rev revision.Revision) error {
	apply := func() error { return r.apply(ctx, target, d, rev) }
	if r.Trials == nil {
		return apply()
	}
	return r.Trials.Try(ctx, "release/"+rev.Revision, apply)
}

// startAgain starts the serving release again. If the release cannot be started, that is told,
// and Rescue tries again.
func (r *Rollout) startAgain(ctx context.Context, target compute.Target, d deployment.Deployment, rev revision.Revision) error {
	err := guard.Run(r.Log, "start a release again", func() error { return r.applyAgain(ctx, target, d, rev) })
	if err == nil {
		return nil
	}
	status := compute.Status{State: compute.Failed, Reason: compute.ReasonInternal, Message: internalTrouble}
	if unusable, ok := errors.AsType[*deployment.StartError](err); ok {
		status.Reason, status.Message = unusable.Reason, unusable.Message
	} else if errors.Is(err, workflow.ErrServerDied) {
		status.Message = "The server crashed twice while it started this release, which is not started again. Deploy another revision."
	}
	if status.Reason == ReasonBuildOutdated {
		err = errors.Join(err, r.Deployments.Rebuild(ctx, d, rev))
	}
	r.Deployments.Alarm(ctx, compute.Ref(rev.Ref), status)
	return err
}

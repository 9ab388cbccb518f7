package codebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/codebuild"
	"github.com/aws/aws-sdk-go-v2/service/codebuild/types"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/repository"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// Config is the configuration of a Builder. A value may be zero if it has a default; the
// default is named at the value.
type Config struct {
	// AWS holds region, credentials and, for tests, an endpoint.
	AWS aws.Config
	// Table stores which build belongs to a revision.
	Table table.Table
	// NamePrefix is the prefix of the names of secrets.
	NamePrefix string
	// Project is the name of the CodeBuild project. ECRRepository is the URI of the image
	// repository that the project may push to.
	Project, ECRRepository string
	// Uploads knows the addresses of the tarballs that are built in place of repositories; nil
	// if there are no uploads.
	Uploads Uploads
	// LogGroup is the log group for the output of builds. Each build writes to streams whose
	// names begin with its revision. "" leaves the log group to the project.
	LogGroup string
	// Tools is the ARN of the Lambda layer with the program that the script needs
	// (cmd/slipway-recipe).
	Tools string
	// Slots is how many builds of one workspace run or wait in CodeBuild at once, at most
	// maxSlots; 0 for any number. A build without a slot is a *build.NoCapacity.
	Slots int
	// Timeout is how long a build may take once it has begun (15 min).
	Timeout time.Duration
	// After makes the timer for the time between two polls (time.After).
	After func(time.Duration) <-chan time.Time
}

// Uploads knows the addresses of uploads. Package upload/s3 has an implementation.
type Uploads interface {
	// URI returns the s3:// address of an upload.
	URI(ref upload.Ref) string
	// Keep has an upload kept for longer than uploads that no revision names.
	Keep(ctx context.Context, ref upload.Ref) error
}

// Builder implements build.Builder.
type Builder struct {
	cfg     Config
	builds  *codebuild.Client
	images  *ecr.Client
	secrets *secretsmanager.Client
}

var _ build.Builder = (*Builder)(nil)

const (
	// baseRegistry has the base images of Python and Node agents: the copies of Docker's official
	// images in ECR's public gallery. baseImage is the base image of all other agents, like the
	// images of CodeBuild.
	baseRegistry = "public.ecr.aws/docker/library"
	baseImage    = "public.ecr.aws/amazonlinux/amazonlinux:2023"
	// maxAttempts is how many times the SDK sends a request that is throttled or fails because
	// of a fault of the service.
	maxAttempts = 6
	// firstPoll and lastPoll bound the time between two looks at a build.
	firstPoll, lastPoll = time.Second, 8 * time.Second
	// stopLimit is how long Remove waits for a build to stop. After that Remove returns an
	// error, and the caller must repeat it.
	stopLimit = 20 * time.Second
	// margin is the time that CodeBuild gives the script in addition to Timeout, for work that
	// is not the repository's. queueLimit is how long CodeBuild lets a build wait, at most. It is
	// longer than rollouts wait, so that they decide when a build has waited in vain.
	margin, queueLimit = 15 * time.Minute, 8 * time.Hour
)

// New returns a builder. It sends no request.
func New(cfg Config) (*Builder, error) {
	for name, missing := range map[string]bool{
		"table": cfg.Table == nil, "name prefix": cfg.NamePrefix == "", "project": cfg.Project == "", "image repository": cfg.ECRRepository == "",
		"layer with tools": cfg.Tools == "",
	} {
		if missing {
			return nil, fmt.Errorf("open codebuild builder: there is no %s", name)
		}
	}
	if cfg.Slots < 0 || cfg.Slots > maxSlots {
		return nil, fmt.Errorf("open codebuild builder: %d places: there may be at most %d", cfg.Slots, maxSlots)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 15*time.Minute)
	cfg.AWS.RetryMaxAttempts = cmp.Or(cfg.AWS.RetryMaxAttempts, maxAttempts)
	if cfg.After == nil {
		cfg.After = time.After
	}
	return &Builder{
		cfg: cfg, builds: codebuild.NewFromConfig(cfg.AWS), images: ecr.NewFromConfig(cfg.AWS), secrets: secretsmanager.NewFromConfig(cfg.AWS),
	}, nil
}

// Start starts the build of a revision, unless such a build runs or has succeeded. A build
// that is in CodeBuild's queue gets the credentials again.
func (b *Builder) Start(ctx context.Context, spec build.Spec) error {
	if !id.Valid(spec.Revision) {
		return fmt.Errorf("start build: revision %q is not an id", spec.Revision)
	}
	if err := b.start(ctx, spec); err != nil {
		return fmt.Errorf("start build of revision %s: %w", spec.Revision, err)
	}
	return nil
}

func (b *Builder) start(ctx context.Context, spec build.Spec) error {
	note, err := b.read(ctx, spec.Revision)
	if err != nil {
		return err
	}
	if note.build != "" {
		begun, err := b.find(ctx, note)
		if err != nil || b.succeeded(begun) {
			return err
		}
		if inProgress(begun) {
			return b.renewCredentials(ctx, spec, note, begun)
		}
	}
	failure := ""
	from, err := b.sources(spec)
	repo := from.repo
	if refused, ok := errors.AsType[*build.Failure](err); ok {
		failure = refused.Message
	} else if err != nil {
		return err
	}
	if note, err = b.begin(ctx, spec.Revision, note, repo.Given(), failure); err != nil || failure != "" {
		return err
	}
	if err := b.acquireSlot(ctx, spec.Workspace, spec.Revision); err != nil {
		return err
	}
	if repo.Given() {
		if err := b.storeCredentials(ctx, spec, repo.Pair()); err != nil {
			return err
		}
	}
	return b.request(ctx, spec, from, note)
}

// request asks CodeBuild for the build of a note.
func (b *Builder) request(ctx context.Context, spec build.Spec, from sources, note note) error {
	input, err := b.input(spec, from, note)
	if err != nil {
		return err
	}
	if from.tarball != "" {
		if err := b.cfg.Uploads.Keep(ctx, from.upload); err != nil {
			return err
		}
	}
	started, err := b.builds.StartBuild(ctx, input)
	if _, full := errors.AsType[*types.AccountLimitExceededException](err); full {
		return &build.NoCapacity{Quota: "builds that run and wait in CodeBuild"}
	}
	if err != nil {
		return err
	}
	return b.started(ctx, spec.Revision, note, aws.ToString(started.Build.Id))
}

// sources are the place that a build gets its files from: a repository, or the address of a
// tarball and the time at which its upload began.
type sources struct {
	repo     repository.Repository
	upload   upload.Ref
	tarball  string
	uploaded time.Time
}

func (b *Builder) sources(spec build.Spec) (sources, error) {
	if spec.Tarball == "" {
		repo, err := repository.Parse(spec)
		return sources{repo: repo}, err
	}
	ref, ok := upload.ParseOf(spec.Workspace, spec.Deployment, spec.Tarball)
	if !ok || b.cfg.Uploads == nil {
		return sources{}, fmt.Errorf("%q is no upload of deployment %s that is kept here", spec.Tarball, spec.Deployment)
	}
	return sources{upload: ref, tarball: b.cfg.Uploads.URI(ref), uploaded: id.Time(ref.Upload)}, nil
}

// find returns the build of a note; nil if CodeBuild does not know the build any more.
func (b *Builder) find(ctx context.Context, note note) (*types.Build, error) {
	described, err := b.builds.BatchGetBuilds(ctx, &codebuild.BatchGetBuildsInput{Ids: []string{note.build}})
	if err != nil || len(described.Builds) == 0 {
		return nil, err
	}
	return &described.Builds[0], nil
}

func inProgress(b *types.Build) bool { return b != nil && b.BuildStatus == types.StatusTypeInProgress }

// inQueue reports whether a build that is in progress waits in CodeBuild's queue.
func inQueue(b *types.Build) bool {
	return aws.ToString(b.CurrentPhase) == string(types.BuildPhaseTypeQueued)
}

// succeeded reports whether the build has made an image.
func (b *Builder) succeeded(ended *types.Build) bool {
	result, err := b.resultOf(ended)
	return err == nil && result.State == build.Succeeded
}

// Await looks at the build at growing intervals until it has ended.
func (b *Builder) Await(ctx context.Context, revision string) (build.Result, error) {
	if !id.Valid(revision) {
		return build.Result{}, fmt.Errorf("await build: revision %q is not an id", revision)
	}
	last := build.Result{State: build.Running}
	for pause := firstPoll; ; pause = min(pause*3/2, lastPoll) {
		result, err := b.look(ctx, revision)
		switch {
		case clock.IsOver(ctx, err):
			return last, nil
		case err != nil:
			return build.Result{}, fmt.Errorf("await build of revision %s: %w", revision, err)
		case result.State != build.Running:
			return result, nil
		}
		last = result
		select {
		case <-b.cfg.After(pause):
		case <-ctx.Done():
			return last, nil
		}
	}
}

// look returns the build's result as it is now. It deletes the secret of a build that has
// ended.
func (b *Builder) look(ctx context.Context, revision string) (build.Result, error) {
	note, err := b.read(ctx, revision)
	if err != nil {
		return build.Result{}, err
	}
	if note.failure != "" {
		return build.Result{State: build.Failed, Reason: build.ReasonRepoUnreachable, Message: note.failure}, nil
	}
	if note.build == "" {
		return build.Result{State: build.Absent}, nil
	}
	described, err := b.find(ctx, note)
	switch {
	case err != nil:
		return build.Result{}, err
	case inProgress(described) && inQueue(described):
		return noRoom(build.Running), nil
	case inProgress(described):
		return build.Result{State: build.Running}, nil
	}
	if note.secret {
		if err := b.deleteCredentials(ctx, revision); err != nil {
			return build.Result{}, err
		}
		if _, err := b.change(ctx, revision, note, table.Attrs{attrSecret: false}); err != nil {
			return build.Result{}, err
		}
	}
	return b.resultOf(described)
}

// Remove stops the build if it still runs, and deletes its image, its secret and its note.
func (b *Builder) Remove(ctx context.Context, revision string) error {
	if !id.Valid(revision) {
		return fmt.Errorf("remove build: revision %q is not an id", revision)
	}
	if err := b.remove(ctx, revision); err != nil {
		return fmt.Errorf("remove build of revision %s: %w", revision, err)
	}
	return nil
}

func (b *Builder) remove(ctx context.Context, revision string) error {
	note, err := b.read(ctx, revision)
	if err != nil || note.attempt == 0 {
		return err
	}
	if note.build == "" && note.failure == "" {
		if note.build, err = b.search(ctx, revision, tagOf(revision, note.attempt)); err != nil {
			return err
		}
	}
	if err := b.stop(ctx, note); err != nil {
		return err
	}
	if err := b.deleteImages(ctx, revision, note.attempt); err != nil {
		return err
	}
	if note.secret {
		if err := b.deleteCredentials(ctx, revision); err != nil {
			return err
		}
	}
	return b.cfg.Table.Transact(ctx, table.Delete{Key: keys.Build(revision)})
}

// search returns the id of the build that runs or waits and will push a tag of a revision, "" if
// there is no such build. A caller of StartBuild that died before it noted the id has left such a
// build. StartBuild does not tell the id again: it recognizes its token for five minutes only, and
// only with the same input.
func (b *Builder) search(ctx context.Context, revision, tag string) (string, error) {
	newest := &codebuild.ListBuildsForProjectInput{ProjectName: aws.String(b.cfg.Project), SortOrder: types.SortOrderTypeDescending}
	for {
		page, err := b.builds.ListBuildsForProject(ctx, newest)
		if err != nil || len(page.Ids) == 0 {
			return "", err
		}
		described, err := b.builds.BatchGetBuilds(ctx, &codebuild.BatchGetBuildsInput{Ids: page.Ids})
		if err != nil {
			return "", err
		}
		older := false // by more than the clocks differ
		for i := range described.Builds {
			begun := &described.Builds[i]
			if inProgress(begun) && pushes(begun, tag) {
				return aws.ToString(begun.Id), nil
			}
			older = older || begun.StartTime != nil && begun.StartTime.Before(id.Time(revision).Add(-time.Minute))
		}
		if newest.NextToken = page.NextToken; older || page.NextToken == nil {
			return "", nil
		}
	}
}

// pushes reports whether a build was started to push a tag.
func pushes(b *types.Build, tag string) bool {
	return b.Environment != nil && slices.ContainsFunc(b.Environment.EnvironmentVariables, func(v types.EnvironmentVariable) bool {
		return aws.ToString(v.Name) == varTag && aws.ToString(v.Value) == tag
	})
}

// stop ends the build and waits until it has stopped: a build that is still stopping might
// push its image after Remove has deleted the image.
func (b *Builder) stop(ctx context.Context, note note) error {
	if note.build == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopLimit, errors.New("the build has not stopped yet"))
	defer cancel()
	described, err := b.find(ctx, note)
	if err != nil || !inProgress(described) {
		return err
	}
	if _, err := b.builds.StopBuild(ctx, &codebuild.StopBuildInput{Id: aws.String(note.build)}); err != nil {
		return err
	}
	for pause := firstPoll; inProgress(described); pause = min(pause*3/2, lastPoll) {
		if described, err = b.find(ctx, note); err != nil || !inProgress(described) {
			return err
		}
		select {
		case <-b.cfg.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

package local

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// Images makes container images. Package build/docker implements it.
type Images interface {
	// Build makes the image of a tree, writes the output to log, and returns the image's id. A
	// step that fails is a *dockerfile.StepError.
	Build(ctx context.Context, revision string, recipe dockerfile.Recipe, tree *os.Root, log io.Writer) (id string, err error)
	// Remove removes the image of a revision. Removing an absent image does nothing.
	Remove(ctx context.Context, revision string) error
}

// inImage reports whether the repository's commands run in the image. The commands of a
// repository with a start command need the tools of this machine.
func (j *job) inImage(config framework.Config) bool {
	return j.builder.cfg.Images != nil && config.Language != ""
}

// makeImage makes an image of the tree, and then removes the tree.
func (j *job) makeImage(ctx context.Context, tree string, from commit, config framework.Config) (build.Artifact, error) {
	if err := j.checkExtent(j.tree.FS()); err != nil {
		return build.Artifact{}, err
	}
	recipe, err := dockerfile.Make(dockerfile.Source{
		Tree: j.tree, Config: config, URL: from.url, Commit: from.id, Committed: from.made,
		Workspace: j.spec.Workspace, Deployment: j.spec.Deployment, Revision: j.spec.Revision,
		InstallCommand: j.spec.InstallCommand, BuildCommand: j.spec.BuildCommand,
	}, j.builder.cfg.Bases)
	if err != nil {
		return build.Artifact{}, err
	}
	if err := j.note(revisionlog.Info, "making an image from %s", recipe.Base); err != nil {
		return build.Artifact{}, err
	}
	log, err := j.openLog()
	if err != nil {
		return build.Artifact{}, err
	}
	id, err := j.builder.cfg.Images.Build(ctx, j.spec.Revision, recipe, j.tree, log)
	if err := errors.Join(err, log.Close()); err != nil {
		return build.Artifact{}, j.imageFailure(ctx, err, log.Last())
	}
	if err := j.note(revisionlog.Info, "the image is %s", id); err != nil {
		return build.Artifact{}, err
	}
	j.record = recipe.Record
	j.record.Image = id
	return build.Artifact{Image: id, Graphs: config.Graphs, Descriptions: config.Descriptions, Auth: config.Auth, Encryption: config.Encryption, Settings: config.Settings}, child.RemoveFiles(tree)
}

// imageFailure returns the failure of making an image, with the last output of the step that
// failed.
func (j *job) imageFailure(ctx context.Context, err error, last string) error {
	if begun := strings.LastIndex("\n"+last, "\nStep "); begun >= 0 {
		_, last, _ = strings.Cut(last[begun:], "\n")
	}
	said := outcome{last: last}.lastWords()
	if err := stopped(ctx, "the image was being made. "+said); err != nil {
		return err
	}
	if failed, ok := errors.AsType[*dockerfile.StepError](err); ok {
		return failed.Failure(said)
	}
	return err
}

// removeImage removes the image that the revision was built into, if there is an image.
func (b *Builder) removeImage(ctx context.Context, revision string) error {
	result, err := b.readResult(revision)
	if err != nil || b.cfg.Images == nil || (result.State == build.Succeeded && result.Artifact.Image == "") {
		return err
	}
	return b.cfg.Images.Remove(ctx, revision)
}

package local

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// checkPaths refuses a commit whose files cannot be written, or would become a tree that nobody can
// handle: git itself ends with an error, or crashes, or makes directories below each other by the
// thousand. Submodules have no such check; Own bounds their depth.
func (g git) checkPaths(ctx context.Context, commit string) error {
	ran, err := g.refuse(ctx, commit, build.TroubleWithPath, "ls-tree", "-r", "-z", "--name-only", commit)
	if err == nil && ran.failed() {
		return build.Fail(build.ReasonSourceInvalid, "the files of the commit %s cannot be listed. %s", commit, ran.lastWords())
	}
	return err
}

// refusePointers refuses a checked out commit with files that are only in Git LFS: an agent would
// find pointers in their place. If git finds no file, it fails.
func (g git) refusePointers(ctx context.Context, commit string) error {
	_, err := g.refuse(ctx, commit, func(path string) string {
		return fmt.Sprintf("the file %.100q is in Git LFS, from which nothing is fetched. Put it into the repository itself, or upload the directory with slipway deploy", path)
	}, "grep", "-l", "-z", "-e", `^version https://git-lfs\.github\.com/spec/v1$`, "--", ":(attr:filter=lfs)")
	return err
}

// refuse lists paths with a command of git, and refuses the commit at the first path with trouble.
func (g git) refuse(ctx context.Context, commit string, check func(path string) string, list ...string) (outcome, error) {
	listing, stop := context.WithCancel(ctx)
	defer stop()
	paths := build.CheckPaths(stop, check)
	ran, err := g.run(listing, paths, list...)
	if paths.Trouble != "" {
		return ran, build.Fail(build.ReasonSourceInvalid, "the commit %s cannot be checked out: %s.", commit, paths.Trouble)
	}
	return ran, err
}

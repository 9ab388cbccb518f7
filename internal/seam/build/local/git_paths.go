package local

import (
	"bytes"
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// mostFiles is how many files a commit may have. A small repository can stand for any number,
// because a commit may have a directory many times.
const mostFiles = 1_000_000

// checkPaths refuses a commit whose files cannot be written, or would become a tree that nobody can
// handle: git itself ends with an error, or crashes, or makes directories below each other by the
// thousand. Submodules have no such check; Own bounds their depth.
func (g git) checkPaths(ctx context.Context, commit string) error {
	listing, stop := context.WithCancel(ctx)
	defer stop()
	paths := pathsCheck{stop: stop}
	ran, err := g.run(listing, &paths, "ls-tree", "-r", "-z", "--name-only", commit)
	switch {
	case paths.trouble != "":
		return build.Fail(build.ReasonSourceInvalid, "the commit %s cannot be checked out: %s.", commit, paths.trouble)
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case ran.failed():
		return build.Fail(build.ReasonSourceInvalid, "the files of the commit %s cannot be listed. %s", commit, ran.lastWords())
	}
	return nil
}

// pathsCheck reads paths that each end with a zero byte, and stops at the first one with trouble.
type pathsCheck struct {
	stop    func()
	trouble string
	files   int
	rest    []byte
}

func (c *pathsCheck) Write(p []byte) (int, error) {
	if c.trouble != "" {
		return len(p), nil
	}
	c.rest = append(c.rest, p...)
	for c.trouble == "" {
		path, rest, whole := bytes.Cut(c.rest, []byte{0})
		c.trouble = build.TroubleWithPath(string(path))
		if !whole {
			break
		}
		c.rest = rest
		if c.files++; c.files > mostFiles && c.trouble == "" {
			c.trouble = fmt.Sprintf("it has more than %d files", mostFiles)
		}
	}
	if c.trouble != "" {
		c.stop()
	}
	return len(p), nil
}

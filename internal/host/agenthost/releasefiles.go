package agenthost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// releaseFiles keeps releases in sealed files of a directory, each named by its revision and its
// workspace.
type releaseFiles struct {
	dir    string
	sealer secret.Sealer
}

// open makes the directory and erases the unfinished files of a host that died.
func (s releaseFiles) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(s.dir, disk.Unfinished+"*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func (s releaseFiles) path(ref compute.Ref) string {
	return filepath.Join(s.dir, ref.Revision+"."+ref.Workspace)
}

func boundOf(workspace, revision string) secret.Bound {
	return secret.Bound{Workspace: workspace, Resource: "release " + revision}
}

// write writes a release completely and durably, or not at all.
func (s releaseFiles) write(ctx context.Context, release compute.Release) error {
	sealed, err := record.Seal(ctx, s.sealer, boundOf(release.Workspace, release.Revision), "release", release)
	if err != nil {
		return err
	}
	return disk.Replace(s.path(release.Ref), sealed, 0o600)
}

func (s releaseFiles) remove(ref compute.Ref) error {
	err := os.Remove(s.path(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, disk.SyncDir(s.dir))
}

// all returns the releases that can be read, and the errors of the others.
func (s releaseFiles) all(ctx context.Context) ([]compute.Release, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var releases []compute.Release
	var problems []error
	for _, entry := range entries {
		release, err := s.read(ctx, entry.Name())
		if err != nil {
			problems = append(problems, fmt.Errorf("release in %s: %w", entry.Name(), err))
			continue
		}
		releases = append(releases, release)
	}
	return releases, errors.Join(problems...)
}

func (s releaseFiles) read(ctx context.Context, name string) (release compute.Release, err error) {
	sealed, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return release, err
	}
	revision, workspace, _ := strings.Cut(name, ".")
	return record.Open[compute.Release](ctx, s.sealer, boundOf(workspace, revision), "release "+revision, sealed)
}

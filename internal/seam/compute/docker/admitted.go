package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/distribution/reference"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// The engine's images belong to all workspaces. While a registry does not answer, a workspace may
// use only the images that this registry has given to one of the workspace's releases before. An
// empty file notes each of these images, in a directory of the release.

func (e *engine) admissions(workspace, revision string) string {
	return filepath.Join(e.cfg.Dir, "admitted", workspace, revision)
}

// admission is the name of the file that notes an image: its repository, and the engine's id for
// it.
func admission(named reference.Named, imageID string) string {
	sum := sha256.Sum256([]byte(named.Name() + " " + imageID))
	return hex.EncodeToString(sum[:])
}

// noteAdmitted notes that a registry has given an image to a release.
func (e *engine) noteAdmitted(ref compute.Ref, named reference.Named, imageID string) error {
	dir := e.admissions(ref.Workspace, ref.Revision)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, admission(named, imageID)), nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note an image: %w", err)
	}
	return nil
}

// wasAdmitted reports whether a registry has given an image to a release of the workspace.
func (e *engine) wasAdmitted(ref compute.Ref, named reference.Named, imageID string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(e.admissions(ref.Workspace, "*"), admission(named, imageID)))
	if err != nil {
		return false, fmt.Errorf("look for the note of an image: %w", err)
	}
	return len(files) > 0, nil
}

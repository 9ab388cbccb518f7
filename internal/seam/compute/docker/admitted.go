package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// The engine's images belong to all workspaces. While a registry does not answer, a workspace may
// use only the images that this registry has given to one of the workspace's releases before. A
// file notes each of these images, in a directory of the release. The file holds the names under
// which this server has pulled the image. They are removed from the engine with the last release
// that has such a note. An image that was at the engine before stays.

func (e *engine) admissions(workspace, revision string) string {
	return filepath.Join(e.cfg.Dir, "admitted", workspace, revision)
}

// admission is the name of the file that notes an image: its repository, and the engine's id for
// it.
func admission(named reference.Named, imageID string) string {
	sum := sha256.Sum256([]byte(named.Name() + " " + imageID))
	return hex.EncodeToString(sum[:])
}

// noteAdmitted notes that a registry has given an image to a release, and under which names the
// engine has pulled the image for it. The caller holds e.noting.
func (e *engine) noteAdmitted(ref compute.Ref, named reference.Named, imageID string, pulled []string) error {
	note := admission(named, imageID)
	before, err := e.notes("*", note)
	if err != nil {
		return err
	}
	for _, file := range before {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the note of an image: %w", err)
		}
		pulled = append(pulled, strings.Fields(string(text))...)
	}
	slices.Sort(pulled)
	dir := e.admissions(ref.Workspace, ref.Revision)
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, note), []byte(strings.Join(slices.Compact(pulled), "\n")), 0o600)
	}
	if err != nil {
		return fmt.Errorf("note an image: %w", err)
	}
	return nil
}

// notes are the files in which releases of a workspace, or of all workspaces ("*"), note an image.
func (e *engine) notes(workspace, note string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(e.admissions(workspace, "*"), note))
	if err != nil {
		return nil, fmt.Errorf("look for the note of an image: %w", err)
	}
	return files, nil
}

// forget removes a release's notes, and then the names of images that no other release notes.
func (e *engine) forget(ctx context.Context, ref compute.Ref) error {
	e.noting.Lock()
	defer e.noting.Unlock()
	dir := e.admissions(ref.Workspace, ref.Revision)
	files, failed := filepath.Glob(filepath.Join(dir, "*"))
	pulled := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		failed = errors.Join(failed, err)
		pulled[filepath.Base(file)] = strings.Fields(string(text))
	}
	failed = errors.Join(failed, os.RemoveAll(dir))
	for note, names := range pulled {
		others, err := e.notes("*", note)
		failed = errors.Join(failed, err)
		if err != nil || len(others) > 0 {
			continue
		}
		for _, name := range names {
			failed = errors.Join(failed, e.removeName(ctx, name, note))
		}
	}
	return failed
}

// removeName removes a name from the engine if it still is a name of the noted image. The engine
// keeps an image that has other names, and an image that a container uses.
func (e *engine) removeName(ctx context.Context, name, note string) error {
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return fmt.Errorf("read the note of an image: %w", err)
	}
	seen, err := e.client.ImageInspect(ctx, name)
	if err == nil && admission(named, seen.ID) == note {
		_, err = e.client.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true})
	}
	return ignoreGone(err)
}

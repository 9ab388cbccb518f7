// Package upload is the seam to where the tarballs of sources are kept that clients upload to have
// them built.
//
// A client asks for a Grant, sends one tarball to the address that it gets, and names the tarball
// in the revision that is to be built from it. An address is all that it takes to send something
// there: uploads come from programs that know nothing but how to PUT. That is as much as it allows,
// too: one object that nobody has named yet, for a quarter of an hour.
//
// Package upload/files keeps tarballs on one machine, package upload/s3 on AWS. Those that no
// revision needs any more are erased when another one is promoted.
package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
)

const (
	// Lifetime is how long something can be sent to the address of a Grant.
	Lifetime = 15 * time.Minute
	// MaxSize is how large a tarball may be, in bytes.
	MaxSize = 200 << 20
	// ContentType is what a tarball has to be sent as.
	ContentType = "application/gzip"
)

// ErrMissing says that nothing was uploaded, or that it is not kept any more.
var ErrMissing = errors.New("nothing was uploaded there")

// Ref names a tarball. Every path begins with the workspace.
type Ref struct {
	Workspace, Deployment, Upload string
}

// suffix is how the path of each tarball ends.
const suffix = ".tar.gz"

// Path is what clients call the tarball.
func (r Ref) Path() string { return Of(r.Workspace, r.Deployment) + r.Upload + suffix }

// Of is how the paths of all tarballs of a deployment begin.
func Of(workspace, deployment string) string { return workspace + "/" + deployment + "/" }

// Parse reads a Path. Each part of one is an id, so that no path leads out of where uploads are
// kept.
func Parse(path string) (Ref, bool) {
	parts := strings.Split(strings.TrimSuffix(path, suffix), "/")
	if len(parts) != 3 {
		return Ref{}, false
	}
	ref := Ref{parts[0], parts[1], parts[2]}
	return ref, ref.Path() == path && id.Valid(ref.Workspace) && id.Valid(ref.Deployment) && id.Valid(ref.Upload)
}

// ParseOf reads the Path of a tarball that is of the deployment.
func ParseOf(workspace, deployment, path string) (Ref, bool) {
	ref, ok := Parse(path)
	return ref, ok && ref.Workspace == workspace && ref.Deployment == deployment
}

// Grant is where and how one tarball can be uploaded.
type Grant struct {
	URL string
	// Headers have to be sent with it.
	Headers map[string]string
}

// Store keeps tarballs. All methods may be called concurrently. What was uploaded is never
// replaced.
type Store interface {
	// Grant returns where a client may put a tarball for a while. base is the address under which
	// the client reaches this server.
	Grant(ctx context.Context, ref Ref, base string) (Grant, error)
	// List returns the tarballs of a deployment.
	List(ctx context.Context, workspace, deployment string) ([]Ref, error)
	// Remove erases tarballs of a deployment. Erasing what is not there does nothing.
	Remove(ctx context.Context, workspace, deployment string, refs []Ref) error
}

// Prune erases a deployment's tarballs but those that keep lets stay.
func Prune(ctx context.Context, s Store, workspace, deployment string, keep func(Ref) bool) error {
	found, err := s.List(ctx, workspace, deployment)
	if err != nil {
		return fmt.Errorf("list uploads of deployment %s: %w", deployment, err)
	}
	if found = slices.DeleteFunc(found, keep); len(found) == 0 {
		return nil
	}
	if err := s.Remove(ctx, workspace, deployment, found); err != nil {
		return fmt.Errorf("erase uploads of deployment %s: %w", deployment, err)
	}
	return nil
}

// Whole erases all that a Store has of a deployment.
type Whole struct{ Store }

// Erase implements rollout.Eraser.
func (w Whole) Erase(ctx context.Context, workspace, deployment string) error {
	return Prune(ctx, w.Store, workspace, deployment, func(Ref) bool { return false })
}

// Opener reads tarballs where they are kept on the builder's own machine.
type Opener interface {
	// Open returns a tarball; ErrMissing when there is none.
	Open(ctx context.Context, ref Ref) (io.ReadCloser, error)
}

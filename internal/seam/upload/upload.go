// Package upload is the seam to the store of source tarballs. Clients upload them so that they
// are built.
//
// A client asks for a Grant, sends one tarball to the address in it, and names the tarball in
// the revision that is to be built from it. A client needs only the address to send a tarball
// there: uploads come from programs that can only do a PUT. The address allows nothing more:
// one object that no revision has named yet, for a quarter of an hour.
//
// Package upload/files keeps tarballs on one machine, package upload/s3 on AWS. Tarballs that
// no revision needs any more are erased when another revision is promoted.
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
	// Lifetime is how long a tarball can be sent to the address of a Grant.
	Lifetime = 15 * time.Minute
	// MaxSize is how large a tarball may be, in bytes.
	MaxSize = 200 << 20
	// ContentType is the content type with which a tarball must be sent.
	ContentType = "application/gzip"
)

// ErrMissing says that no tarball was uploaded, or that it is no longer kept.
var ErrMissing = errors.New("nothing was uploaded there")

// Ref names a tarball. Every path begins with the workspace.
type Ref struct {
	Workspace, Deployment, Upload string
}

// suffix is the end of the path of each tarball.
const suffix = ".tar.gz"

// Path is the clients' name for the tarball.
func (r Ref) Path() string { return Of(r.Workspace, r.Deployment) + r.Upload + suffix }

// Of is the beginning of the paths of all tarballs of a deployment.
func Of(workspace, deployment string) string { return workspace + "/" + deployment + "/" }

// Parse reads a Path. Its parts are ids, so that no path leads out of the directory of uploads.
func Parse(path string) (Ref, bool) {
	parts := strings.Split(strings.TrimSuffix(path, suffix), "/")
	if len(parts) != 3 {
		return Ref{}, false
	}
	ref := Ref{parts[0], parts[1], parts[2]}
	return ref, ref.Path() == path && id.Valid(ref.Workspace) && id.Valid(ref.Deployment) && id.Valid(ref.Upload)
}

// ParseOf reads the Path of a tarball of the deployment.
func ParseOf(workspace, deployment, path string) (Ref, bool) {
	ref, ok := Parse(path)
	return ref, ok && ref.Workspace == workspace && ref.Deployment == deployment
}

// Grant is where and how one tarball can be uploaded.
type Grant struct {
	URL string
	// Headers must be sent with the tarball.
	Headers map[string]string
}

// Store keeps tarballs. All methods may be called concurrently. An uploaded tarball is never
// replaced.
type Store interface {
	// Grant returns the address to which a client may send a tarball for a while. base is the
	// address under which the client reaches this server.
	Grant(ctx context.Context, ref Ref, base string) (Grant, error)
	// List returns the tarballs of a deployment.
	List(ctx context.Context, workspace, deployment string) ([]Ref, error)
	// Remove erases tarballs of a deployment that exist.
	Remove(ctx context.Context, workspace, deployment string, refs []Ref) error
	// Erase erases all tarballs of a deployment that is deleted. A tarball that a client sends
	// later is refused, or the store erases it by itself.
	Erase(ctx context.Context, workspace, deployment string) error
}

// Prune erases a deployment's tarballs except those for which keep returns true.
func Prune(ctx context.Context, s Store, workspace, deployment string, keep func(Ref) bool) error {
	refs, err := s.List(ctx, workspace, deployment)
	if err != nil {
		return fmt.Errorf("list uploads of deployment %s: %w", deployment, err)
	}
	if refs = slices.DeleteFunc(refs, keep); len(refs) == 0 {
		return nil
	}
	if err := s.Remove(ctx, workspace, deployment, refs); err != nil {
		return fmt.Errorf("erase uploads of deployment %s: %w", deployment, err)
	}
	return nil
}

// Opener reads tarballs that are kept on the builder's own machine.
type Opener interface {
	// Open returns a tarball, or ErrMissing when there is no such tarball.
	Open(ctx context.Context, ref Ref) (io.ReadCloser, error)
}

package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociserver"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// Config holds the settings of a Registry. A zero value gets the default in its comment.
type Config struct {
	// Dir is the directory of all files of the registry.
	Dir string
	// Host is the name and port at which clients and the container engine reach the server.
	Host string
	// Hasher signs tokens.
	Hasher secret.Hasher
	Now    clock.Clock
	Log    *slog.Logger
	// MaxBlob is how many bytes a layer may have (20 GiB).
	MaxBlob int64
	// MaxRepository is how many bytes a deployment's images may have together, with all
	// uploads that are being received (100 GiB).
	MaxRepository int64
	// Space is the disk that Dir is on. A nil Space always has room.
	Space *disk.Space
	// Room refuses another layer of a workspace. A nil Room refuses no layer.
	Room func(workspace string) error
}

// Registry implements registry.Registry, and serves it under Path.
type Registry struct {
	cfg   Config
	root  *os.Root
	serve http.Handler
	// use is held for reading to rely on existing files, for writing to remove files.
	use sync.RWMutex
}

var _ registry.Registry = (*Registry)(nil)

// Open opens the registry in a directory, which it creates if it is missing.
func Open(cfg Config) (*Registry, error) {
	cfg.MaxBlob, cfg.MaxRepository = cmp.Or(cfg.MaxBlob, 20<<30), cmp.Or(cfg.MaxRepository, 100<<30)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	r := &Registry{cfg: cfg, root: root}
	r.serve = ociserver.New(r.backend(), &ociserver.Options{WriteError: r.writeError})
	return r, nil
}

// Close closes the directory.
func (r *Registry) Close() error { return r.root.Close() }

// Size returns how many bytes the images of a workspace take, together with the parts of
// unfinished uploads.
func (r *Registry) Size(workspace string) int64 {
	return disk.Taken(filepath.Join(r.cfg.Dir, workspace), math.MaxInt64)
}

// Repository returns the prefix of the names of a deployment's images.
func (r *Registry) Repository(_ context.Context, ref registry.Ref) (string, error) {
	return r.cfg.Host + "/" + nameOf(ref), nil
}

// Push makes the directory of the repository and a token for it.
func (r *Registry) Push(ctx context.Context, ref registry.Ref) (registry.Grant, error) {
	dir := dirOf(ref)
	for _, made := range []string{uploads, blobs, manifests, tags} {
		if err := r.root.MkdirAll(path.Join(dir, made), 0o700); err != nil {
			return registry.Grant{}, fmt.Errorf("make repository: %w", err)
		}
	}
	if err := r.abandon(dir); err != nil {
		return registry.Grant{}, err
	}
	return r.grant(ctx, ref, push)
}

// Pull returns a grant that may pull the images of a deployment, but not push.
func (r *Registry) Pull(ctx context.Context, ref registry.Ref) (registry.Grant, error) {
	return r.grant(ctx, ref, pull)
}

func (r *Registry) grant(ctx context.Context, ref registry.Ref, may access) (registry.Grant, error) {
	repository, err := r.Repository(ctx, ref)
	if err != nil {
		return registry.Grant{}, err
	}
	granted := token{Ref: ref, access: may, expires: r.cfg.Now().Add(registry.TokenLife)}
	return registry.Grant{Repository: repository, Username: username, Token: granted.sign(r.cfg.Hasher), Expires: granted.expires}, nil
}

// Erase removes a repository. A token for it that is still valid no longer gives access to
// anything, because only Push makes a repository.
func (r *Registry) Erase(_ context.Context, workspace, deployment string) error {
	r.use.Lock()
	defer r.use.Unlock()
	dir := dirOf(registry.Ref{Workspace: workspace, Deployment: deployment})
	if err := r.root.RemoveAll(dir); err != nil {
		return fmt.Errorf("erase repository: %w", err)
	}
	// The directory of the workspace is removed with its last repository.
	if err := r.root.Remove(path.Dir(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("erase repository: %w", err)
	}
	return nil
}

// Prefix begins the names of all repositories.
const Prefix = "images/"

// Parts of a repository's directory.
const (
	uploads   = "uploads"
	blobs     = "blobs"
	manifests = "manifests"
	tags      = "tags"
)

// nameOf returns the repository's name in the protocol.
func nameOf(ref registry.Ref) string { return Prefix + ref.Workspace + "/" + ref.Deployment }

// dirOf returns the directory of a repository.
func dirOf(ref registry.Ref) string { return path.Join(ref.Workspace, ref.Deployment) }

// refOf reads a repository's name.
func refOf(name string) (registry.Ref, error) {
	rest, ok := strings.CutPrefix(name, Prefix)
	workspace, deployment, _ := strings.Cut(rest, "/")
	if !ok || !id.Valid(workspace) || !id.Valid(deployment) {
		return registry.Ref{}, ociregistry.ErrNameUnknown
	}
	return registry.Ref{Workspace: workspace, Deployment: deployment}, nil
}

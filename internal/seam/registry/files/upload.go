package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"

	"cuelabs.dev/go/oci/ociregistry"
	"github.com/opencontainers/go-digest"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// chunk is how many bytes clients are asked to send at a time, if they send a blob in parts.
const chunk = 5 << 20

// uploadName is the pattern of the names of uploads (rand.Text), which clients send back.
var uploadName = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// upload is a blob that is being received. The received part is a file, so that a client can
// continue from there.
type upload struct {
	registry  *Registry
	refusal   *refusal
	dir, name string
	file      *os.File
	// size is how many bytes have arrived. from is where the client says that the next bytes
	// begin; -1 is the end of the received part.
	size, from int64
	// room is how many bytes its repository may still take, -1 before this is known.
	room int64
}

var _ ociregistry.BlobWriter = (*upload)(nil)

func (r *Registry) begin(ctx context.Context, repo string, _ int) (ociregistry.BlobWriter, error) {
	if err := errors.Join(r.cfg.Space.Room(), r.roomOf(repo)); err != nil {
		return nil, err
	}
	return r.openUpload(ctx, repo, rand.Text(), -1, os.O_CREATE|os.O_EXCL)
}

// roomOf refuses a layer when the workspace of the repository has no room for more.
func (r *Registry) roomOf(repo string) error {
	ref, err := refOf(repo)
	if err != nil || r.cfg.Room == nil {
		return err
	}
	err = r.cfg.Room(ref.Workspace)
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return fmt.Errorf("%w: %w", ociregistry.ErrDenied, refused)
	}
	return err
}

// resume continues an upload. from is -1 if the client sends nothing more.
func (r *Registry) resume(ctx context.Context, repo, name string, from int64, _ int) (ociregistry.BlobWriter, error) {
	if !uploadName.MatchString(name) {
		return nil, ociregistry.ErrBlobUploadUnknown
	}
	if from > 0 {
		if err := r.roomOf(repo); err != nil {
			return nil, err
		}
	}
	return r.openUpload(ctx, repo, name, from, 0)
}

func (r *Registry) openUpload(ctx context.Context, repo, name string, from int64, how int) (*upload, error) {
	r.use.RLock()
	defer r.use.RUnlock()
	dir, err := r.directory(repo)
	if err != nil {
		return nil, err
	}
	file, err := r.root.OpenFile(path.Join(dir, uploads, name), how|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, missing(err, ociregistry.ErrBlobUploadUnknown)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &upload{registry: r, refusal: refusalOf(ctx), dir: dir, name: name, file: file, size: info.Size(), from: from, room: -1}, nil
}

// Write appends to the received part.
func (u *upload) Write(data []byte) (int, error) {
	if u.refusal.error = u.reserve(int64(len(data))); u.refusal.error != nil {
		return 0, u.refusal.error
	}
	n, err := u.file.Write(data)
	u.size += int64(n)
	if u.refusal.error = disk.Named(err); !fault.Is(u.refusal.error, fault.NoRoom) {
		u.refusal.error = nil
	}
	return n, err
}

// reserve checks that new bytes continue the received part, and takes them from the room.
func (u *upload) reserve(n int64) (err error) {
	if u.from >= 0 && u.from != u.size {
		return fmt.Errorf("%w: %d bytes have arrived, this begins at %d", ociregistry.ErrRangeInvalid, u.size, u.from)
	}
	u.from = -1
	if err := u.registry.cfg.Space.Reserve(); err != nil {
		return err
	}
	if limit := u.registry.cfg.MaxBlob; u.size+n > limit {
		return &http.MaxBytesError{Limit: limit}
	}
	if u.room < 0 {
		if u.room, err = u.registry.room(u.dir); err != nil {
			return err
		}
	}
	if n > u.room {
		return fmt.Errorf("%w: the repository may have %d bytes, and is full; images that no revision needs can be removed a day after they were pushed",
			ociregistry.ErrDenied, u.registry.cfg.MaxRepository)
	}
	u.room -= n
	return nil
}

// room is how many bytes a repository may still take.
func (r *Registry) room(dir string) (int64, error) {
	room := r.cfg.MaxRepository
	for _, part := range []string{blobs, uploads} {
		entries, err := fs.ReadDir(r.root.FS(), path.Join(dir, part))
		if err != nil {
			return 0, err
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if err == nil {
				room -= info.Size()
			} else if !errors.Is(err, fs.ErrNotExist) {
				return 0, err
			}
		}
	}
	return max(room, 0), nil
}

// Close keeps the received part.
func (u *upload) Close() error {
	if err := u.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Size is how many bytes have arrived.
func (u *upload) Size() int64 { return u.size }

// ChunkSize is how many bytes a client should send at a time.
func (u *upload) ChunkSize() int { return chunk }

// ID is the upload's name.
func (u *upload) ID() string { return u.name }

// Commit makes a blob of the received bytes, which must have the digest.
func (u *upload) Commit(of ociregistry.Digest) (ociregistry.Descriptor, error) {
	name, err := encoded(of)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	sum, err := digest.FromReader(io.NewSectionReader(u.file, 0, u.size))
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	if sum != of {
		return ociregistry.Descriptor{}, errors.Join(ociregistry.ErrDigestInvalid, u.Cancel())
	}
	if err := errors.Join(u.file.Sync(), u.Close()); err != nil {
		return ociregistry.Descriptor{}, err
	}
	r := u.registry
	r.use.RLock()
	defer r.use.RUnlock()
	if err := r.publish(path.Join(u.dir, uploads, u.name), path.Join(u.dir, blobs, name)); err != nil {
		return ociregistry.Descriptor{}, missing(err, ociregistry.ErrBlobUploadUnknown)
	}
	return r.touch(u.dir, of)
}

// Cancel removes the received part.
func (u *upload) Cancel() error {
	err := u.registry.root.Remove(path.Join(u.dir, uploads, u.name))
	return errors.Join(u.Close(), missing(err, nil))
}

// pushBlob takes a blob that is sent in one request. Nothing is left of a blob that fails.
func (r *Registry) pushBlob(ctx context.Context, repo string, described ociregistry.Descriptor, content io.Reader) (ociregistry.Descriptor, error) {
	if _, err := encoded(described.Digest); err != nil {
		return ociregistry.Descriptor{}, err
	}
	begun, err := r.begin(ctx, repo, 0)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	if _, err := io.Copy(begun, content); err != nil {
		return ociregistry.Descriptor{}, errors.Join(err, begun.Cancel())
	}
	blob, err := begun.Commit(described.Digest)
	if err != nil {
		return ociregistry.Descriptor{}, errors.Join(err, begun.Cancel())
	}
	return blob, nil
}

package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociref"
	"github.com/opencontainers/go-digest"
	"github.com/slipway-run/slipway/internal/base/disk"
)

// octets is the media type of content that is not a manifest.
const octets = "application/octet-stream"

// backend returns the functions for the protocol's requests. A nil function is not supported.
func (r *Registry) backend() ociregistry.Interface {
	return &ociregistry.Funcs{
		GetBlob_: func(ctx context.Context, repo string, of ociregistry.Digest) (ociregistry.BlobReader, error) {
			return r.open(repo, of, 0, -1)
		},
		GetBlobRange_: func(_ context.Context, repo string, of ociregistry.Digest, from, to int64) (ociregistry.BlobReader, error) {
			return r.open(repo, of, from, to)
		},
		ResolveBlob_: func(_ context.Context, repo string, of ociregistry.Digest) (ociregistry.Descriptor, error) {
			return r.blob(repo, of)
		},
		GetManifest_:           r.openManifest,
		ResolveManifest_:       r.manifest,
		GetTag_:                r.openTag,
		ResolveTag_:            r.tag,
		Tags_:                  r.listTags,
		PushBlob_:              r.pushBlob,
		PushBlobChunked_:       r.begin,
		PushBlobChunkedResume_: r.resume,
		PushManifest_:          r.pushManifest,
	}
}

// directory returns the directory of a repository, which must exist.
func (r *Registry) directory(repo string) (string, error) {
	ref, err := refOf(repo)
	if err != nil {
		return "", err
	}
	dir := dirOf(ref)
	if _, err := r.root.Stat(path.Join(dir, blobs)); err != nil {
		return "", missing(err, ociregistry.ErrNameUnknown)
	}
	return dir, nil
}

// missing returns unknown if a file does not exist.
func missing(err, unknown error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return unknown
	}
	return err
}

// encoded returns the name of the file of a digest, which must be SHA-256 here.
func encoded(of ociregistry.Digest) (string, error) {
	parsed, err := digest.Parse(string(of))
	if err != nil || parsed.Algorithm() != digest.SHA256 {
		return "", fmt.Errorf("%w: digests are of the algorithm sha256 here", ociregistry.ErrDigestInvalid)
	}
	return parsed.Encoded(), nil
}

// blob describes an existing blob, and notes that a client relies on it.
func (r *Registry) blob(repo string, of ociregistry.Digest) (ociregistry.Descriptor, error) {
	r.use.RLock()
	defer r.use.RUnlock()
	dir, err := r.directory(repo)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	return r.touch(dir, of)
}

func (r *Registry) touch(dir string, of ociregistry.Digest) (ociregistry.Descriptor, error) {
	name, err := encoded(of)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	file := path.Join(dir, blobs, name)
	info, err := r.root.Stat(file)
	if err != nil {
		return ociregistry.Descriptor{}, missing(err, ociregistry.ErrBlobUnknown)
	}
	now := r.cfg.Now()
	if err := r.root.Chtimes(file, now, now); err != nil {
		return ociregistry.Descriptor{}, err
	}
	return ociregistry.Descriptor{MediaType: octets, Digest: of, Size: info.Size()}, nil
}

// reading is a blob, or a part of it, that is being read.
type reading struct {
	io.Reader
	io.Closer
	of ociregistry.Descriptor
}

func (r reading) Descriptor() ociregistry.Descriptor { return r.of }

// open opens a blob from one byte to another. -1 is the end of the blob.
func (r *Registry) open(repo string, of ociregistry.Digest, from, to int64) (ociregistry.BlobReader, error) {
	r.use.RLock()
	defer r.use.RUnlock()
	dir, err := r.directory(repo)
	if err != nil {
		return nil, err
	}
	described, err := r.touch(dir, of)
	if err != nil {
		return nil, err
	}
	file, err := r.root.Open(path.Join(dir, blobs, of.Encoded()))
	if err != nil {
		return nil, err
	}
	if to < 0 || to > described.Size {
		to = described.Size
	}
	return reading{io.NewSectionReader(file, from, max(0, to-from)), file, described}, nil
}

// manifest describes an existing manifest.
func (r *Registry) manifest(_ context.Context, repo string, of ociregistry.Digest) (ociregistry.Descriptor, error) {
	name, err := encoded(of)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	described, err := r.blob(repo, of)
	if err != nil {
		return ociregistry.Descriptor{}, manifestUnknown(err)
	}
	dir, err := r.directory(repo)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	mediaType, err := r.root.ReadFile(path.Join(dir, manifests, name))
	if err != nil {
		return ociregistry.Descriptor{}, missing(err, ociregistry.ErrManifestUnknown)
	}
	described.MediaType = string(mediaType)
	return described, nil
}

func manifestUnknown(err error) error {
	if errors.Is(err, ociregistry.ErrBlobUnknown) {
		return ociregistry.ErrManifestUnknown
	}
	return err
}

func (r *Registry) openManifest(ctx context.Context, repo string, of ociregistry.Digest) (ociregistry.BlobReader, error) {
	described, err := r.manifest(ctx, repo, of)
	if err != nil {
		return nil, err
	}
	opened, err := r.open(repo, of, 0, -1)
	if err != nil {
		return nil, manifestUnknown(err)
	}
	// The library closes blobs, but no manifests: their files would stay open for a long time.
	text, err := io.ReadAll(opened)
	if err := errors.Join(err, opened.Close()); err != nil {
		return nil, err
	}
	return reading{bytes.NewReader(text), io.NopCloser(nil), described}, nil
}

func (r *Registry) tag(ctx context.Context, repo, name string) (ociregistry.Descriptor, error) {
	dir, err := r.directory(repo)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	of, err := r.tagged(dir, name)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	return r.manifest(ctx, repo, of)
}

// tagged returns the digest that a tag stands for.
func (r *Registry) tagged(dir, name string) (ociregistry.Digest, error) {
	if !ociref.IsValidTag(name) {
		return "", ociregistry.ErrManifestUnknown
	}
	of, err := r.root.ReadFile(path.Join(dir, tags, name))
	return ociregistry.Digest(of), missing(err, ociregistry.ErrManifestUnknown)
}

func (r *Registry) openTag(ctx context.Context, repo, name string) (ociregistry.BlobReader, error) {
	described, err := r.tag(ctx, repo, name)
	if err != nil {
		return nil, err
	}
	return r.openManifest(ctx, repo, described.Digest)
}

// listTags lists the tags after a given one, in their order.
func (r *Registry) listTags(_ context.Context, repo, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		dir, err := r.directory(repo)
		var names []string
		if err == nil {
			names, err = r.list(path.Join(dir, tags))
		}
		if err != nil {
			yield("", err)
			return
		}
		from, found := slices.BinarySearch(names, after)
		if found {
			from++
		}
		for _, name := range names[from:] {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// list returns the names in a directory in their order. It leaves out files that are still
// being written: their names begin with a dot.
func (r *Registry) list(dir string) ([]string, error) {
	entries, err := fs.ReadDir(r.root.FS(), dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Name()[0] != '.' {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// each calls do with each of the names in a directory, until one fails.
func (r *Registry) each(dir string, do func(name string) error) error {
	names, err := r.list(dir)
	for _, name := range names {
		if err == nil {
			err = do(name)
		}
	}
	return err
}

// write puts a small file in its place at once.
func (r *Registry) write(name string, content []byte) error {
	unfinished := path.Join(path.Dir(name), "."+rand.Text())
	file, err := r.root.OpenFile(unfinished, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, r.root.Remove(unfinished))
	}
	return r.publish(unfinished, name)
}

// publish gives a file that is on the disk its name, and puts the name on the disk, too.
func (r *Registry) publish(unfinished, name string) error {
	if err := r.root.Rename(unfinished, name); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Join(r.cfg.Dir, path.Dir(name)))
}

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"cuelabs.dev/go/oci/ociregistry"
	"github.com/opencontainers/go-digest"

	"github.com/slipway-run/slipway/internal/seam/registry"
)

// lull is how long no client must have asked for a file that is removed, or have sent a part
// of an upload that is given up. It is longer than the life of a token, so that a push that
// has begun does not lose a file that it relies on.
const lull = 24 * time.Hour

// Keep removes the blobs that no kept image has, in the one repository.
func (r *Registry) Keep(_ context.Context, ref registry.Ref, images []string) error {
	r.use.Lock()
	defer r.use.Unlock()
	dir, err := r.directory(nameOf(ref))
	if errors.Is(err, ociregistry.ErrNameUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	kept := kept{}
	for _, image := range images {
		if err := r.mark(dir, image, kept); err != nil {
			return fmt.Errorf("keep image %s: %w", image, err)
		}
	}
	if err := r.markRecent(dir, kept); err != nil {
		return fmt.Errorf("look for new images: %w", err)
	}
	if err := r.sweep(dir, kept); err != nil {
		return fmt.Errorf("sweep repository: %w", err)
	}
	return r.abandon(dir)
}

// kept are the names of the blobs that stay.
type kept map[string]bool

// mark adds the blobs of an image. An image that does not exist has no blobs.
func (r *Registry) mark(dir, image string, stays kept) error {
	reference, err := registry.Reference(image)
	if err != nil {
		return err
	}
	of := ociregistry.Digest(reference)
	if !strings.Contains(reference, ":") {
		if of, err = r.tagged(dir, reference); errors.Is(err, ociregistry.ErrManifestUnknown) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return r.markManifest(dir, of, stays)
}

func (r *Registry) markManifest(dir string, of ociregistry.Digest, stays kept) error {
	name, err := encoded(of)
	if err != nil || stays[name] {
		return err
	}
	text, err := r.root.ReadFile(path.Join(dir, blobs, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stays[name] = true
	named, err := decode(text)
	if err != nil {
		return err
	}
	for _, part := range named.parts() {
		stays[part.Encoded()] = true
	}
	for _, child := range named.Manifests {
		if err := r.markManifest(dir, child.Digest, stays); err != nil {
			return err
		}
	}
	return nil
}

// markRecent adds the blobs of the images that a client has pushed or asked for lately.
func (r *Registry) markRecent(dir string, stays kept) error {
	return r.each(path.Join(dir, manifests), func(name string) error {
		recent, err := r.isRecent(path.Join(dir, blobs, name))
		if err == nil && recent {
			err = r.markManifest(dir, digest.NewDigestFromEncoded(digest.SHA256, name), stays)
		}
		return err
	})
}

// isRecent reports whether a file was used lately. A file that does not exist was not.
func (r *Registry) isRecent(file string) (bool, error) {
	info, err := r.root.Stat(file)
	if err != nil {
		return false, missing(err, nil)
	}
	return r.cfg.Now().Sub(info.ModTime()) < lull, nil
}

// sweep removes the other blobs that no client has asked for in a while, then the files which
// say that a removed blob is a manifest, and the tags whose blob is gone.
func (r *Registry) sweep(dir string, stays kept) error {
	present := kept{}
	err := r.each(path.Join(dir, blobs), func(name string) (err error) {
		present[name], err = r.staysOrGoes(path.Join(dir, blobs, name), stays[name])
		return err
	})
	if err != nil {
		return err
	}
	err = r.each(path.Join(dir, manifests), func(name string) error {
		if present[name] {
			return nil
		}
		return r.root.Remove(path.Join(dir, manifests, name))
	})
	if err != nil {
		return err
	}
	return r.each(path.Join(dir, tags), func(name string) error {
		of, err := r.tagged(dir, name)
		if err == nil && !present[of.Encoded()] {
			err = r.root.Remove(path.Join(dir, tags, name))
		}
		return err
	})
}

// staysOrGoes removes a file that is not needed and was not used in a while.
func (r *Registry) staysOrGoes(file string, needed bool) (stays bool, err error) {
	if recent, err := r.isRecent(file); needed || recent || err != nil {
		return true, err
	}
	return false, missing(r.root.Remove(file), nil)
}

// abandon removes uploads that no client continues.
func (r *Registry) abandon(dir string) error {
	err := r.each(path.Join(dir, uploads), func(name string) error {
		_, err := r.staysOrGoes(path.Join(dir, uploads, name), false)
		return err
	})
	if err != nil {
		return fmt.Errorf("abandon uploads: %w", err)
	}
	return nil
}

package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociref"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Docker's own names for an OCI image manifest and an OCI image index.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// content holds the digests that a manifest names: parts of an image, or images for platforms.
type content struct {
	Config    *ocispec.Descriptor  `json:"config"`
	Layers    []ocispec.Descriptor `json:"layers"`
	Manifests []ocispec.Descriptor `json:"manifests"`
}

func decode(text []byte) (content, error) {
	var c content
	if err := json.Unmarshal(text, &c); err != nil {
		return content{}, fmt.Errorf("%w: it is no JSON of that shape", ociregistry.ErrManifestInvalid)
	}
	return c, nil
}

// parts are the digests of an image's parts. Layers that are elsewhere, at URLs, are left out.
func (c content) parts() (parts []ociregistry.Digest) {
	if c.Config != nil {
		parts = append(parts, c.Config.Digest)
	}
	for _, layer := range c.Layers {
		if len(layer.URLs) == 0 {
			parts = append(parts, layer.Digest)
		}
	}
	return parts
}

// pushManifest takes a manifest if all of its parts are here.
func (r *Registry) pushManifest(_ context.Context, repo, tag string, text []byte, mediaType string) (ociregistry.Descriptor, error) {
	r.use.RLock()
	defer r.use.RUnlock()
	dir, err := r.directory(repo)
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	if tag != "" && !ociref.IsValidTag(tag) {
		return ociregistry.Descriptor{}, fmt.Errorf("%w: %q is no tag", ociregistry.ErrManifestInvalid, tag)
	}
	if err := r.complete(dir, text, mediaType); err != nil {
		return ociregistry.Descriptor{}, err
	}
	of := digest.FromBytes(text)
	err = r.write(path.Join(dir, blobs, of.Encoded()), text)
	if err == nil {
		err = r.write(path.Join(dir, manifests, of.Encoded()), []byte(mediaType))
	}
	if err == nil && tag != "" {
		err = r.write(path.Join(dir, tags, tag), []byte(of))
	}
	if err != nil {
		return ociregistry.Descriptor{}, err
	}
	described, err := r.touch(dir, of)
	described.MediaType = mediaType
	return described, err
}

// complete checks that all that a manifest names is here, and notes that a client relies on it.
func (r *Registry) complete(dir string, text []byte, mediaType string) error {
	switch mediaType {
	case ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, dockerManifest, dockerIndex:
	default:
		return fmt.Errorf("%w: the media type %q is not the type of an image's manifest", ociregistry.ErrManifestInvalid, mediaType)
	}
	named, err := decode(text)
	if err != nil {
		return err
	}
	needed := named.parts()
	for _, of := range named.Manifests {
		needed = append(needed, of.Digest)
	}
	for _, of := range needed {
		if _, err := r.touch(dir, of); errors.Is(err, ociregistry.ErrBlobUnknown) {
			return fmt.Errorf("%w: %s", ociregistry.ErrManifestBlobUnknown, of)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Package registry is the seam to the registry that clients push their own images to. It gives each
// deployment a repository, and tokens that may push to that repository only. Package registry/files
// is an OCI registry on one machine; registry/ecr uses Elastic Container Registry.
package registry

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Ref names the repository of a deployment.
type Ref struct {
	Workspace, Deployment string
}

// TokenLife is about how long a token is valid. A client repeats a longer push with a new token;
// the layers that have arrived stay.
const TokenLife = time.Hour

// Grant is the right to push to one repository and to pull from it, for TokenLife.
type Grant struct {
	// Repository begins the names of the repository's images: a host and a path.
	Repository string
	// Username and Token are the name and the password for the host.
	Username, Token string
	// Expires is when the token expires.
	Expires time.Time
}

// Host returns the host that the holder logs in to.
func (g Grant) Host() string {
	host, _, _ := strings.Cut(g.Repository, "/")
	return host
}

// Registry keeps the images of deployments. All methods may be called concurrently.
type Registry interface {
	// Repository returns the prefix of the names of a deployment's images. The repository need not
	// exist.
	Repository(ctx context.Context, ref Ref) (string, error)
	// Push creates the repository if it does not exist, and returns the right to push to it.
	Push(ctx context.Context, ref Ref) (Grant, error)
	// Keep removes all images except the named ones (by tag or digest). Images that were pushed
	// recently stay too, because the client may be about to deploy them.
	Keep(ctx context.Context, ref Ref, images []string) error
	// Erase removes the repository of a deployment with all its images. It does nothing if the
	// repository does not exist.
	Erase(ctx context.Context, workspace, deployment string) error
}

// digestMark separates the repository from the digest in the name of an image.
const digestMark = "@sha256:"

// suffix returns the part of an image's name after the repository: a digest, a tag, or "".
func suffix(image string) string {
	if at := strings.Index(image, digestMark); at >= 0 {
		return image[at:]
	}
	path := strings.LastIndex(image, "/") + 1
	if at := strings.Index(image[path:], ":"); at >= 0 {
		return image[path+at:]
	}
	return ""
}

// In reports whether image names an image of the repository, by tag or digest.
func In(repository, image string) bool {
	of := suffix(image)
	return len(of) > 1 && strings.TrimSuffix(image, of) == repository
}

// At returns the name of an image after its registry has moved to repository.
func At(repository, image string) string { return repository + suffix(image) }

// Reference returns the digest in an image's name, with its algorithm, or else the tag.
func Reference(image string) (string, error) {
	of := suffix(image)
	if len(of) < 2 {
		return "", fmt.Errorf("image %s has no tag and no digest", image)
	}
	return of[1:], nil
}

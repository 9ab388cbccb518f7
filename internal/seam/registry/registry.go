// Package registry is the seam to where clients push the images that they have built themselves: a repository for each deployment, and tokens
// that may push to it and to nothing else. Package registry/files is an OCI registry of one machine, registry/ecr that of AWS.
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

// TokenLife is how long a token is good for, about. A push that takes longer is begun again with a new one: what has arrived stays.
const TokenLife = time.Hour

// Grant is the right to push to one repository and to pull from it, for TokenLife.
type Grant struct {
	// Repository is what the names of images begin with: a host, and a path.
	Repository string
	// Username and Token are what the host takes as name and password.
	Username, Token string
	// Expires is when that ends.
	Expires time.Time
}

// Host is where the holder logs in.
func (g Grant) Host() string {
	host, _, _ := strings.Cut(g.Repository, "/")
	return host
}

// Registry has the images of deployments. All methods may be called concurrently.
type Registry interface {
	// Repository returns what the names of a deployment's images begin with, whether or not there are any.
	Repository(ctx context.Context, ref Ref) (string, error)
	// Push makes the repository unless it is there, and lets the caller push to it.
	Push(ctx context.Context, ref Ref) (Grant, error)
	// Keep removes all images but those, which are named by a tag or a digest. One that has been pushed only just now stays too, as whoever pushes it
	// may be about to deploy it.
	Keep(ctx context.Context, ref Ref, images []string) error
	// Erase removes the repository of a deployment and all that is in it. Erasing what is not there does nothing.
	Erase(ctx context.Context, workspace, deployment string) error
}

// digestMark is how a digest begins in the name of an image.
const digestMark = "@sha256:"

// suffix is what follows the repository in an image's name: a digest, or a tag; "" when it has neither.
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

// In tells whether an image's name is one of a repository's, with a tag or a digest.
func In(repository, image string) bool {
	of := suffix(image)
	return len(of) > 1 && strings.TrimSuffix(image, of) == repository
}

// At returns the name that an image of a repository has since the registry is elsewhere.
func At(repository, image string) string { return repository + suffix(image) }

// Reference is the digest of an image's name, with its algorithm, or else its tag.
func Reference(image string) (string, error) {
	of := suffix(image)
	if len(of) < 2 {
		return "", fmt.Errorf("image %s has no tag and no digest", image)
	}
	return of[1:], nil
}

package docker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
)

// Pull policies, by the names that Kubernetes gives them. pullTag is the policy of a release's
// own image: a digest that is on this machine is not pulled, a tag is pulled again. With every
// policy, the registry is asked whether these credentials may have an image before the
// engine's copy is used, because another workspace may have pulled that copy. A registry that
// does not answer counts as one that refuses, unless it has given the same image to the
// workspace before.
const (
	pullTag          = ""
	pullAlways       = "Always"
	pullIfNotPresent = "IfNotPresent"
	pullNever        = "Never"
)

// resolve makes an image available at the engine, and returns its name by digest. This is a
// digest of the image's repository, or the engine's own if no repository has the image.
func (e *engine) resolve(ctx context.Context, ref compute.Ref, image, policy string, keys keychain) (string, *compute.Status) {
	pinned, err := e.pin(ctx, ref, image, policy, keys)
	if err != nil {
		return "", replica.Failed(compute.ReasonImageUnavailable, fmt.Sprintf("The image %s is not to be had: %s.", image, strings.TrimPrefix(err.Error(), "Error response from daemon: ")))
	}
	return pinned, nil
}

func (e *engine) pin(ctx context.Context, ref compute.Ref, image, policy string, keys keychain) (string, error) {
	if strings.HasPrefix(image, "sha256:") {
		return image, e.mustBeThere(ctx, image)
	}
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return "", err
	}
	// An engine would take a bare name for the beginning of an id.
	image = reference.FamiliarString(named)
	_, digested := named.(reference.Digested)
	before, err := e.client.ImageInspect(ctx, image)
	if err != nil && !errdefs.IsNotFound(err) {
		return "", err
	}
	silence, err := e.admit(ctx, image, named, policy, digested, keys)
	if err != nil {
		return "", err
	}
	e.noting.Lock() // so that no image is removed between the look at it and its note
	defer e.noting.Unlock()
	inspected, err := e.client.ImageInspect(ctx, image)
	if err != nil {
		return "", err
	}
	pinned := image
	if !digested {
		pinned = digestOf(inspected, named)
	}
	if silence != nil {
		return pinned, e.useWithoutAnswer(ref, image, named, inspected.ID, silence)
	}
	var pulled []string
	if inspected.ID != before.ID {
		pulled = []string{image, pinned}
	}
	return pinned, e.noteAdmitted(ref, named, inspected.ID, pulled)
}

// admit pulls an image, or asks its registry whether these credentials may have the image that is
// on this machine. silence is the error of a registry that has neither given nor refused that
// image.
func (e *engine) admit(ctx context.Context, image string, named reference.Named, policy string, digested bool, keys keychain) (silence, err error) {
	missing := e.mustBeThere(ctx, image)
	if missing != nil && policy == pullNever {
		return nil, missing
	}
	auth, err := e.credentials(ctx, named, keys)
	switch {
	case err != nil:
	case missing == nil && (policy == pullNever || policy == pullIfNotPresent || (policy == pullTag && digested)):
		_, err = e.client.DistributionInspect(ctx, named.String(), client.DistributionInspectOptions{EncodedRegistryAuth: auth})
	default:
		err = e.pull(ctx, named, auth)
	}
	if err != nil && missing == nil && policy != pullAlways && !refused(err) {
		return err, nil
	}
	return nil, err
}

// useWithoutAnswer returns an error unless the image that is on this machine is one that its
// registry has given to the release's workspace before. Another workspace may have pulled the
// image, and no registry may have it.
func (e *engine) useWithoutAnswer(ref compute.Ref, image string, named reference.Named, imageID string, silence error) error {
	before, err := e.notes(ref.Workspace, admission(named, imageID))
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return fmt.Errorf("its registry does not give it now, and has not given the image that is on this machine to this workspace before (%w)", silence)
	}
	e.cfg.Log.Warn("the registry of an image does not answer, the image that is on this machine is used", "image", image, "error", silence)
	return nil
}

// notAsked is the reason why a registry may not be asked.
type notAsked struct{ error }

// refused reports whether an error means that a registry does not give an image to these
// credentials, or that the registry may not be asked. A copy of that image on this machine was
// pulled, or built, by a party that may have it. Engines pass on a registry's answer in the
// registry's words.
func refused(err error) bool {
	if _, ok := errors.AsType[notAsked](err); ok {
		return true
	}
	if errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err) {
		return true
	}
	said := strings.ToLower(err.Error())
	return slices.ContainsFunc([]string{"unauthorized", "denied", "forbidden", "authentication required", "no basic auth credentials"}, func(words string) bool {
		return strings.Contains(said, words)
	})
}

// mustBeThere returns an error if the engine does not have the image.
func (e *engine) mustBeThere(ctx context.Context, image string) error {
	_, err := e.client.ImageInspect(ctx, image)
	if errdefs.IsNotFound(err) {
		return errors.New("it is not on this machine, and not to be pulled")
	}
	return err
}

// digestOf is the digest of an image in its repository, or else at the engine.
func digestOf(image client.ImageInspectResult, named reference.Named) string {
	for _, pinned := range image.RepoDigests {
		if of, err := reference.ParseDockerRef(pinned); err == nil && of.Name() == named.Name() {
			return pinned
		}
	}
	return image.ID
}

// credentials are the credentials for an image's registry. It is an error if that registry may
// not be asked.
func (e *engine) credentials(ctx context.Context, named reference.Named, keys keychain) (string, error) {
	if e.cfg.CheckRegistry != nil {
		if err := e.cfg.CheckRegistry(ctx, reference.Domain(named)); err != nil {
			return "", notAsked{err}
		}
	}
	return keys.of(reference.Domain(named))
}

// pull makes the engine pull an image.
func (e *engine) pull(ctx context.Context, named reference.Named, auth string) error {
	progress, err := e.client.ImagePull(ctx, named.String(), client.ImagePullOptions{RegistryAuth: auth})
	if err != nil {
		return err
	}
	return errors.Join(progress.Wait(ctx), progress.Close())
}

// keychain holds credentials of registries, by host.
type keychain map[string]registry.AuthConfig

// dockerHub is the name under which Docker configurations keep the credentials of docker.io.
const dockerHub = "https://index.docker.io/v1/"

// openKeychain reads the values of secrets that are Docker configurations.
func openKeychain(configurations map[string]string) (keychain, error) {
	keys := keychain{}
	for name, text := range configurations {
		var config struct {
			Auths map[string]registry.AuthConfig `json:"auths"`
		}
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			// The decoder's own words could hold a part of the secret.
			return nil, fmt.Errorf(`the secret %s is no Docker configuration of the shape {"auths":{"<registry>":{"auth":"..."}}}`, name)
		}
		for host, auth := range config.Auths {
			if plain, err := base64.StdEncoding.DecodeString(auth.Auth); err == nil && auth.Username == "" {
				auth.Username, auth.Password, _ = strings.Cut(string(plain), ":")
				auth.Auth = ""
			}
			if host != dockerHub {
				host, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://"), "/")
			}
			keys[host] = auth
		}
	}
	return keys, nil
}

// logIn adds the credentials of the server's own registry, if it has one.
func (e *engine) logIn(ctx context.Context, ref compute.Ref, keys keychain) error {
	if e.cfg.Login == nil {
		return nil
	}
	host, username, password, err := e.cfg.Login(ctx, ref)
	if err != nil {
		return fmt.Errorf("log in to the server's registry: %w", err)
	}
	keys[host] = registry.AuthConfig{Username: username, Password: password}
	return nil
}

// of returns the credentials for a registry in the engine's encoding, "" if there are no
// credentials.
func (k keychain) of(host string) (string, error) {
	auth, ok := k[host]
	if !ok && host == "docker.io" {
		auth, ok = k[dockerHub]
	}
	if !ok {
		return "", nil
	}
	return authconfig.Encode(auth)
}

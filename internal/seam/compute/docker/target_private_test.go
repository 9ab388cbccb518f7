//go:build docker

package docker_test

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/moby/moby/api/pkg/authconfig"
	registrytypes "github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/docker"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	registryUser     = "robot"
	registryPassword = "open:sesame" // a password may have a colon
)

// privateRegistry serves images to clients that have the password, and holds the tests' image
// under the returned name. The engine does not have that image any more.
func privateRegistry(t *testing.T) (host, private string, refused *atomic.Int64) {
	t.Helper()
	images := registry.New(registry.Logger(log.New(t.Output(), "", 0)))
	refused = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(user+"/"+password), []byte(registryUser+"/"+registryPassword)) == 0 {
			refused.Add(1)
			w.Header().Set("WWW-Authenticate", `Basic realm="tests"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	private = host + "/team/" + strings.ToLower(t.Name()) + ":v1"
	_, err := engine.ImageTag(t.Context(), client.ImageTagOptions{Source: image, Target: private})
	check.Must(t, err)
	auth, err := authconfig.Encode(registrytypes.AuthConfig{Username: registryUser, Password: registryPassword})
	check.Must(t, err)
	pushed, err := engine.ImagePush(t.Context(), private, client.ImagePushOptions{RegistryAuth: auth})
	check.Must(t, err)
	check.Must(t, pushed.Wait(t.Context()))
	check.Must(t, pushed.Close())
	_, err = engine.ImageRemove(t.Context(), private, client.ImageRemoveOptions{})
	check.Must(t, err)
	t.Cleanup(func() { forget(t, host) })
	return host, private, refused
}

// forget removes the names of a registry's images at the engine.
func forget(t *testing.T, host string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	there, err := engine.ImageList(ctx, client.ImageListOptions{})
	check.Must(t, err)
	for _, i := range there.Items {
		for _, name := range slices.Concat(i.RepoTags, i.RepoDigests) {
			if !strings.HasPrefix(name, host+"/") {
				continue
			}
			// The digest is removed with the last tag.
			if _, err := engine.ImageRemove(ctx, name, client.ImageRemoveOptions{}); !errdefs.IsNotFound(err) {
				check.Must(t, err)
			}
		}
	}
}

// TestTheServersOwnImagesArePulled pulls an image from the registry that the target logs in to
// by itself. The credentials that Login returns for another release do not pull it.
func TestTheServersOwnImagesArePulled(t *testing.T) {
	t.Parallel()
	host, private, _ := privateRegistry(t)
	own := computetest.NewRelease(computetest.Serve)
	m := newMachine(t, func(c *docker.Config) {
		c.Login = func(_ context.Context, ref compute.Ref) (string, string, string, error) {
			if ref != own.Ref {
				return host, registryUser, "of-another", nil
			}
			return host, registryUser, registryPassword, nil
		}
	})
	other := computetest.NewRelease(computetest.Serve)
	other.Artifact.Image, own.Artifact.Image = private, private
	m.apply(t, other)
	m.want(t, other, compute.Failed, compute.ReasonImageUnavailable)
	m.apply(t, own)
	m.want(t, own, compute.Healthy, "")
}

// TestAPulledImageIsRemovedWithItsRelease by both of its names.
func TestAPulledImageIsRemovedWithItsRelease(t *testing.T) {
	t.Parallel()
	host, private, _ := privateRegistry(t)
	m := newMachine(t, func(c *docker.Config) {
		c.Login = func(context.Context, compute.Ref) (string, string, string, error) {
			return host, registryUser, registryPassword, nil
		}
	})
	r := computetest.NewRelease(computetest.Serve)
	r.Artifact.Image = private
	m.apply(t, r)
	pinned := m.want(t, r, compute.Healthy, "").Image
	check.Must(t, m.Remove(t.Context(), r.Ref))
	for _, name := range []string{private, pinned} {
		eventually(t, name+" outlasts its release", func() bool {
			_, err := engine.ImageInspect(t.Context(), name)
			if !errdefs.IsNotFound(err) {
				check.Must(t, err)
			}
			return err != nil
		})
	}
}

// pullSecret is the value of an image pull secret in the form that kubectl makes.
func pullSecret(t *testing.T, host, password string) string {
	t.Helper()
	plain := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + password))
	return string(mustJSON(t, map[string]any{"auths": map[string]any{host: map[string]string{"auth": plain}}}))
}

// TestAttackAPrivateImageIsPulledWithItsSecret tries an image without credentials, with wrong
// credentials, with another registry's credentials and with the right ones, and then without
// credentials again.
func TestAttackAPrivateImageIsPulledWithItsSecret(t *testing.T) {
	t.Parallel()
	host, private, refused := privateRegistry(t)
	named := json.RawMessage(`{"image_pull_secrets":[{"name":"PULL"}]}`)
	for name, c := range map[string]struct {
		spec   json.RawMessage
		secret string
		reason string
	}{
		"no secret is named":         {nil, pullSecret(t, host, registryPassword), compute.ReasonImageUnavailable},
		"the password is wrong":      {named, pullSecret(t, host, "wrong"), compute.ReasonImageUnavailable},
		"it is for another registry": {named, pullSecret(t, "registry.test", registryPassword), compute.ReasonImageUnavailable},
		"it is no configuration":     {named, registryPassword, compute.ReasonStartFailed},
	} {
		m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
		r.Artifact.Image, r.ResourceSpec, r.Env["PULL"] = private, c.spec, c.secret
		before := refused.Load()
		m.apply(t, r)
		got := m.want(t, r, compute.Failed, c.reason)
		if c.reason == compute.ReasonImageUnavailable && (!strings.Contains(got.Message, private) || refused.Load() == before) {
			t.Errorf("%s: %d requests refused: %q", name, refused.Load()-before, got.Message)
		}
		if strings.Contains(got.Message, registryPassword) || strings.Contains(got.Message, c.secret) {
			t.Errorf("%s: the message has the secret: %q", name, got.Message)
		}
	}

	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	r.Artifact.Image, r.ResourceSpec, r.Env["PULL"] = private, named, pullSecret(t, host, registryPassword)
	m.apply(t, r)
	pinned := m.want(t, r, compute.Healthy, "").Image
	if !strings.HasPrefix(pinned, strings.TrimSuffix(private, ":v1")+"@sha256:") {
		t.Errorf("the image is %q, want one by its digest", pinned)
	}
	endpoint, done, err := m.Acquire(patience(t), r.Ref)
	check.Must(t, err)
	defer done()
	answer, err := computetest.Ask(patience(t), endpoint, "environment")
	check.Must(t, err)
	var environment []string
	check.Must(t, json.Unmarshal([]byte(answer), &environment))
	if slices.ContainsFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, "PULL=") }) {
		t.Error("the agent has the secret that its image was pulled with")
	}

	// Now the engine has the image. No other release may run it, by its digest or beside an
	// agent.
	for _, member := range []string{"", "init_containers", "sidecars"} {
		other := computetest.NewRelease(computetest.Serve)
		other.Artifact.Image = image
		if member == "" {
			other.Artifact.Image = pinned
		} else {
			other.ResourceSpec = mustJSON(t, map[string]any{member: []any{map[string]any{"name": "c", "image": private, "imagePullPolicy": "Never"}}})
		}
		m.apply(t, other)
		m.want(t, other, compute.Failed, compute.ReasonImageUnavailable)
	}
}

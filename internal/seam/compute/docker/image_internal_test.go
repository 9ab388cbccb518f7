package docker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

var imageA, imageB = "sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("b", 64)

// registryBehind is what an engine tells about an image that it has, and about the registry that
// the engine asks for the image.
type registryBehind struct {
	mu      sync.Mutex
	image   string
	status  int
	message string
	// offered is the image that a pull gives, "" for the image that is there. removed are the names
	// that were removed.
	offered string
	removed []string
}

func (b *registryBehind) set(image string, status int, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.image, b.status, b.message = image, status, message
}

// newEngine returns an engine that has one image, whose registry gives it to everybody first.
func newEngine(t *testing.T) (*engine, *registryBehind) {
	t.Helper()
	behind := &registryBehind{image: imageA, status: http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		behind.mu.Lock()
		defer behind.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodDelete:
			behind.removed = append(behind.removed, r.URL.Path[strings.Index(r.URL.Path, "/images/")+len("/images/"):])
			if _, err := w.Write([]byte("[]")); err != nil {
				t.Error(err)
			}
			return
		case strings.HasSuffix(r.URL.Path, "/images/create") && behind.status == http.StatusOK:
			behind.image = cmp.Or(behind.offered, behind.image)
		case strings.HasSuffix(r.URL.Path, "/json") && behind.image == "":
			http.Error(w, `{"message": "No such image"}`, http.StatusNotFound)
			return
		}
		text := `{"Id": "` + behind.image + `", "RepoDigests": ["registry.test/agent@` + behind.image + `"]}`
		if (strings.HasSuffix(r.URL.Path, "/images/create") || strings.Contains(r.URL.Path, "/distribution/")) && behind.status != http.StatusOK {
			w.WriteHeader(behind.status)
			text = `{"message": "` + behind.message + `"}`
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	asked, err := client.New(client.WithHost("tcp://" + strings.TrimPrefix(server.URL, "http://")))
	if err != nil {
		t.Fatal(err)
	}
	return &engine{cfg: Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, client: asked}, behind
}

func newRef() compute.Ref {
	return compute.Ref{Workspace: id.New(time.Now()), Deployment: id.New(time.Now()), Revision: id.New(time.Now())}
}

// images are names of the engine's image: by a tag, and by a digest.
var images = []string{"registry.test/agent:1", "registry.test/agent@" + imageA}

const noRegistry = "dial tcp: lookup registry.test: no such host"

// TestAttackAnImageThatTheRegistryRefuses: the image is on the machine, because another
// party's credentials have pulled it, or because nobody but the engine has it. It is used
// neither when its registry refuses it nor when its registry does not answer, however the release
// names it and whatever the release says about pulling.
func TestAttackAnImageThatTheRegistryRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		message string
		// before says whether a workspace may use the image that had it before.
		before bool
	}{
		"401":                {http.StatusUnauthorized, "no", false},
		"403":                {http.StatusForbidden, "no", false},
		"a registry's words": {http.StatusInternalServerError, "Head https://registry.test/v2/agent/manifests/1: unauthorized: authentication required", false},
		"docker.io's words":  {http.StatusNotFound, "pull access denied for agent, repository does not exist or may require 'docker login'", false},
		"no such image":      {http.StatusNotFound, "manifest for registry.test/agent:1 not found: manifest unknown", true},
		"no registry":        {http.StatusInternalServerError, noRegistry, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, behind := newEngine(t)
			had, other := newRef(), newRef()
			for _, image := range images {
				if _, err := e.pin(t.Context(), had, image, pullTag, keychain{}); err != nil {
					t.Fatal(err)
				}
			}
			behind.set(imageA, c.status, c.message)
			had.Revision = id.New(time.Now()) // a later release of the same workspace
			for _, image := range images {
				for policy, may := range map[string]bool{pullTag: c.before, pullIfNotPresent: c.before, pullNever: c.before, pullAlways: false} {
					if _, err := e.pin(t.Context(), other, image, policy, keychain{}); err == nil {
						t.Errorf("%s with the policy %q is used by a workspace that never had it", image, policy)
					}
					_, err := e.pin(t.Context(), had, image, policy, keychain{})
					if used := err == nil; used != may {
						t.Errorf("%s with the policy %q is used by the workspace that had it: %v (%v), want %v", image, policy, used, err, may)
					}
				}
			}
		})
	}
}

// TestAttackAnImageWhoseRegistryIsAway: the tag of a workspace's image is another image now, and
// then nothing of the release that had the image is left.
func TestAttackAnImageWhoseRegistryIsAway(t *testing.T) {
	t.Parallel()
	e, behind := newEngine(t)
	ref := newRef()
	use := func() error {
		_, err := e.pin(t.Context(), ref, images[0], pullTag, keychain{})
		return err
	}
	if err := use(); err != nil {
		t.Fatal(err)
	}
	behind.set(imageB, http.StatusInternalServerError, noRegistry)
	if use() == nil {
		t.Error("an image is used that another party has pulled by the same tag")
	}
	behind.set(imageA, http.StatusInternalServerError, noRegistry)
	if err := use(); err != nil {
		t.Errorf("the release's own image is refused: %v", err)
	}
	if err := e.Erase(compute.Release{Ref: ref}); err != nil {
		t.Fatal(err)
	}
	if use() == nil {
		t.Error("the image of a release that was erased is used")
	}
}

// TestAPulledImageIsRemovedWithItsLastRelease, under the names that were pulled. An image that was
// at the engine before stays, and so does an image that got a name of the pulled image since.
func TestAPulledImageIsRemovedWithItsLastRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"it was not there":           {"", imageA, images},
		"another image had its name": {imageB, imageA, images},
		"it was there":               {imageA, imageA, nil},
		"its names are of another":   {"", imageB, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, behind := newEngine(t)
			behind.image, behind.offered = c.before, imageA
			refs := []compute.Ref{newRef(), newRef(), newRef()}
			for i, ref := range refs {
				if _, err := e.pin(t.Context(), ref, images[i%2], pullTag, keychain{}); err != nil {
					t.Fatal(err)
				}
			}
			behind.set(c.after, http.StatusOK, "")
			for i, ref := range refs {
				if len(behind.removed) > 0 {
					t.Fatalf("%v are removed while %d releases are left", behind.removed, len(refs)-i)
				}
				if err := e.forget(t.Context(), ref); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(behind.removed, c.want) {
				t.Errorf("removed %v, want %v", behind.removed, c.want)
			}
		})
	}
}

// TestAttackAnImageWhoseRegistryMayNotBeAsked, although the image is on the machine.
func TestAttackAnImageWhoseRegistryMayNotBeAsked(t *testing.T) {
	t.Parallel()
	e, _ := newEngine(t)
	e.cfg.CheckRegistry = func(context.Context, string) error { return errors.New("not public") }
	if _, err := e.pin(t.Context(), newRef(), images[0], pullTag, keychain{}); err == nil {
		t.Error("the image is used whose registry may not be asked")
	}
}

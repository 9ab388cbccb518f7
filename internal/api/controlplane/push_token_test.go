package controlplane_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/registry"
	registryfiles "github.com/slipway-run/slipway/internal/seam/registry/files"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	pushToken = "POST …/push-token: 200 `{token, username, registry_url, repository_url, expires_at}` for internal_docker, whose holder may push to that repository for an hour; " +
		"400 for another source, and on a server that takes no images."
	ownImage = "`image_uri` of internal_docker: an image of the deployment's own repository, with a tag or a digest, 400 otherwise."
)

// fromPush is a request for a deployment whose image is not pushed yet.
func fromPush(name string) object {
	return with(fromUpload(name), "source", "internal_docker")
}

// withImages is a fixture that accepts images.
func withImages(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	key := fixtures.Key(t)
	images, err := registryfiles.Open(registryfiles.Config{Dir: dir, Host: "registry.test:5000", Hasher: key, Now: clock.System, Log: slog.New(slog.DiscardHandler)})
	check.Must(t, err)
	t.Cleanup(func() {
		if err := images.Close(); err != nil {
			t.Error(err)
		}
	})
	return setUpWith(t, func(store *deployment.Config, config *controlplane.Config) {
		store.Images, config.Answers = images, idempotency.NewStore(store.Table, store.Sealer, clock.System)
	})
}

func TestPushTokens(t *testing.T) {
	t.Parallel()
	rule(t, pushToken)
	f := withImages(t)
	path, created := f.create(t, fromPush("weather"))
	for _, body := range []any{object{"supports_registry_username": true}, object{}, nil} {
		got := f.call(t, "POST", path+"/push-token", body)
		wantStatus(t, got, http.StatusOK)
		wantShape(t, got, members(map[string]valueShape{"token": text, "username": text, "registry_url": text, "repository_url": text, "expires_at": dateTime}))
		if want := "registry.test:5000/images/" + f.own.workspace + "/" + created.id("id"); got.member("repository_url") != want || got.member("registry_url") != "registry.test:5000" {
			t.Errorf("got %s, want the repository %s", got.text, want)
		}
		expires, err := clock.Parse(got.id("expires_at"))
		if rest := expires.Sub(clock.System()); err != nil || rest > registry.TokenLife || rest < registry.TokenLife/2 {
			t.Errorf("it is good for %s, %v", rest, err)
		}
	}
	for range 2 {
		again := f.send(t, "POST", path+"/push-token", nil, f.own.with(idempotencyKey, "k"))
		if wantStatus(t, again, http.StatusOK); again.Header.Get(replayed) != "" || again.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("a token is kept: %v", again.Header)
		}
	}
	viewer := f.issue(t, workspace.Viewer)
	wantStatus(t, f.send(t, "POST", path+"/push-token", nil, viewer.headers()), http.StatusForbidden)

	git, _ := f.create(t, fromGit("git"))
	refused := f.call(t, "POST", git+"/push-token", nil)
	wantError(t, refused, http.StatusBadRequest)
	// The public service's own command looks for these words.
	if !strings.Contains(refused.id("detail"), "only available for 'internal_docker' source deployments") {
		t.Errorf("got %s", refused.text)
	}
	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "POST", path+"/push-token", nil), http.StatusConflict)

	none := setUp(t)
	path, _ = none.create(t, fromPush("weather"))
	const noRegistry = "This server takes no images, as it has no registry for them. Deploy from sources (internal_source), from a git repository (github), or from an image of " +
		"a registry of your own (external_docker)."
	wantDetail(t, none.call(t, "POST", path+"/push-token", nil), http.StatusBadRequest, noRegistry)
	wantDetail(t, none.call(t, "PATCH", path, object{"source_revision_config": object{"image_uri": "x:1"}}), http.StatusBadRequest, noRegistry)
}

// TestOwnImages names images that were not pushed for the deployment, and an image that was.
func TestOwnImages(t *testing.T) {
	t.Parallel()
	rule(t, ownImage)
	f := withImages(t)
	path, created := f.create(t, fromPush("weather"))
	other, _ := f.create(t, fromPush("other"))
	named := func(path string) string { return f.call(t, "POST", path+"/push-token", nil).id("repository_url") }
	repository, digest := named(path), "@sha256:"+strings.Repeat("0", 64)
	for _, wrong := range []string{"", "x:1", repository, repository + ":", repository + "x:1", repository + "/x" + digest, "evil.test/" + repository + digest, named(other) + digest} {
		got := f.call(t, "PATCH", path, object{"source_revision_config": object{"image_uri": wrong}})
		wantDetail(t, got, http.StatusBadRequest, "source_revision_config.image_uri must be an image of the deployment's own repository, by its digest or a tag ("+
			repository+`@sha256:...), not "`+wrong+`".`)
	}
	wantError(t, f.call(t, "POST", "/v2/deployments", with(fromPush("new"), "source_revision_config.image_uri", repository+digest)), http.StatusBadRequest)
	for _, right := range []string{repository + digest, repository + ":v1"} {
		got := f.call(t, "PATCH", path, object{"source_revision_config": object{"image_uri": right}, "revision_source": "internal_docker", "tracked_packages": []any{"a"}})
		wantStatus(t, got, http.StatusOK)
		made := f.call(t, "GET", path+"/revisions/"+got.id("latest_revision_id"), nil)
		if made.id("source") != "internal_docker" || made.id("source_revision_config", "image_uri") != right {
			t.Errorf("the revision is %s", made.text)
		}
	}
	wantStatus(t, f.call(t, "PATCH", path, object{"secrets": []any{object{"name": "A", "value": "b"}}}), http.StatusOK)
	if created.member("latest_revision_id") != nil {
		t.Errorf("it was created with a revision: %s", created.text)
	}
}

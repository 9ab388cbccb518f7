package controlplane_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/upload"
	uploadfiles "github.com/slipway-run/slipway/internal/seam/upload/files"
	"github.com/slipway-run/slipway/internal/seam/upload/uploadtest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	createdEmpty = "One of `internal_source` or `internal_docker` with an empty `source_revision_config` is READY without a revision; the first PATCH with " +
		"something to make it from makes one."
	tarballPath = "`source_tarball_path`: string or null; applies to internal_source; is an `object_path` of the deployment's own, 400 otherwise; " +
		"makes a revision when PATCHed."
	revisionSource  = "PATCH `revision_source`: the source of the deployment, 400 otherwise."
	uploadURL       = "POST …/upload-url: 200 with `upload_url`, `object_path` and `upload_headers`; a gzip tarball can be PUT there once; another source is a 400."
	trackedPackages = "PATCH `tracked_packages`: strings, shown in `source_revision_config`; make no revision by themselves."
)

// fromUpload is a request for a deployment whose source is not uploaded yet.
func fromUpload(name string) object {
	return object{
		"name": name, "source": "internal_source", "secrets": []any{}, "source_config": object{"deployment_type": "dev_zero"}, "source_revision_config": object{},
	}
}

// TestWhatIsUploadedComesAfterTheDeployment creates deployments without a source and gives them
// a source.
func TestWhatIsUploadedComesAfterTheDeployment(t *testing.T) {
	t.Parallel()
	rule(t, createdEmpty)
	rule(t, tarballPath)
	f := setUp(t)
	for _, source := range []string{"internal_source", "internal_docker"} {
		path, created := f.create(t, with(fromUpload(source), "source", source))
		wantShape(t, created, deploymentShape)
		if created.id("status") != "READY" || created.member("latest_revision_id") != nil || created.id("tenant_id") != f.own.workspace {
			t.Errorf("created: got %s", created.text)
		}
		if got := f.call(t, "GET", path+"/revisions", nil); len(got.member("resources").([]any)) != 0 {
			t.Errorf("%s has revisions: %s", source, got.text)
		}
		secrets := f.call(t, "PATCH", path, object{"secrets": []any{object{"name": "A", "value": "b"}}})
		wantStatus(t, secrets, http.StatusOK)
		if secrets.member("latest_revision_id") != nil || len(secrets.member("secrets").([]any)) != 1 {
			t.Errorf("secrets before there is a source: got %s", secrets.text)
		}
		missing := map[string]string{"internal_source": "source_tarball_path", "internal_docker": "image_uri"}[source]
		wantDetail(t, f.call(t, "POST", path+"/revisions", object{}), http.StatusBadRequest,
			"source_revision_config."+missing+" is required when source is "+source+".")
		wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	}
	path, created := f.create(t, fromUpload("weather"))
	named := upload.Ref{Workspace: f.own.workspace, Deployment: created.id("id"), Upload: someID}.Path()
	for _, wrong := range []string{
		"", "x", "../" + named, upload.Ref{Workspace: f.own.workspace, Deployment: someID, Upload: someID}.Path(), named + "/..", "gs://bucket/" + named,
	} {
		wantDetail(t, f.call(t, "PATCH", path, object{"source_revision_config": object{"source_tarball_path": wrong}}), http.StatusBadRequest,
			"source_revision_config.source_tarball_path must be the object_path of an upload-url of this deployment.")
	}
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromUpload("other"), "source_revision_config.source_tarball_path", named)), http.StatusBadRequest,
		"source_revision_config.source_tarball_path must be the object_path of an upload-url of this deployment.")
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromGit("git"), "source_revision_config.source_tarball_path", named)), http.StatusBadRequest,
		"source_revision_config.source_tarball_path applies to source internal_source only.")
	patched := f.call(t, "PATCH", path, object{"source_revision_config": object{"source_tarball_path": named, "framework_config_path": "framework.json"}})
	wantStatus(t, patched, http.StatusOK)
	revision := f.call(t, "GET", path+"/revisions/"+patched.id("latest_revision_id"), nil)
	if revision.id("source") != "internal_source" || revision.id("status") != "CREATING" || revision.id("source_revision_config", "source_tarball_path") != named {
		t.Errorf("the first revision is %s", revision.text)
	}
	again := f.call(t, "PATCH", path, object{"secrets": []any{}})
	if again.id("latest_revision_id") == patched.id("latest_revision_id") {
		t.Errorf("secrets made no revision: %s", again.text)
	}
}

// TestTheSourceOfARevision names a source on a PATCH.
func TestTheSourceOfARevision(t *testing.T) {
	t.Parallel()
	rule(t, revisionSource)
	rule(t, trackedPackages)
	f := setUp(t)
	path, _ := f.create(t, fromUpload("weather"))
	wantDetail(t, f.call(t, "PATCH", path, object{"revision_source": "internal_docker"}), http.StatusBadRequest,
		`revision_source must be internal_source, as the deployment's source is, not "internal_docker".`)
	if diff := cmp.Diff([]problem{{"body.revision_source", "enum"}}, problems(t, f.call(t, "PATCH", path, object{"revision_source": "svn"}))); diff != "" {
		t.Error(diff)
	}
	patched := f.call(t, "PATCH", path, object{"revision_source": "internal_source", "tracked_packages": []any{"a==1", "b"}})
	wantStatus(t, patched, http.StatusOK)
	f.wantMember(t, patched, "source_revision_config.tracked_packages", []any{"a==1", "b"})
	if patched.member("latest_revision_id") != nil {
		t.Errorf("it has a revision: %s", patched.text)
	}
	wantStatus(t, f.call(t, "PATCH", path, object{"revision_source": nil, "tracked_packages": nil}), http.StatusOK)
}

// TestATarballIsUploaded gets the address, sends the tarball, and makes a revision of it.
func TestATarballIsUploaded(t *testing.T) {
	t.Parallel()
	rule(t, uploadURL)
	key := fixtures.Key(t)
	store, err := uploadfiles.Open(t.TempDir(), key, clock.System)
	check.Must(t, err)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	storage := httptest.NewServer(store.Handler(func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusConflict)
	}))
	t.Cleanup(storage.Close)
	f := setUpWith(t, func(c *deployment.Config, cp *controlplane.Config) {
		c.Uploads, cp.BaseURL = store, func(context.Context) string { return storage.URL }
	})
	path, _ := f.create(t, fromUpload("weather"))
	granted := f.call(t, "POST", path+"/upload-url", object{"supports_upload_headers": true})
	wantStatus(t, granted, http.StatusOK)
	wantShape(t, granted, members(map[string]valueShape{"upload_url": text, "object_path": text, "upload_headers": mapOf(text)}))
	for _, want := range []int{http.StatusOK, http.StatusConflict} {
		headers := map[string]string{"Content-Type": granted.id("upload_headers", "Content-Type")}
		if got := uploadtest.Put(t, granted.id("upload_url"), headers, strings.NewReader("a tarball")); got != want {
			t.Errorf("the upload is answered %d, want %d", got, want)
		}
	}
	patched := f.call(t, "PATCH", path, object{
		"revision_source": "internal_source", "source_revision_config": object{"source_tarball_path": granted.id("object_path")},
	})
	wantStatus(t, patched, http.StatusOK)
	if patched.member("latest_revision_id") == nil {
		t.Errorf("it has no revision: %s", patched.text)
	}
	for _, other := range []object{fromGit("git"), fromImage("image"), with(fromUpload("pushed"), "source", "internal_docker")} {
		path, _ := f.create(t, other)
		wantDetail(t, f.call(t, "POST", path+"/upload-url", nil), http.StatusBadRequest,
			"Upload URLs are only available for 'internal_source' source deployments; the source of this one is '"+other["source"].(string)+"'.")
	}
	wantStatus(t, f.send(t, "POST", path+"/upload-url", nil, f.other.headers()), http.StatusNotFound)
}

package controlplane_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheLifeOfADeployment goes through its statuses.
func TestTheLifeOfADeployment(t *testing.T) {
	t.Parallel()
	rule(t, "Deployment status: AWAITING_DATABASE -> READY -> AWAITING_DELETE -> 404.")
	f := setUp(t)
	path, created := f.create(t, fromImage("weather"))
	want := func(status string) {
		t.Helper()
		if got := f.call(t, "GET", path, nil).id("status"); got != status {
			t.Errorf("got %s, want %s", got, status)
		}
	}
	want("AWAITING_DATABASE")
	f.deploy(t, created.id("id"))
	want("READY")
	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	want("AWAITING_DELETE")
	ref := deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")}
	if _, err := f.deployments.EraseRevisions(t.Context(), ref, func(revision.Ref) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "DELETE"} {
		wantDetail(t, f.call(t, method, path, nil), http.StatusNotFound, "Deployment ID "+created.id("id")+" not found.")
	}
}

// TestForceErasesWhatWasDeletedBefore deletes by force, too early and in time.
func TestForceErasesWhatWasDeletedBefore(t *testing.T) {
	t.Parallel()
	rule(t, "DELETE `force=true`: only for a deployment that was deleted before, else 400; it is gone at once.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for range 60 {
		f.call(t, "POST", path+"/revisions", nil)
	}
	wantDetail(t, f.call(t, "DELETE", path+"?force=true", nil), http.StatusBadRequest,
		"force applies to a deployment that was deleted before; deployment ID "+created.id("id")+" is AWAITING_DATABASE.")
	if got := f.call(t, "GET", path, nil).id("status"); got != "AWAITING_DATABASE" {
		t.Errorf("it is %s", got)
	}
	wantStatus(t, f.call(t, "DELETE", path+"?force=false", nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "DELETE", path+"?force=true", nil), http.StatusNoContent)
	wantError(t, f.call(t, "GET", path, nil), http.StatusNotFound)
	wantError(t, f.call(t, "GET", path+"/revisions", nil), http.StatusNotFound)
	wantError(t, f.call(t, "DELETE", path+"?force=maybe", nil), http.StatusUnprocessableEntity)
}

// TestATracingProjectHasTheDeploymentsName follows the project from a deployment to the next
// deployment of the same name.
func TestATracingProjectHasTheDeploymentsName(t *testing.T) {
	t.Parallel()
	rule(t, "Creating a deployment creates a tracing project of the same name, in the same transaction.")
	rule(t, "DELETE `delete_tracing_project`: false keeps the tracing project, which the next deployment of the name takes over; true deletes it.")
	f := setUp(t)
	project := func(path string) response { return f.call(t, "GET", path+"/tracing-project", nil) }
	path, created := f.create(t, fromGit("weather"))
	first := project(path)
	wantStatus(t, first, http.StatusOK)
	if first.id("name") != "weather" || first.id("deployment_id") != created.id("id") || first.id("created_at") != created.id("created_at") {
		t.Errorf("got %s", first.text)
	}
	wantError(t, f.call(t, "POST", "/v2/deployments", fromGit("weather")), http.StatusConflict)
	if diff := cmp.Diff(first.body, project(path).body); diff != "" {
		t.Errorf("a refused create changed it (-before +after):\n%s", diff)
	}

	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	if left := project(path); left.id("id") != first.id("id") || left.member("deployment_id") != nil {
		t.Errorf("after the deletion: got %s", left.text)
	}
	next, _ := f.create(t, fromGit("weather"))
	if got := project(next); got.id("id") != first.id("id") || got.member("deployment_id") == nil {
		t.Errorf("the next deployment has %s, want %s", got.text, first.text)
	}
	// The first deployment's project belongs to another deployment now.
	wantStatus(t, f.call(t, "DELETE", path+"?delete_tracing_project=true", nil), http.StatusNoContent)
	wantStatus(t, project(next), http.StatusOK)

	wantStatus(t, f.call(t, "DELETE", next+"?delete_tracing_project=true", nil), http.StatusNoContent)
	wantStatus(t, project(next), http.StatusNotFound)
	last, _ := f.create(t, fromGit("weather"))
	if got := project(last); got.id("id") == first.id("id") {
		t.Error("the project that was deleted is back")
	}
	wantStatus(t, f.call(t, "DELETE", last, nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "DELETE", last+"?delete_tracing_project=true", nil), http.StatusNoContent)
	wantStatus(t, project(last), http.StatusNotFound)
}

// TestOneThatCannotBeDeletedKeepsNoOther damages the stored record of one of three deployments.
func TestOneThatCannotBeDeletedKeepsNoOther(t *testing.T) {
	t.Parallel()
	var tb table.Table
	var log check.Log
	f := setUpWith(t, func(store *deployment.Config, _ *controlplane.Config) {
		tb, store.Log = store.Table, slog.New(slog.NewTextHandler(&log, nil))
	})
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		_, created := f.create(t, fromGit(name))
		ids = append(ids, created.id("id"))
	}
	spoil := table.Update{Key: keys.Deployment(f.own.workspace, ids[1]), Body: []byte("{")}
	check.Must(t, tb.Transact(t.Context(), spoil))
	got := f.call(t, "DELETE", "/v2/deployments?"+url.Values{"deployment_ids": ids}.Encode(), nil)
	wantStatus(t, got, http.StatusMultiStatus)
	wantShape(t, got, deletedShape)
	request := got.Header.Get("X-Request-Id")
	if diff := cmp.Diff(any(object{"deployment_ids": []any{ids[0], ids[2]}, "failed": []any{
		map[string]any{"deployment_id": ids[1], "reason": "internal", "detail": "Internal server error (request " + request + ")."},
	}}), got.body); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := log.String(); !strings.Contains(text, "request failed in part") || !strings.Contains(text, request) {
		t.Errorf("the log does not tell of it:\n%s", text)
	}
}

// TestSeveralDeploymentsAreDeletedAtOnce names deployments that exist and ids that do not
// exist.
func TestSeveralDeploymentsAreDeletedAtOnce(t *testing.T) {
	t.Parallel()
	rule(t, "DELETE /v2/deployments?deployment_ids=: 200 for all, 207 for some, 404 for none; 1 to 100 ids.")
	f := setUp(t)
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		_, created := f.create(t, fromGit(name))
		ids = append(ids, created.id("id"))
	}
	_, stranger := response{}, f.send(t, "POST", "/v2/deployments", fromGit("a"), f.other.headers())
	remove := func(more string, ids ...string) response {
		query := url.Values{"deployment_ids": ids}
		return f.call(t, "DELETE", "/v2/deployments?"+query.Encode()+more, nil)
	}
	all := remove("", ids[0], ids[1])
	wantStatus(t, all, http.StatusOK)
	if diff := cmp.Diff(any(object{"deployment_ids": []any{ids[0], ids[1]}, "failed": []any{}}), all.body); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	some := remove("", ids[2], unknownID, stranger.id("id"))
	wantStatus(t, some, http.StatusMultiStatus)
	wantShape(t, some, deletedShape)
	if diff := cmp.Diff(any(object{"deployment_ids": []any{ids[2]}, "failed": []any{
		map[string]any{"deployment_id": unknownID, "reason": "not_found", "detail": "Deployment ID " + unknownID + " not found."},
		map[string]any{"deployment_id": stranger.id("id"), "reason": "not_found", "detail": "Deployment ID " + stranger.id("id") + " not found."},
	}}), some.body); diff != "" {
		t.Errorf("some (-want +got):\n%s", diff)
	}
	if got := listed(t, f.call(t, "GET", "/v2/deployments", nil), "id"); len(got) != 0 {
		t.Errorf("%v are left", got)
	}
	wantStatus(t, f.send(t, "GET", "/v2/deployments/"+stranger.id("id"), nil, f.other.headers()), http.StatusOK)
	wantError(t, remove("", unknownID, stranger.id("id")), http.StatusNotFound)
	wantStatus(t, remove("&force=true", ids...), http.StatusOK)
	wantError(t, f.call(t, "GET", "/v2/deployments/"+ids[0], nil), http.StatusNotFound)
	_, kept := f.create(t, fromGit("kept"))
	if got := remove("&force=true", kept.id("id")); got.StatusCode != http.StatusMultiStatus || !strings.Contains(string(got.text), `"reason":"invalid"`) {
		t.Errorf("by force too early: got %d %s", got.StatusCode, got.text)
	}
	for query, want := range map[string]problem{
		"": {"query.deployment_ids", "missing"}, "deployment_ids=x": {"query.deployment_ids.0", "uuid_parsing"},
		"deployment_ids=" + strings.Repeat(unknownID+"&deployment_ids=", 100) + unknownID: {"query.deployment_ids", "too_long"},
	} {
		if diff := cmp.Diff([]problem{want}, problems(t, f.call(t, "DELETE", "/v2/deployments?"+query, nil))); diff != "" {
			t.Errorf("%.40s (-want +got):\n%s", query, diff)
		}
	}
}

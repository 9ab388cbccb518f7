package controlplane_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const (
	recoveryWindow = "DELETE `recovery_window_seconds`: 0 to 2592000 (0); the deployment is AWAITING_DELETE and its name free at once, but nothing of it is erased before `purge_at`; " +
		"deleting it again can end the window earlier, never later; `force` ends it."
	undeleted = "POST …/undelete: 200 Deployment within the recovery window, READY with what it had and a revision that deploys what was active again; 409 when it was not deleted, or " +
		"without a window, when that is over, and when its name is another's; of many at once one makes a revision."
)

// TestADeletedDeploymentIsUndeleted deletes a deployment with a recovery window; another
// deployment uses its name for a while.
func TestADeletedDeploymentIsUndeleted(t *testing.T) {
	t.Parallel()
	rule(t, recoveryWindow)
	rule(t, undeleted)
	rule(t, eventsTell)
	f := setUpManners(t)
	path, created := f.create(t, fromImage("weather"))
	wantStatus(t, f.call(t, "POST", "/v2/webhooks", object{"url": "https://ci.example.com/a", "event_types": []string{"deployment.undeleted"}}), http.StatusCreated)
	if _, shown := created.body.(map[string]any)["purge_at"]; shown {
		t.Errorf("a deployment that lives shows %s", created.text)
	}
	first := created.id("latest_revision_id")
	f.deploy(t, created.id("id"))
	wantDetail(t, f.call(t, "POST", path+"/undelete", nil), http.StatusConflict, "Deployment ID "+created.id("id")+" is READY: there is no deletion to undo.")
	for query, want := range map[string]problem{
		"?recovery_window_seconds=-1":      {"query.recovery_window_seconds", "greater_than_equal"},
		"?recovery_window_seconds=2592001": {"query.recovery_window_seconds", "less_than_equal"},
		"?recovery_window_seconds=x":       {"query.recovery_window_seconds", "int_parsing"},
	} {
		if diff := cmp.Diff([]problem{want}, problems(t, f.call(t, "DELETE", path+query, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	wantStatus(t, f.call(t, "DELETE", path+"?recovery_window_seconds=2592000", nil), http.StatusNoContent)
	shown := f.call(t, "GET", path, nil)
	wantShape(t, shown, members(also(membersOfDeployment, "purge_at")))
	until, err := clock.Parse(shown.id("purge_at"))
	const window = 2592000 * time.Second
	if left := time.Until(until); err != nil || shown.id("status") != "AWAITING_DELETE" || left < window-time.Hour || left > window {
		t.Errorf("it is shown as %s", shown.text)
	}
	if got := listed(t, f.call(t, "GET", "/v2/deployments", nil), "id"); len(got) != 0 {
		t.Errorf("%v are in the list", got)
	}
	if got := listed(t, f.call(t, "GET", "/v2/deployments?status=AWAITING_DELETE", nil), "purge_at"); !slices.Equal(got, []string{shown.id("purge_at")}) {
		t.Errorf("the deleted deployments can be undeleted until %v", got)
	}
	tag := shown.Header.Get("ETag")

	other, _ := f.create(t, fromImage("weather"))
	wantDetail(t, f.call(t, "POST", path+"/undelete", nil), http.StatusConflict, `A deployment with the name "weather" already exists.`)
	wantStatus(t, f.call(t, "DELETE", other, nil), http.StatusNoContent)
	if gone := f.call(t, "GET", other, nil); gone.member("purge_at") != nil {
		t.Errorf("without a window it is shown as %s", gone.text)
	}
	wantError(t, f.call(t, "POST", other+"/undelete", nil), http.StatusConflict)
	wantError(t, f.send(t, "POST", path+"/undelete", nil, f.issue(t, workspace.Viewer).headers()), http.StatusForbidden)
	wantError(t, f.send(t, "POST", path+"/undelete", nil, f.other.headers()), http.StatusNotFound)
	wantStatus(t, f.send(t, "POST", path+"/undelete", nil, f.own.with("If-Match", created.Header.Get("ETag"))), http.StatusPreconditionFailed)

	editor := f.issue(t, workspace.Editor)
	back := f.send(t, "POST", path+"/undelete", nil, editor.with("If-Match", tag, idempotencyKey, "k"))
	wantStatus(t, back, http.StatusOK)
	wantShape(t, back, deploymentShape)
	if back.id("status") != "READY" || back.id("latest_revision_id") == first || back.member("active_revision_id") != nil || back.member("purge_at") != nil {
		t.Errorf("it is back as %s", back.text)
	}
	if again := f.send(t, "POST", path+"/undelete", nil, editor.with("If-Match", tag, idempotencyKey, "k")); string(again.text) != string(back.text) || again.Header.Get(replayed) != "true" {
		t.Errorf("repeated, it answers %d %s", again.StatusCode, again.text)
	}
	if got := f.call(t, "GET", path, nil); string(got.text) != string(f.send(t, "GET", path, nil, editor.headers()).text) || got.Header.Get("ETag") != back.Header.Get("ETag") {
		t.Errorf("it is read as %s %s, answered was %s", got.text, got.Header.Get("ETag"), back.Header.Get("ETag"))
	}
	if got := listed(t, f.call(t, "GET", "/v2/deployments?status=AWAITING_DELETE", nil), "id"); slices.Contains(got, created.id("id")) {
		t.Errorf("%v are deleted", got)
	}
	f.deploy(t, created.id("id"))
	if live := f.call(t, "GET", path, nil); live.id("active_revision_id") != back.id("latest_revision_id") {
		t.Errorf("it serves as %s", live.text)
	}
	if got := listed(t, f.call(t, "GET", "/v2/deployments", nil), "id"); !slices.Equal(got, []string{created.id("id")}) {
		t.Errorf("%v are in the list", got)
	}
	events, _ := f.page(t, path+"/events?limit=100")
	var all []string
	for _, e := range events {
		all = append(all, told(e))
	}
	if text := strings.Join(all, ", "); !strings.Contains(text, "deployment.deleted <nil>, deployment.undeleted <nil>, revision.creating CREATING") {
		t.Errorf("events: %s", text)
	}
	var done []string
	entries, _ := f.call(t, "GET", "/v2/audit-log?limit=100", nil).member("resources").([]any)
	for _, entry := range entries {
		if e, _ := entry.(map[string]any); e["resource"] == created.id("id") {
			action, _ := e["action"].(string)
			done = append(done, action)
		}
	}
	if !slices.Contains(done, "undelete_deployment") {
		t.Errorf("the audit log says %v", done)
	}
}

// TestARecoveryWindowEndsEarlier ends it by each kind of second deletion, of one deployment and
// of several.
func TestARecoveryWindowEndsEarlier(t *testing.T) {
	t.Parallel()
	rule(t, recoveryWindow)
	f := setUp(t)
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		_, created := f.create(t, fromGit(name))
		ids = append(ids, created.id("id"))
	}
	remove := func(more string, ids ...string) {
		t.Helper()
		wantStatus(t, f.call(t, "DELETE", "/v2/deployments?"+url.Values{"deployment_ids": ids}.Encode()+more, nil), http.StatusOK)
	}
	end := func(id string) string { return f.call(t, "GET", "/v2/deployments/"+id, nil).id("purge_at") }
	remove("&recovery_window_seconds=86400", ids...)
	first := end(ids[0])
	remove("&recovery_window_seconds=172800", ids[0])
	if got := end(ids[0]); got != first || first == "" {
		t.Errorf("a longer window ends at %s, the first at %s", got, first)
	}
	remove("&recovery_window_seconds=3600", ids[0])
	if got := end(ids[0]); got >= first {
		t.Errorf("a shorter window ends at %s, the first at %s", got, first)
	}
	remove("", ids[1])
	got := f.call(t, "POST", "/v2/deployments/"+ids[1]+"/undelete", nil)
	wantError(t, got, http.StatusConflict)
	if detail, _ := got.member("detail").(string); !strings.HasPrefix(detail, "The recovery window of deployment ID "+ids[1]+" ended at 2") || !strings.HasSuffix(detail, "Z. It cannot be undeleted any more.") {
		t.Errorf("got %q", detail)
	}
	if shown := f.call(t, "GET", "/v2/deployments/"+ids[1], nil); shown.member("purge_at") != nil {
		t.Errorf("a deployment that cannot be undeleted any more is shown as %s", shown.text)
	}
	remove("&force=true", ids[2])
	wantError(t, f.call(t, "POST", "/v2/deployments/"+ids[2]+"/undelete", nil), http.StatusNotFound)
	wantStatus(t, f.call(t, "POST", "/v2/deployments/"+ids[0]+"/undelete", nil), http.StatusOK)
}

// TestUndeletesAtOnce sends twenty undeletes at once.
func TestUndeletesAtOnce(t *testing.T) {
	t.Parallel()
	rule(t, undeleted)
	f := setUp(t)
	path, _ := f.create(t, fromGit("weather"))
	wantStatus(t, f.call(t, "DELETE", path+"?recovery_window_seconds=3600", nil), http.StatusNoContent)
	var wg sync.WaitGroup
	var done, refused atomic.Int64
	for range 20 {
		wg.Go(func() {
			switch r := f.call(t, "POST", path+"/undelete", nil); r.StatusCode {
			case http.StatusOK:
				done.Add(1)
			case http.StatusConflict:
				refused.Add(1)
			default:
				t.Errorf("got %d %s", r.StatusCode, r.text)
			}
		})
	}
	wg.Wait()
	if done.Load() != 1 || refused.Load() != 19 {
		t.Errorf("%d succeeded, %d were refused", done.Load(), refused.Load())
	}
	if got := listed(t, f.call(t, "GET", path+"/revisions", nil), "id"); len(got) != 2 {
		t.Errorf("the revisions are %v", got)
	}
}

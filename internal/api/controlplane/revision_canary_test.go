package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	canarySettings = "`canary_percent` (0 to 99) and `canary_seconds` (1 to 3600): integers or null, not shown before they are set; changing them makes no revision. A listener's deployment has no canary: 400."
	canaryPromoted = "POST …/revisions/{revision_id}/promote: 200, and a canary is DEPLOYED at once; what is no canary is a 409. Until then it is DEPLOYING and says so."
)

func TestCanariesAreASetting(t *testing.T) {
	t.Parallel()
	rule(t, canarySettings)
	f := setUp(t)
	for member, c := range map[string]struct{ good, wrong []any }{
		"canary_percent": {[]any{0, nil, 50, 99}, []any{-1, 100, 1.5, "5", true}},
		"canary_seconds": {[]any{1, nil, 3600}, []any{0, 3601, 60.5, "60", true}},
	} {
		path, created := f.create(t, fromGit("weather-"+member[7:]))
		if _, shown := created.body.(object)[member]; shown {
			t.Errorf("got %s", created.text)
		}
		want := ""
		for _, sent := range c.good {
			got := f.call(t, "PATCH", path, object{member: sent})
			wantStatus(t, got, http.StatusOK)
			if sent != nil {
				want = fmt.Sprint(sent)
			}
			for _, shown := range []response{got, f.call(t, "GET", path, nil)} {
				if fmt.Sprint(shown.member(member)) != want || shown.id("latest_revision_id") != created.id("latest_revision_id") {
					t.Errorf("sent %v, got %s", sent, shown.text)
				}
			}
		}
		tried := fromGit("tried-" + member[7:])
		for _, wrong := range c.wrong {
			tried[member] = wrong
			for _, got := range []response{f.call(t, "POST", "/v2/deployments", tried), f.call(t, "PATCH", path, object{member: wrong})} {
				wantStatus(t, got, http.StatusUnprocessableEntity)
				if !strings.Contains(string(got.text), member) {
					t.Errorf("%v: the field is not named: %s", wrong, got.text)
				}
			}
		}
		tried[member] = 60
		if _, created := f.create(t, tried); fmt.Sprint(created.member(member)) != "60" {
			t.Errorf("got %s", created.text)
		}
	}
	remote := with(fromImage("remote"), "source_config.listener_id", "0197a000-0000-7000-8000-00000000000a")
	remote["canary_percent"] = 1
	if got := f.call(t, "POST", "/v2/deployments", remote); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.id("detail"), "canary_percent must be 0 where a listener runs the deployment") {
		t.Errorf("got %d %s", got.StatusCode, got.text)
	}
}

// tryOut makes the revision that holds the slot a canary, as a rollout does.
func (f *fixture) tryOut(t *testing.T, deploymentID string) {
	t.Helper()
	f.rollOut(t, deploymentID, f.deployments.BeginCanary)
}

func TestACanaryIsPromoted(t *testing.T) {
	t.Parallel()
	rule(t, canaryPromoted)
	rule(t, eventsTell)
	f := setUp(t)
	body := fromImage("weather")
	body["canary_percent"] = 25
	path, created := f.create(t, body)
	first := created.id("latest_revision_id")
	f.deploy(t, created.id("id"))
	wantDetail(t, f.call(t, "POST", path+"/revisions/"+first+"/promote", nil), http.StatusConflict, "Revision ID "+first+" is DEPLOYED, and no canary.")
	second := f.call(t, "PATCH", path, object{"secrets": []any{}}).id("latest_revision_id")
	wantDetail(t, f.call(t, "POST", path+"/revisions/"+second+"/promote", nil), http.StatusConflict, "Revision ID "+second+" is CREATING, and no canary.")
	f.tryOut(t, created.id("id"))
	shown := f.call(t, "GET", path+"/revisions/"+second, nil)
	wantShape(t, shown, revisionShape)
	if shown.id("status") != "DEPLOYING" || shown.id("status_reason") != "CANARY" || !strings.Contains(shown.id("status_message"), "25 %") || shown.id("phase_timestamps", "CANARY") == "" {
		t.Errorf("the canary is shown as %s", shown.text)
	}
	if got := f.call(t, "GET", path, nil).id("active_revision_id"); got != first {
		t.Errorf("%s is active during the canary", got)
	}
	promoted := f.call(t, "POST", path+"/revisions/"+second+"/promote", nil)
	wantStatus(t, promoted, http.StatusOK)
	wantShape(t, promoted, revisionShape)
	if promoted.id("status") != "DEPLOYED" || promoted.member("status_reason") != nil || promoted.member("status_message") != nil || promoted.id("phase_timestamps", "CANARY") == "" {
		t.Errorf("it is shown as %s", promoted.text)
	}
	if got := f.call(t, "GET", path, nil).id("active_revision_id"); got != second {
		t.Errorf("%s is active after the promotion", got)
	}
	wantError(t, f.call(t, "POST", path+"/revisions/"+second+"/promote", nil), http.StatusConflict)
	wantError(t, f.call(t, "POST", path+"/revisions/0197a000-0000-7000-8000-00000000000b/promote", nil), http.StatusNotFound)
	events, _ := f.page(t, path+"/events?limit=100")
	var all []string
	for _, e := range events {
		all = append(all, told(e))
	}
	if text := strings.Join(all, ", "); !strings.Contains(text, "revision.deploying DEPLOYING, revision.canary DEPLOYING, revision.deployed DEPLOYED") {
		t.Errorf("events: %s", text)
	}
	hook := object{"url": "https://ci.example.com/a", "event_types": []string{"revision.canary"}}
	wantStatus(t, f.call(t, "POST", "/v2/webhooks", hook), http.StatusCreated)
	log := f.call(t, "GET", "/v2/audit-log?limit=100", nil)
	if !strings.Contains(string(log.text), "promotion of revision "+second) {
		t.Errorf("the audit log does not tell of the promotion: %s", log.text)
	}
	f.call(t, "DELETE", path, nil)
	wantError(t, f.call(t, "POST", path+"/revisions/"+second+"/promote", nil), http.StatusConflict)
}

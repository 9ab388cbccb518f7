package controlplane_test

import (
	"net/http"
	"strings"
	"testing"
)

const restarts = "POST …/restart: 202, and the agents are restarted without a revision; the end is an event. What has no revision, is being deleted or runs at a listener is a 409."

func TestADeploymentIsRestarted(t *testing.T) {
	t.Parallel()
	rule(t, restarts)
	f := setUpManners(t)
	path, created := f.create(t, fromImage("weather"))
	f.deploy(t, created.id("id"))
	before := f.call(t, "GET", path, nil)
	begun := f.call(t, "POST", path+"/restart", nil)
	wantStatus(t, begun, http.StatusAccepted)
	if begun.id("deployment_id") != created.id("id") || begun.id("revision_id") != created.id("latest_revision_id") || begun.id("id") == "" {
		t.Errorf("got %s", begun.text)
	}
	if after := f.call(t, "GET", path, nil); string(after.text) != string(before.text) {
		t.Errorf("the deployment is %s, before it was %s", after.text, before.text)
	}
	again := f.own.with(idempotencyKey, "once")
	first, second := f.send(t, "POST", path+"/restart", nil, again), f.send(t, "POST", path+"/restart", nil, again)
	wantStatus(t, first, http.StatusAccepted)
	if first.id("id") == begun.id("id") || first.id("id") != second.id("id") {
		t.Errorf("got %s, and with the same key %s", first.text, second.text)
	}
	if log := f.call(t, "GET", "/v2/audit-log?action=restart_deployment", nil); strings.Count(string(log.text), created.id("id")) != 2 {
		t.Errorf("the audit log has %s", log.text)
	}
	hook := object{"url": "https://ci.example.com/a", "event_types": []string{"deployment.restarted", "deployment.restart_failed"}}
	wantStatus(t, f.call(t, "POST", "/v2/webhooks", hook), http.StatusCreated)

	unknown := "/v2/deployments/0197a000-0000-7000-8000-00000000000b/restart"
	wantError(t, f.call(t, "POST", unknown, nil), http.StatusNotFound)
	f.call(t, "DELETE", path, nil)
	wantDetail(t, f.call(t, "POST", path+"/restart", nil), http.StatusConflict, "Deployment ID "+created.id("id")+" is being deleted.")
}

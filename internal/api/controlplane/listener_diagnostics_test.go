package controlplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const listenerDiagnosed = "GET /v2/listeners/{listener_id}/diagnostics: who speaks for it and since when, the orders that wait, what has failed, which deployments do not fit, " +
	"and `checks` with a code, whether it is ok, and words."

// diagnose reads a listener's diagnostics, and returns the codes that are not ok.
func (f *fixture) diagnose(t *testing.T, path string) (d response, wrong []string) {
	t.Helper()
	d = f.call(t, "GET", path+"/diagnostics", nil)
	wantStatus(t, d, http.StatusOK)
	wantShape(t, d, listenerDiagnosticsShape)
	list, _ := d.member("checks").([]any)
	if len(list) != 7 {
		t.Errorf("got checks %v", list)
	}
	for _, c := range list {
		if c := c.(object); c["ok"] != true {
			wrong = append(wrong, c["code"].(string))
		}
	}
	return d, wrong
}

// TestWhyAListenerDoesNotDoItsPart reads the diagnostics before the listener has called, while
// it works, and after it has failed.
func TestWhyAListenerDoesNotDoItsPart(t *testing.T) {
	t.Parallel()
	rule(t, listenerDiagnosed)
	f := setUp(t)
	idle, _ := f.createListener(t, newListener("idle"))
	d, wrong := f.diagnose(t, idle)
	if diff := cmp.Diff([]string{"HAS_CALLED", "IS_ONLINE", "HAS_NAMESPACES"}, wrong); diff != "" || d.member("session") != nil || d.member("last_seen_at") != nil || d.member("online") != false {
		t.Errorf("got %s (-want +got):\n%s", d.text, diff)
	}
	s := f.listenerStage(t)
	d, wrong = f.diagnose(t, s.path)
	if len(wrong) > 0 || d.member("online") != true || d.member("session", "holder") != "a" || d.member("last_seen_at") == nil {
		t.Errorf("got %s", d.text)
	}
	order, _ := d.member("orders").([]any)
	if len(order) != 1 || order[0].(object)["fetched"] != true || order[0].(object)["revision_id"] != s.work["revision_id"] || order[0].(object)["verb"] != "apply" {
		t.Errorf("got orders %v", order)
	}
	wantStatus(t, f.call(t, "POST", s.path+"/report", s.report(1, "failed", "reason", "IMAGE_UNAVAILABLE", "message", "no such image")), http.StatusNoContent)
	d, wrong = f.diagnose(t, s.path)
	failed, _ := d.member("failures").([]any)
	if strings.Join(wrong, " ") != "RELEASES_ARE_HEALTHY" || len(failed) != 1 || failed[0].(object)["reason"] != "IMAGE_UNAVAILABLE" || failed[0].(object)["message"] != "no such image" {
		t.Errorf("got %s", d.text)
	}
	if strings.Contains(string(d.text), "open-sesame") {
		t.Errorf("a secret is shown: %s", d.text)
	}
	s.quiet(t)
	if d, wrong = f.diagnose(t, s.path); strings.Join(wrong, " ") != "IS_ONLINE RELEASES_ARE_HEALTHY" || d.member("session") != nil {
		t.Errorf("got %s", d.text)
	}
}

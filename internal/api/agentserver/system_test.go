package agentserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestOKTellsOfTheDatabase checks each form of the request.
func TestOKTellsOfTheDatabase(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, query := range []string{"", "?check_db=0", "?check_db=1", "?check_db=true"} {
		wantStatus(t, f.call(t, "GET", "/ok"+query, nil), http.StatusOK)
	}
	check.Must(t, f.table.(io.Closer).Close())
	for _, query := range []string{"", "?check_db=1"} {
		wantDetail(t, f.call(t, "GET", "/ok"+query, nil), http.StatusServiceUnavailable, "The database does not answer.")
	}
}

// TestOKTellsWhetherAnAgentServes sends requests without a key, from the creation of a
// deployment to its end.
func TestOKTellsWhetherAnAgentServes(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(http.NotFoundHandler())
	f := setUpAt(t, compute.Endpoint{URL: agent.URL}, 0)
	ok := func() response { return f.send(t, "GET", f.path("/ok"), nil, nil) }
	wantDetail(t, ok(), http.StatusServiceUnavailable, "No revision of the deployment has been deployed yet.")
	revision := f.deploy(t, "agent")
	wantStatus(t, ok(), http.StatusOK)

	f.deployments.Alarm(t.Context(), compute.Ref{Workspace: f.deployment.Workspace, Deployment: f.deployment.Deployment, Revision: revision}, compute.Status{State: compute.Failed})
	wantStatus(t, ok(), http.StatusOK) // the agent answers again
	agent.Close()
	wantDetail(t, ok(), http.StatusServiceUnavailable, "The deployment's agent has ended, and is being started again.")

	check.Must(t, f.deployments.Delete(t.Context(), f.deployment, deployment.Deletion{}))
	missing := "Deployment ID " + f.deployment.Deployment + " not found."
	wantDetail(t, ok(), http.StatusNotFound, missing)
	wantDetail(t, f.call(t, "GET", "/info", nil), http.StatusNotFound, missing)
	for _, id := range []string{unknownID, "x"} {
		for _, path := range []string{"/ok", "/info"} {
			answer := f.send(t, "GET", "/d/"+id+path, nil, map[string]string{auth.HeaderKey: f.key})
			wantDetail(t, answer, http.StatusNotFound, "Deployment ID "+id+" not found.")
		}
	}
}

// TestAnIDInCapitalsNamesTheSameDeployment reads through it what is written
// through the other spelling, and the reverse.
func TestAnIDInCapitalsNamesTheSameDeployment(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	at := "/d/" + strings.ToUpper(f.deployment.Deployment)
	key := map[string]string{auth.HeaderKey: f.key}
	made := f.send(t, "POST", at+"/threads", object{}, key)
	wantStatus(t, made, http.StatusOK)
	wantStatus(t, f.call(t, "GET", "/threads/"+made.string("thread_id"), nil), http.StatusOK)
	for _, path := range []string{"/ok", "/info", "/threads/" + strings.ToUpper(made.string("thread_id"))} {
		wantStatus(t, f.send(t, "GET", at+path, nil, key), http.StatusOK)
	}
	wantStatus(t, f.send(t, "GET", "/d/"+strings.ToUpper(unknownID)+"/info", nil, key), http.StatusNotFound)
}

// TestFiguresAreShownInEachFormat checks that the figures are the deployment's only.
func TestFiguresAreShownInEachFormat(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, query := range []string{"", "?format=prometheus"} {
		if got := f.call(t, "GET", "/metrics"+query, nil); got.StatusCode != http.StatusOK || string(got.text) != "requests_of_"+f.deployment.Deployment+" 1\n" {
			t.Errorf("%q: got %d %s", query, got.StatusCode, got.text)
		}
	}
	shown := f.call(t, "GET", "/metrics?format=json", nil)
	wantStatus(t, shown, http.StatusOK)
	want := object{"requests": []any{object{"labels": object{"deployment": f.deployment.Deployment}, "value": 1.0}}}
	if diff := cmp.Diff(any(want), shown.body); diff != "" {
		t.Errorf("as JSON (-want +got):\n%s", diff)
	}
	wantStatus(t, f.call(t, "GET", "/metrics?format=xml", nil), http.StatusUnprocessableEntity)
}

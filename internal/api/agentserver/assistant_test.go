package agentserver_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// creations are the operations that create a run.
var creations = []string{"/runs", "/runs/wait", "/runs/stream"}

// wantNoRuns checks that nothing was created on a thread.
func wantNoRuns(t *testing.T, f *fixture, thread string) {
	t.Helper()
	wantBody(t, f.call(t, "GET", thread+"/runs", nil), []any{})
}

// TestAnAssistantIsNamedByItsGraphOrById creates runs in both ways, with an id in upper and
// lower case.
func TestAnAssistantIsNamedByItsGraphOrById(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, assistant := range []string{"agent", agentID, strings.ToUpper(agentID)} {
		for _, creation := range creations {
			answer := f.call(t, "POST", thread+creation, with(hi(), "assistant_id", assistant))
			wantStatus(t, answer, http.StatusOK)
			run := f.call(t, "GET", answer.Header.Get("Content-Location"), nil)
			if got := run.string("assistant_id"); got != agentID {
				t.Errorf("%s %s: the assistant is %q", assistant, creation, got)
			}
		}
	}
}

func TestAnUnknownAssistantIsNotFound(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, assistant := range []string{"agents", "Agent", unknownID} {
		for _, creation := range creations {
			answer := f.call(t, "POST", thread+creation, with(hi(), "assistant_id", assistant))
			want := "Assistant " + assistant + " not found."
			if assistant != unknownID {
				want += ` The deployment's graphs are: ["agent" "weather"].`
			}
			wantDetail(t, answer, http.StatusNotFound, want)
		}
	}
	wantNoRuns(t, f, thread)
}

// TestTheGraphsOfAnImageAreKnownToItsAgent has a revision without a list of its graphs: the
// server asks the agent.
func TestTheGraphsOfAnImageAreKnownToItsAgent(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, nil, 0)
	f.deploy(t)
	thread := f.newThread(t)
	for _, assistant := range []string{"agent", agentID} {
		run := f.finish(t, thread, with(hi(), "assistant_id", assistant))
		if got := f.call(t, "GET", run, nil).string("assistant_id"); got != agentID {
			t.Errorf("%s: the assistant is %q", assistant, got)
		}
	}
	wantStatus(t, f.call(t, "POST", thread+"/runs", with(hi(), "assistant_id", "any")), http.StatusNotFound)
}

// TestADeploymentWithoutARevisionIsUnavailableForRuns checks that such a deployment refuses
// runs, but already keeps threads.
func TestADeploymentWithoutARevisionIsUnavailableForRuns(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, nil, 0)
	thread := f.newThread(t)
	for _, creation := range creations {
		answer := f.call(t, "POST", thread+creation, hi())
		wantDetail(t, answer, http.StatusServiceUnavailable, "Deployment ID "+f.deployment.Deployment+" has no deployed revision yet.")
		if got := answer.Header.Get("Retry-After"); got != "2" {
			t.Errorf("%s: Retry-After is %q", creation, got)
		}
	}
	wantNoRuns(t, f, thread)
	if got := f.call(t, "GET", "/info", nil).member("metadata", "revision_id"); got != "" {
		t.Errorf("the revision is %v", got)
	}
	f.deploy(t, "agent")
	f.finish(t, thread, hi())
}

// TestThreadsOfAnotherDeploymentAreNotFound asks another deployment of the same workspace for a
// thread and a run.
func TestThreadsOfAnotherDeploymentAreNotFound(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	run := f.finish(t, f.newThread(t), hi())
	other := deployment.Ref{Workspace: f.deployment.Workspace, Deployment: f.newDeployment(t, "other").Deployment}
	thread, _, _ := strings.Cut(run, "/runs")
	for path, what := range map[string]string{thread: "Thread", thread + "/state": "Thread", thread + "/runs": "Thread", run: "Run", run + "/join": "Run"} {
		answer := f.send(t, "GET", "/d/"+other.Deployment+path, nil, map[string]string{auth.HeaderKey: f.key})
		wantStatus(t, answer, http.StatusNotFound)
		if !strings.HasPrefix(answer.string("detail"), what+" with ID ") {
			t.Errorf("%s: %s", path, answer.text)
		}
	}
}

// TestTheGraphsOfAnImageAreLearned checks that the server learns the graphs from the agent
// when a client searches for assistants. After that, a server that reaches no agents knows
// their ids, too.
func TestTheGraphsOfAnImageAreLearned(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, nil, 0)
	f.deploy(t)
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	nowhere := targetAt(compute.Endpoint{URL: "http://127.0.0.1:1"})
	check.Must(t, agentserver.Register(mux, agentserver.Config{
		Deployments: f.deployments, Assistants: assistant.NewStore(f.table, clock.System), Threads: f.threads, Runs: f.runs, Authenticator: auth.New(f.keys), Version: version,
		Agents: &runner.Agents{Deployments: f.deployments, Graph: graph.NewClient(nil), Target: nowhere},
	}))
	apart := *f
	apart.Server = httptest.NewServer(mux)
	t.Cleanup(apart.Close)
	run := with(hi(), "assistant_id", agentID)
	wantStatus(t, apart.call(t, "POST", f.newThread(t)+"/runs", run), http.StatusServiceUnavailable)
	wantStatus(t, f.call(t, "POST", "/assistants/search", object{}), http.StatusOK)
	wantStatus(t, apart.call(t, "POST", f.newThread(t)+"/runs", run), http.StatusOK)
}

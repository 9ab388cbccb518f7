package controlplane_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAnAgentThatEndsIsTold has a listener report the end of an agent that it runs, long after
// the agent was promoted.
func TestAnAgentThatEndsIsTold(t *testing.T) {
	t.Parallel()
	rule(t, eventsAgent)
	var f *hookedFixture
	f = setUpHooked(t, func(store *deployment.Config, config *controlplane.Config) {
		config.Listeners = listener.NewStore(listener.Config{
			Table: store.Table, Sealer: store.Sealer, Now: clock.System, Log: store.Log,
			Token: func(context.Context, string) (string, error) { return "token", nil },
			Alarm: func(ctx context.Context, ref compute.Ref, status compute.Status) {
				f.deployments.Alarm(ctx, ref, status)
			},
		})
		store.Listeners = config.Listeners
	})
	hook, _ := f.hook(t, object{"event_types": []string{"agent.crashed", "agent.recovered"}})
	path, created := f.createListener(t, newListener("cluster", "agents"))
	at, d := f.create(t, with(fromImage("weather"), "source_config.listener_id", created.id("id")))
	claim := f.call(t, "POST", path+"/claim", object{"holder": "a"})
	work := workOf(t, claim)
	if len(work) == 0 {
		t.Fatal("there is no work")
	}
	s := &listenerStage{fixture: f.fixture, path: path, session: claim.member("session"), work: work[0]}
	report := func(number int, state string, further ...string) {
		t.Helper()
		wantStatus(t, f.call(t, "POST", path+"/report", s.report(number, state, further...)), http.StatusNoContent)
	}
	report(1, "progressing", "message", "the image is being pulled")
	report(2, "healthy", "url", "https://agents.test/a")
	revision := d.id("latest_revision_id")
	if got := f.await(t, at, revision); got != "DEPLOYED" {
		t.Fatalf("the revision is %s", got)
	}
	report(3, "progressing", "reason", "OUT_OF_MEMORY", "message", "its container used more memory than it may. Its last output: loading")
	report(3, "progressing") // the same report twice
	report(4, "healthy", "url", "https://agents.test/a")
	report(5, "failed", "reason", "CRASH_LOOP", "message", "it ends again and again")
	report(6, "healthy", "url", "https://agents.test/a")
	ofAgent := func() (found []response) {
		t.Helper()
		events, _ := f.page(t, at+"/events?limit=100")
		for _, e := range events {
			if e := (response{body: e}); e.id("type") == "agent.crashed" || e.id("type") == "agent.recovered" {
				found = append(found, e)
			}
		}
		return found
	}
	told := ofAgent()
	if len(told) != 1 || told[0].id("type") != "agent.crashed" || told[0].id("data", "revision_id") != revision || told[0].id("data", "status_reason") != "OUT_OF_MEMORY" ||
		told[0].id("data", "status_message") != "its container used more memory than it may. Its last output: loading" || told[0].member("data", "status") != nil {
		t.Fatalf("told %v", told)
	}
	now, err := f.deployments.Get(t.Context(), deployment.Ref{Workspace: f.own.workspace, Deployment: d.id("id")})
	check.Must(t, err)
	check.Must(t, f.deployments.Recovered(t.Context(), now))
	if told = ofAgent(); len(told) != 2 || told[1].id("type") != "agent.recovered" || told[1].id("data", "revision_id") != revision {
		t.Errorf("told %v", told)
	}
	var sent []string
	for _, delivery := range f.delivered(t, hook, 2) {
		sent = append(sent, delivery["event_type"].(string)+" "+delivery["status"].(string))
	}
	if len(sent) != 2 || sent[0] != "agent.recovered succeeded" || sent[1] != "agent.crashed succeeded" {
		t.Errorf("sent %v", sent)
	}
}

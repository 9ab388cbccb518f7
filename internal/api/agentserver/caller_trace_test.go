package agentserver_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// baggage returns values as the header baggage has them.
func baggage(values ...string) string {
	var items []string
	for i := 0; i < len(values); i += 2 {
		items = append(items, publicname.Tracing(values[i])+"="+url.PathEscape(values[i+1]))
	}
	return strings.Join(items, ",")
}

// TestAGraphSeesTheTraceOfItsRun checks that a run is told in which trace its client sees the run,
// in both protocols, unless the configuration file hides this. Values that cannot be read are left
// out.
func TestAGraphSeesTheTraceOfItsRun(t *testing.T) {
	t.Parallel()
	const dotted = "20260301T120000000000Z0197a000-0000-7000-8000-0000000000a1"
	whole := baggage("project", "my project", "tags", "a,b", "metadata", `{"n": {"big": 12345678901234567890}}`)
	for name, c := range map[string]struct {
		baggage string
		hidden  []string
		want    map[string]string
	}{
		"all values": {baggage: whole, want: map[string]string{
			"trace": `"` + dotted + `"`, "project": `"my project"`, "tags": `["a","b"]`, "metadata": `{"n":{"big":12345678901234567890}}`,
		}},
		"with properties": {baggage: " " + baggage("project", "my project") + " ;kept=1; by=another", want: map[string]string{
			"trace": `"` + dotted + `"`, "project": `"my project"`,
		}},
		"of another service": {baggage: "user=1, , " + baggage("other", "1"), want: map[string]string{"trace": `"` + dotted + `"`}},
		"not readable": {
			baggage: baggage("metadata", `{"half": "\ud800"}`, "metadata", `{"open": `, "metadata", `[1]`, "tags", "") + "," + publicname.Tracing("project") + "=%zz",
			want:    map[string]string{"trace": `"` + dotted + `"`},
		},
		"without the baggage": {baggage: whole, hidden: []string{"bag*"}, want: map[string]string{"trace": `"` + dotted + `"`}},
		"hidden":              {baggage: whole, hidden: []string{"baggage", "*-trace"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var agent heard
			f := setUpUndeployed(t, agent.answer, 0)
			f.settings = build.Settings{HTTP: &build.HTTP{Exclude: c.hidden}}
			f.deploy(t, "agent")
			thread := f.newThread(t)
			headers := map[string]string{auth.HeaderKey: f.key, publicname.Tracing("trace"): dotted, "Baggage": c.baggage}
			var want map[string]json.RawMessage
			for value, text := range c.want {
				if want == nil {
					want = map[string]json.RawMessage{}
				}
				want[publicname.Tracing(value)] = json.RawMessage(text)
			}
			wantStatus(t, f.send(t, "POST", f.path(thread+"/runs/wait"), hi(), headers), http.StatusOK)
			if diff := cmp.Diff(want, agent.invocation().Trace); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
			started := f.send(t, "POST", f.path(thread+"/commands"), object{"id": 1, "method": "run.start", "params": hi()}, headers)
			wantStatus(t, f.call(t, "GET", thread+"/runs/"+started.string("result", "run_id")+"/join", nil), http.StatusOK)
			asked := agent.invocation()
			if diff := cmp.Diff(want, asked.Trace); diff != "" || asked.RunID != started.string("result", "run_id") {
				t.Errorf("trace of run %s (-want +got):\n%s", asked.RunID, diff)
			}
		})
	}
}

// TestARunIsTracedWhereItsClientSays checks that the agent is told a run's project and example, in
// both protocols and both spellings, and that values of another shape are refused.
func TestARunIsTracedWhereItsClientSays(t *testing.T) {
	t.Parallel()
	const example = "0197a000-0000-7000-8000-0000000000e1"
	var agent heard
	f := setUpAt(t, graphtest.Start(t, agent.answer), 0)
	f.deploy(t, "agent")
	thread, tracer := f.newThread(t), object{"project_name": "p", "example_id": example}
	for _, name := range []string{publicname.MemberTracer(), "framework_tracer"} {
		wantStatus(t, f.call(t, "POST", thread+"/runs/wait", with(hi(), name, tracer)), http.StatusOK)
		if diff := cmp.Diff(`{"example_id":"`+example+`","project_name":"p"}`, string(agent.invocation().Tracer)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		wantStatus(t, f.call(t, "POST", thread+"/runs", with(hi(), name, object{"example_id": "1"})), http.StatusUnprocessableEntity)
		wantStatus(t, f.call(t, "POST", thread+"/runs/wait", with(hi(), name, nil)), http.StatusOK)
		if got := agent.invocation().Tracer; got != nil {
			t.Errorf("without a tracer the agent gets %s", got)
		}
	}
	started := f.does(t, thread, "run.start", with(hi(), publicname.MemberTracer(), object{"project_name": "q"}))
	wantStatus(t, f.call(t, "GET", thread+"/runs/"+started.string("result", "run_id")+"/join", nil), http.StatusOK)
	if got := string(agent.invocation().Tracer); got != `{"project_name":"q"}` {
		t.Errorf("by a command: %s", got)
	}
	refused := f.command(t, thread, "run.start", with(hi(), publicname.MemberTracer(), object{"project_name": 1}))
	if got := refused.string("error"); got != "invalid_argument" {
		t.Errorf("a command with another shape is answered with %s", refused.text)
	}
}

//go:build cost

package cost_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// row is one line of the report.
type row struct {
	name string
	// of is the document that has the operation.
	of *document
	trace
	// per divides the units, to give them for one minute or one thread. 0 means 1.
	per float64
	// varies says that the units are not the same each time.
	varies bool
}

// measured holds everything that the report says.
type measured struct {
	// operations have the names of the interface documents. They do not include the
	// authorizer's call and the start of a function's process.
	operations []row
	// others are activities beside the operations.
	others []row
	// run and stream are parts of a run of 10 s: the run's own consumption, and the additional
	// consumption of its reader.
	run, stream trace
	// large is a similar run, with an input of 6 KB.
	large trace
}

// tenSeconds are the settings of a run of about 10 s that streams 200 tokens.
var tenSeconds = body{"token_delay_ms": 44, "answer_words": 200, "node_delay_ms": 400}

// isCaller selects the charges of the authorizer, isStart those of a function's first call.
func isCaller(c charge) bool { return strings.Contains(c.what, "API key") }
func isStart(c charge) bool  { return c.what == "Query data key" }
func isWork(c charge) bool   { return !isCaller(c) && !isStart(c) }

// split cuts a trace behind the request whose text contains what, which is the last request of
// an operation. The requests after it belong to the workflow that the operation starts.
func (s *stack) split(t trace, what string) (operation, workflow trace) {
	s.t.Helper()
	at := slices.IndexFunc(t, func(c charge) bool { return strings.Contains(c.what, what) })
	if at < 0 {
		s.t.Fatalf("nothing does %q: %+v", what, t)
	}
	return t[:at+1], t[at+1:]
}

func measure(t *testing.T) measured {
	t.Helper()
	s, started := serve(t)
	m := &measured{}
	m.other("a pass of reconcile that finds nothing, each minute", started.only(func(c charge) bool {
		return slices.ContainsFunc([]string{"leases", "rollouts", "body claim"}, func(kind string) bool { return strings.HasSuffix(c.what, kind) })
	}))
	m.deploy(s)
	m.runs(s)
	m.drive(s, agentServer, agentSteps...)
	m.interrupt(s)
	m.patch(s)
	m.idle(s)
	m.drive(s, controlPlane, tenancySteps...)
	m.drive(s, controlPlane, webhookSteps...)
	m.drive(s, controlPlane, authSteps...)
	m.teardown(s)
	m.drive(s, controlPlane, hubSteps...)
	m.drive(s, controlPlane, uploadSteps...)
	m.drive(s, controlPlane, listenerSteps...)
	return *m
}

func (m *measured) operation(of *document, name string, t trace) {
	m.operations = append(m.operations, row{of: of, name: name, trace: t.only(isWork)})
}

// byDocument returns the names of the measured operations, by the title of their document.
func (m *measured) byDocument() map[string][]string {
	names := map[string][]string{}
	for _, o := range m.operations {
		names[o.of.title] = append(names[o.of.title], o.name)
	}
	return names
}

func (m *measured) other(name string, t trace) {
	m.others = append(m.others, row{name: name, trace: t})
}

// about adds a measurement that varies.
func (m *measured) about(name string, t trace, per float64) {
	m.others = append(m.others, row{name: name, trace: t, per: per, varies: true})
}

func (m *measured) deploy(s *stack) {
	s.call("GET", "/v2/deployments", nil, nil)
	first := s.settle()
	m.other("an authorizer call, for a key that was used within the minute", first.only(func(c charge) bool { return c.what == "GetItem API key" }))
	m.other("an authorizer call, for one that was not: its use is noted", first.only(isCaller))
	m.other("the first call of a function's process, if it needs the data key", first.only(isStart))
	deployment, revision := s.create(s.creation("cost"))
	s.deployment = deployment
	s.kept["workspace_id"], s.kept["deployment_id"], s.kept["revision_id"] = s.TenantID, s.deployment, revision
	s.awaitDeployed(s.deployment, revision)
	operation, rollout := s.split(s.settle(), "put deployment")
	m.operation(controlPlane, "CreateDeployment", operation)
	m.about("a first rollout, from there to DEPLOYED", rollout.only(isWork), 1)
	m.drive(s, controlPlane, deploymentSteps...)
}

// create creates a deployment. From then on, the agent server's addresses belong to it.
func (s *stack) create(request body) (id, revision string) {
	s.t.Helper()
	var created struct {
		ID       string `json:"id"`
		Revision string `json:"latest_revision_id"`
		Source   struct {
			URL string `json:"custom_url"`
		} `json:"source_config"`
	}
	s.call("POST", "/v2/deployments", request, &created)
	s.url = created.Source.URL
	return created.ID, created.Revision
}

func (s *stack) awaitDeployed(deployment, revision string) {
	s.t.Helper()
	s.until("the revision is deployed", func() bool {
		return s.text(keys.Revision(s.TenantID, deployment, revision), "status") == "DEPLOYED"
	})
}

// text reads an attribute from the table. It returns "" when there is no such item.
func (s *stack) text(key table.Key, attribute string) string {
	s.t.Helper()
	item, err := s.table.Get(s.t.Context(), key)
	if errors.Is(err, table.ErrNotFound) {
		return ""
	}
	check.Must(s.t, err)
	return item.Text(attribute)
}

// start creates a run in the background.
func (s *stack) start(thread string, request body) string {
	s.t.Helper()
	var created struct {
		ID string `json:"run_id"`
	}
	s.call("POST", "threads/"+thread+"/runs", request, &created)
	return created.ID
}

// await waits until a run has succeeded.
func (s *stack) await(thread, run string) {
	s.t.Helper()
	key := keys.Run(s.TenantID, s.deployment, thread, run)
	s.until("the run is over", func() bool { return !slices.Contains([]string{"", "pending", "running"}, s.text(key, "status")) })
	if status := s.text(key, "status"); status != "success" {
		s.t.Fatalf("the run is %s: %s", status, s.text(key, "failure"))
	}
}

func (m *measured) runs(s *stack) {
	thread := s.thread()
	s.settle()
	run := s.start(thread, ask(tenSeconds))
	s.await(thread, run)
	m.run = s.settle().only(isWork)
	operation, _ := s.split(m.run, "put run")
	m.operation(agentServer, "CreateRun", operation)
	large := s.thread()
	s.settle()
	request := ask(tenSeconds)
	request["input"] = body{"messages": []body{{"role": "user", "content": "what's the weather in sf?" + strings.Repeat(" ", 6<<10)}}}
	s.await(large, s.start(large, request))
	m.large = s.settle().only(isWork)
	s.kept["thread_id"], s.kept["run_id"] = thread, run
	m.drive(s, agentServer, runSteps...)
	for name, address := range map[string]string{"CreateRunStream": "/runs/stream", "CreateRunWait": "/runs/wait"} {
		thread := s.thread()
		s.settle()
		answer := s.open("POST", "threads/"+thread+address, ask(tenSeconds))
		_, err := io.Copy(io.Discard, answer.Body)
		check.Must(s.t, err)
		check.Must(s.t, answer.Body.Close())
		whole := s.settle().only(isWork)
		operation, _ := s.split(whole, "put run")
		m.operation(agentServer, name, operation)
		if name == "CreateRunStream" {
			m.stream = whole
		}
	}
}

// interrupt compares a run that interrupts another with one that follows another.
func (m *measured) interrupt(s *stack) {
	thread := s.thread()
	s.await(thread, s.start(thread, ask(fast)))
	s.settle()
	s.await(thread, s.start(thread, ask(fast)))
	m.about("a run that answers at once", s.settle().only(isWork), 1)
	thread = s.thread()
	slow := s.start(thread, ask(body{"token_delay_ms": 8000, "answer_words": 10, "node_delay_ms": 0}))
	s.until("the first token is shown", func() bool {
		item, err := s.table.Get(s.t.Context(), keys.Run(s.TenantID, s.deployment, thread, slow))
		return err == nil && item.Int("checkpoint") >= 2 && strings.Contains(item.Text("unfinished"), "{")
	})
	s.meter.take()
	s.await(thread, s.start(thread, ask(fast).interrupting()))
	m.about("the same, when it interrupts another", s.settle().only(isWork), 1)
}

func (m *measured) patch(s *stack) {
	s.settle()
	var changed struct {
		Revision string `json:"latest_revision_id"`
	}
	s.call("PATCH", s.path(), body{"source_revision_config": body{"repo_ref": "refs/tags/next"}}, &changed)
	s.awaitDeployed(s.deployment, changed.Revision)
	operation, rollout := s.split(s.settle(), "put revision")
	m.operation(controlPlane, "PatchDeployment", operation)
	m.about("a later rollout, which stops the release before", rollout.only(isWork), 1)
}

// idle measures a run whose agent sends nothing, with and without a reader.
func (m *measured) idle(s *stack) {
	const while = 30 * time.Second
	thread := s.thread()
	run := s.start(thread, ask(body{"token_delay_ms": 600_000, "answer_words": 2, "node_delay_ms": 0}))
	pass := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		<-timer.C
	}
	pass(5 * time.Second)
	s.meter.take()
	pass(while)
	alone := s.meter.take().only(isWork)
	m.about("a minute of a run whose agent says nothing", alone, while.Minutes())
	answer := s.open("GET", "threads/"+thread+"/runs/"+run+"/stream", nil)
	pass(5 * time.Second)
	s.meter.take()
	pass(while)
	watched := s.meter.take().only(isWork)
	check.Must(s.t, answer.Body.Close())
	reader := units{read: watched.units().read - alone.units().read}
	m.about("a minute of a stream that has nothing to tell", trace{{what: "poll", units: reader}}, while.Minutes())
	s.await(thread, s.start(thread, ask(fast).interrupting()))
}

func (m *measured) teardown(s *stack) {
	s.settle()
	s.meter.deletes.Store(0)
	s.call("DELETE", s.path(), nil, nil)
	s.until("the deployment is gone", func() bool { return s.text(keys.Deployment(s.TenantID, s.deployment), "status") == "" })
	operation, teardown := s.split(s.settle(), "update deployment")
	m.operation(controlPlane, "DeleteDeployment", operation)
	m.other("a teardown, without threads", teardown.only(func(c charge) bool { return isWork(c) && !isErasure(c) }))
	erasure := teardown.only(isErasure)
	const ofDeployment = 5 // the deployment, its name, its project, two revisions
	erased := s.meter.deletes.Load() - ofDeployment
	m.about("a teardown, for each item of a thread", erasure, float64(erased))
}

// isErasure selects the charges for erasing threads.
func isErasure(c charge) bool {
	return !strings.Contains(c.what, "deployment") && !strings.Contains(c.what, "revision")
}

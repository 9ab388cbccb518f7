//go:build cost

package cost_test

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
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
	// authorizer's call, the start of a function's process and the places of connections.
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

// isPlace selects the charges of the place that a waiting connection has in the quotas of streams.
func isPlace(c charge) bool { return strings.Contains(c.what, "'s streams") }

// places are the operations at which the places of connections are measured.
var places = map[string]string{
	"JoinRun":     "the place of a connection that waits for a thread, with twice its writes for each minute that it waits",
	"WaitForAuth": "the place of a connection that waits for anything else, with twice its writes for each minute that it waits",
}

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

// stacks are the parts of the measurement. Each has a stack of its own, and they are measured at
// the same time, because each waits most of the time.
var stacks = []struct {
	name    string
	measure func(m *measured, s *stack)
}{
	{"agents", (*measured).agents},
	{"readers", (*measured).readers},
	{"resources", (*measured).resources},
}

func measure(t *testing.T) measured {
	t.Helper()
	makeRepository(t)
	found := make([]measured, len(stacks))
	t.Run("stacks", func(t *testing.T) {
		for i, part := range stacks {
			t.Run(part.name, func(t *testing.T) {
				t.Parallel()
				part.measure(&found[i], serve(t, part.name))
			})
		}
	})
	var all measured
	for _, m := range found {
		all.operations, all.others = append(all.operations, m.operations...), append(all.others, m.others...)
		all.run, all.stream, all.large = append(all.run, m.run...), append(all.stream, m.stream...), append(all.large, m.large...)
	}
	for i, o := range all.operations {
		if place := places[o.name]; place != "" {
			all.other(place, o.only(isPlace))
		}
		all.operations[i].trace = o.only(func(c charge) bool { return !isPlace(c) })
	}
	return all
}

// agents measures a deployment, and the operations of its agent server.
func (m *measured) agents(s *stack) {
	kinds := []string{"leases", "rollouts", "body claim", "due clients", "due threads", "due crons", "due deliveries", "due listeners"}
	m.other("a pass of reconcile that finds nothing, each minute", s.settle().only(func(c charge) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasSuffix(c.what, kind) })
	}))
	m.deploy(s)
	m.runs(s)
	m.drive(s, agentServer, agentSteps...)
	m.interrupt(s)
	m.visits(s)
	m.patch(s)
	m.teardown(s)
}

// readers measures runs that have readers.
func (m *measured) readers(s *stack) {
	deployment, revision := s.create(s.creation("read"))
	s.deployment = deployment
	s.awaitDeployed(deployment, revision)
	s.warmUp()
	m.streams(s)
	m.idle(s)
}

// resources measures the operations of the control plane that are about more than a deployment.
func (m *measured) resources(s *stack) {
	m.drive(s, controlPlane, hubSteps...)
	m.drive(s, controlPlane, tenancySteps...)
	m.drive(s, controlPlane, webhookSteps...)
	m.drive(s, controlPlane, authSteps...)
	m.drive(s, controlPlane, uploadSteps...)
	m.drive(s, controlPlane, listenerSteps...)
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

// written returns how many units were written to the table and its indexes.
func (t trace) written() float64 { return t.units().write + t.units().index }

func (m *measured) deploy(s *stack) {
	s.call("GET", "/v2/deployments", nil, nil)
	first := s.settle()
	m.other("an authorizer call, for a key that was used within the minute", first.only(func(c charge) bool { return c.what == "GetItem API key" }))
	m.other("an authorizer call, for one that was not: its use is noted", first.only(isCaller))
	m.others = append(m.others, row{ // the authorizer and the function deployments were started
		name: "the start of a function's process, if it needs the data key", trace: first.only(isStart), per: 2,
	})
	deployment, revision := s.create(s.creation("cost"))
	s.deployment = deployment
	s.kept["deployment_id"], s.kept["revision_id"] = s.deployment, revision
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

// warmUp makes every part of the workspace's counts, as a workspace has them after its first
// threads. The part of a thread depends on its random id, and the first thread of a part costs a
// second transaction, which the lines of operations would otherwise contain by chance. A first run
// lets the process of the runner read what it remembers of the release.
func (s *stack) warmUp() {
	s.t.Helper()
	for part := 1; part <= keys.UseParts; {
		thread := id.New(time.Now())
		if keys.UsePart(thread) == part {
			s.call("POST", "threads", body{"thread_id": thread}, nil)
			s.call("DELETE", "threads/"+thread, nil, nil)
			part++
		}
	}
	thread := s.thread()
	s.await(thread, s.start(thread, ask(fast)))
}

func (m *measured) runs(s *stack) {
	s.warmUp()
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
}

// mostWritten is how many write units a run of 10 s that streams 200 tokens may take together with
// its stream, in the table and its indexes, without the creation of its thread. The aim is 100,
// which a quiet machine measures. On a busy machine a run takes longer, and is flushed more often.
const mostWritten = 110

// streams measures runs that one client reads from their creation to their end. One of three runs
// has to keep to mostWritten.
func (m *measured) streams(s *stack) {
	m.stream = m.read(s, "CreateRunStream", "/runs/stream", tenSeconds)
	for tries := 1; m.stream.written() > mostWritten; tries++ {
		if tries == 3 {
			s.t.Errorf("a run of 10 s and its stream write %g units, want at most %d", m.stream.written(), mostWritten)
			break
		}
		m.stream = new(measured).read(s, "CreateRunStream", "/runs/stream", tenSeconds)
	}
	m.read(s, "CreateRunWait", "/runs/wait", fast)
}

// read measures an operation that creates a run and answers until the run's end. It returns the
// consumption of the whole.
func (m *measured) read(s *stack, operation, address string, settings body) trace {
	thread := s.thread()
	s.settle()
	answer := s.open("POST", "threads/"+thread+address, ask(settings))
	_, err := io.Copy(io.Discard, answer.Body)
	check.Must(s.t, err)
	check.Must(s.t, answer.Body.Close())
	whole := s.settle().only(isWork)
	creation, _ := s.split(whole, "put run")
	m.operation(agentServer, operation, creation)
	return whole
}

// interrupt compares a run that interrupts another with one that follows another.
func (m *measured) interrupt(s *stack) {
	plain := typical(func() trace {
		thread := s.thread()
		s.settle()
		s.await(thread, s.start(thread, ask(fast)))
		return s.settle().only(isWork)
	})
	m.about("a run that answers at once", plain, 1)
	m.other("of these, reads of the deployment and its revision", plain.only(func(c charge) bool {
		return c.what == "GetItem deployment" || c.what == "GetItem revision"
	}))
	told := typical(func() trace { return m.told(s) }).units().plus(plain.units().times(-1))
	m.about("what its message to a webhook adds, if it arrives at once", trace{{units: told}}, 1)
	thread := s.thread()
	slow := s.start(thread, ask(body{"token_delay_ms": 8000, "answer_words": 10, "node_delay_ms": 0}))
	s.until("the first token is shown", func() bool {
		item, err := s.table.Get(s.t.Context(), keys.Run(s.TenantID, s.deployment, thread, slow))
		return err == nil && item.Int("checkpoint") >= 2 && strings.Contains(item.Text("unfinished"), "{")
	})
	s.meter.take()
	s.await(thread, s.start(thread, ask(fast).interrupting()))
	m.about("a run that answers at once, and interrupts another", s.settle().only(isWork), 1)
}

// typical measures five times and returns the middle one by its writes, for lines that are compared
// with each other. A busy machine stores the events of a run in several parts, which costs more, or
// less when each part is small enough to need no item beside its own.
func typical(measure func() trace) trace {
	var all []trace
	for range 5 {
		all = append(all, measure())
	}
	slices.SortFunc(all, func(a, b trace) int { return cmp.Compare(a.units().write, b.units().write) })
	return all[len(all)/2]
}

// told measures a run that tells a webhook of its end. Its thread is new, as the message has the
// thread's values, which grow with each run.
func (m *measured) told(s *stack) trace {
	thread := s.thread()
	s.settle()
	var messages atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { messages.Add(1) }))
	defer receiver.Close()
	request := ask(fast)
	request["webhook"] = receiver.URL
	s.await(thread, s.start(thread, request))
	s.until("the message has come, and its delivery has ended", func() bool { return messages.Load() > 0 && s.delivered() })
	consumed := s.settle().only(isWork)
	if messages.Load() != 1 {
		s.t.Errorf("%d messages came", messages.Load())
	}
	return consumed
}

// delivered reports whether no message to a webhook is under way.
func (s *stack) delivered() bool {
	for _, query := range keys.DueDeliveries.Until(time.Now().AddDate(1, 0, 0)) {
		page, err := s.table.Query(s.t.Context(), query)
		check.Must(s.t, err)
		if len(page.Items) > 0 {
			return false
		}
	}
	return true
}

// visits measures a request to a repository's own application, without a key. The example has no
// application: the deployment's item says that it has, and the agent answers that it has no such
// page. The first visit starts processes, which remember for a minute that the deployment is open.
func (m *measured) visits(s *stack) {
	settings := record.Encode(build.Settings{HTTP: &build.HTTP{App: "./app.go:app"}})
	check.Must(s.t, s.table.Transact(s.t.Context(), table.Update{Key: keys.Deployment(s.TenantID, s.deployment), Set: table.Attrs{"settings": string(settings)}}))
	var visit trace
	for range 2 {
		s.settle()
		answer, err := http.Get(s.url + "/page")
		check.Must(s.t, err)
		check.Must(s.t, answer.Body.Close())
		if answer.StatusCode != http.StatusNotFound || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
			s.t.Errorf("the agent has not answered a visit, but: %s %v", answer.Status, answer.Header)
		}
		visit = s.settle()
	}
	m.other("a visit: a request without a key to an own application (`http.app`), with the two places of its connection", visit)
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

// idle measures a run whose agent sends nothing, with and without a reader: the run from one
// renewal of its lease to the next, because it writes nothing else.
func (m *measured) idle(s *stack) {
	thread := s.thread()
	run := s.start(thread, ask(body{"token_delay_ms": 600_000, "answer_words": 2, "node_delay_ms": 0}))
	pass := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		<-timer.C
	}
	pass(5 * time.Second)
	s.meter.take()
	renewed := func() trace {
		s.until("the lease is renewed", func() bool { return s.meter.has("UpdateItem run") })
		return s.meter.take().only(isWork)
	}
	renewed()
	begun := time.Now()
	alone := renewed()
	minutes := time.Since(begun).Minutes()
	m.about("a minute of a run whose agent says nothing", alone, minutes)
	answer := s.open("GET", "threads/"+thread+"/runs/"+run+"/stream", nil)
	pass(5 * time.Second)
	s.meter.take()
	const while = 15 * time.Second
	pass(while)
	watched := s.meter.take().only(func(c charge) bool { return isWork(c) && !isPlace(c) })
	check.Must(s.t, answer.Body.Close())
	reader := units{read: watched.units().read/while.Minutes() - alone.units().read/minutes}
	m.about("a minute of a stream that has nothing to tell", trace{{what: "poll", units: reader}}, 1)
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

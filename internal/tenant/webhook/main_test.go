package webhook_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) {
	if os.Getenv(deadlyFile) != "" {
		log.Fatal(deadlyServer())
	}
	goleak.VerifyTestMain(m)
}

const workspace = "0197a000-0000-7000-8000-000000000001"

// fixture is a store on a SQLite file, an engine that remembers what is started, a receiver, and a
// clock that the test moves.
type fixture struct {
	*testing.T
	*webhook.Store

	config   webhook.Config
	table    table.Table
	engine   *engine
	receiver *receiver
	clock    *fixtures.Clock
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	key := fixtures.Key(t)
	tb := fixtures.DomainTable(t, clock.System)
	f := &fixture{T: t, table: tb, engine: &engine{known: map[string]workflow.Status{}}, receiver: newReceiver(t), clock: fixtures.NewClockAt(clock.System(), time.Microsecond)}
	f.config = webhook.Config{
		Table: tb, Workflow: f.engine, Sealer: key, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler), Private: outbound.Everywhere,
	}
	f.Store = webhook.NewStore(f.config)
	return f
}

// moveTo moves the clock, never back.
func (f *fixture) moveTo(at time.Time) {
	if at.After(f.clock.Now()) {
		f.clock.Set(at)
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	check.Must(f.T, err)
}

// create creates a webhook at the receiver.
func (f *fixture) create(types ...event.Type) (webhook.Webhook, string) {
	f.Helper()
	made, err := f.Create(f.Context(), webhook.NewWebhook{Workspace: workspace, URL: f.receiver.URL, Types: types})
	f.must(err)
	return made.Webhook, made.Secret
}

// tell writes an event as package deployment does, and begins to send it.
func (f *fixture) tell(status string) event.Event {
	f.Helper()
	events := event.Chain("", f.clock.Now(), []event.Event{{
		Workspace: workspace, Deployment: "0197a000-0000-7000-8000-0000000000d1", Name: "weather", Type: event.OfStatus(status), Status: status,
		Revision: "0197a000-0000-7000-8000-0000000000e1",
	}})
	o, err := f.Notify(f.Context(), workspace, events)
	f.must(err)
	o.Add(events[0].Write())
	f.must(record.Commit(f.Context(), f.table, o))
	return events[0]
}

// deliveries are a webhook's, newest first.
func (f *fixture) deliveries(ref webhook.Ref) []webhook.Delivery {
	f.Helper()
	page, err := f.Deliveries(f.Context(), ref, record.Window{Limit: 100})
	f.must(err)
	return page.Items
}

// attempt calls the task with the input of an execution, and returns the time until which the
// machine waits; zero when it is done.
func (f *fixture) attempt(input json.RawMessage) time.Time {
	f.Helper()
	output, err := f.Task(f.Context(), input)
	f.must(err)
	var answer struct{ Next, Due string }
	f.must(json.Unmarshal(output, &answer))
	if answer.Next == "Done" {
		return time.Time{}
	}
	due, err := clock.Parse(answer.Due)
	f.must(err)
	return due
}

// drive performs an execution as its machine does, and returns how long it waited before each
// attempt except the first.
func (f *fixture) drive(input json.RawMessage) (pauses []time.Duration) {
	f.Helper()
	for due := f.attempt(input); !due.IsZero(); due = f.attempt(input) {
		pause := due.Sub(f.clock.Now())
		if pause > 6*time.Minute {
			f.Errorf("an execution stays open for %v", pause)
		}
		pauses = append(pauses, pause)
		f.moveTo(due)
	}
	return pauses
}

// deliver drives a delivery's execution, and then the executions that Rescue starts when the
// delivery is due, until the delivery has ended. It returns the pauses between all attempts and
// the number of executions. No execution is open in a pause that is longer than 6 min.
func (f *fixture) deliver(ref webhook.Ref, input json.RawMessage) (pauses []time.Duration, executions int) {
	f.Helper()
	for {
		executions++
		pauses = append(pauses, f.drive(input)...)
		d := f.deliveries(ref)[0]
		f.engine.end()
		if d.Status != webhook.Pending {
			return pauses, executions
		}
		pauses = append(pauses, d.Due.Sub(f.clock.Now()))
		f.must(f.Rescue(f.Context(), d.Due))
		if early := f.engine.take(); len(early) != 0 {
			f.Fatalf("before its time it started %s", early)
		}
		f.moveTo(d.Due.Add(3 * time.Minute))
		for range 2 { // the second pass finds nothing to do
			f.must(f.Rescue(f.Context(), f.clock.Now()))
		}
		started := f.engine.take()
		if len(started) != 1 {
			f.Fatalf("when the attempt was due it started %s", started)
		}
		input = started[0]
	}
}

// engine is a workflow.Engine that starts nothing and remembers the requested executions.
type engine struct {
	mu      sync.Mutex
	names   []string
	inputs  []json.RawMessage
	known   map[string]workflow.Status
	refuses error
}

func (e *engine) Start(ctx context.Context, machine workflow.Machine, name string, input json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := cmp.Or(e.refuses, ctx.Err()); err != nil {
		return err
	}
	if _, known := e.known[name]; !known && machine == workflow.Webhook {
		e.names, e.inputs, e.known[name] = append(e.names, name), append(e.inputs, input), workflow.Running
	}
	return nil
}

func (e *engine) Stop(context.Context, workflow.Machine, string, string) error {
	return workflow.ErrNotFound
}

func (e *engine) Describe(_ context.Context, _ workflow.Machine, name string) (workflow.Execution, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	status, known := e.known[name]
	if !known {
		return workflow.Execution{}, workflow.ErrNotFound
	}
	return workflow.Execution{Status: status}, nil
}

// end ends the executions that run.
func (e *engine) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.known {
		e.known[name] = workflow.Succeeded
	}
}

// take returns the inputs of the executions that were started since the last call.
func (e *engine) take() []json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	inputs := e.inputs
	e.inputs = nil
	return inputs
}

// received is a request that a receiver got.
type received struct {
	header http.Header
	body   []byte
	path   string
}

// receiver is the server of a webhook's address: it answers with the statuses that the test
// sets, or else with 204, and keeps the requests that it got.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	answers []int
	got     []received
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, received{request.Header, body, request.URL.Path})
	status := http.StatusNoContent
	if len(r.answers) > 0 {
		status, r.answers = r.answers[0], r.answers[1:]
	}
	if status == http.StatusFound {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(status)
}

// answer sets the statuses of the next answers.
func (r *receiver) answer(statuses ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = statuses
}

// all returns the requests that came since the last call.
func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// verify checks a request's signature with the library of Standard Webhooks, as receivers do.
func verify(t *testing.T, secret string, r received) error {
	t.Helper()
	key, err := standardwebhooks.NewWebhook(secret)
	check.Must(t, err)
	return key.VerifyIgnoringTimestamp(r.body, r.header) // the test sets the clock
}

package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// noEngine starts no workflows: the tests are the workers.
type noEngine struct{ workflow.Engine }

func (noEngine) Start(context.Context, workflow.Machine, string, json.RawMessage) error { return nil }

func (noEngine) Stop(context.Context, workflow.Machine, string, string) error { return nil }

// fixture is a thread on a table of its own.
type fixture struct {
	*testing.T
	threads *thread.Store
	runs    *run.Store
	ref     thread.Ref
	clock   fixtures.RunningClock
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, fixtures.DomainTable(t, clock.System))
}

func newFixtureOn(t *testing.T, tb table.Table) *fixture {
	t.Helper()
	f := &fixture{T: t}
	f.threads = thread.NewStore(tb, f.clock.Now, quota.Limits{}, slog.Default())
	f.runs = run.NewStore(run.Config{Table: tb, Threads: f.threads, Workflow: noEngine{}, Now: f.clock.Now})
	f.ref = thread.Ref{Workspace: "w", Deployment: "d", Thread: id.New(clock.System())}
	f.makeThread()
	return f
}

func (f *fixture) makeThread() {
	f.Helper()
	_, err := f.threads.Create(f.Context(), f.ref, nil, nil, false)
	f.must(err)
}

func (f *fixture) must(err error) {
	f.Helper()
	check.Must(f.T, err)
}

// create makes a run. Without a strategy the run waits behind the earlier runs.
func (f *fixture) create(request run.Request) run.Run {
	f.Helper()
	request.Graph = "agent"
	if request.Strategy == "" {
		request.Strategy = run.Enqueue
	}
	made, err := f.runs.Create(f.Context(), f.ref, request)
	f.must(err)
	return made
}

func (f *fixture) claim(r run.Run) *run.Attempt {
	f.Helper()
	a, err := f.runs.Claim(f.Context(), r.Ref, 0)
	f.must(err)
	return a
}

// step is an event of an agent.
type step struct{ name, data string }

// shows makes events of a run durable.
func (f *fixture) shows(a *run.Attempt, steps ...step) {
	f.Helper()
	for _, s := range steps {
		switch s.name {
		case run.EventUpdates:
			f.must(a.Update(s.name, json.RawMessage(s.data)))
		case "ask":
			var questions []json.RawMessage
			f.must(json.Unmarshal([]byte(s.data), &questions))
			a.ShowQuestions(questions)
		default:
			a.Show(s.name, json.RawMessage(s.data))
		}
	}
	f.must(a.Flush(f.Context()))
}

func (f *fixture) finish(a *run.Attempt, outcome run.Outcome) {
	f.Helper()
	if outcome.Status == "" {
		outcome.Status = run.Success
	}
	f.must(a.Finish(f.Context(), outcome))
}

// does creates a run that shows events and succeeds.
func (f *fixture) does(request run.Request, steps ...step) run.Run {
	f.Helper()
	a := f.claim(f.create(request))
	f.shows(a, steps...)
	f.finish(a, run.Outcome{})
	return a.Run
}

// asks creates a run that pauses with questions.
func (f *fixture) asks(ids ...string) run.Run {
	f.Helper()
	a := f.claim(f.create(run.Request{}))
	asked := map[string]any{}
	for _, question := range ids {
		asked["task "+question] = []any{map[string]string{"id": question, "value": "May I?"}}
	}
	text, err := json.Marshal(asked)
	f.must(err)
	f.finish(a, run.Outcome{Interrupts: text})
	return a.Run
}

// everything returns the filter of a reader of all channels.
func everything() protocol.Filter { return protocol.Filter{Channels: protocol.Channels} }

// reader reads events in the background.
type reader struct {
	*fixture
	events chan protocol.Event
	stop   context.CancelFunc
}

func (f *fixture) reads(filter protocol.Filter, since *int64) *reader {
	f.Helper()
	ctx, stop := context.WithCancel(f.Context())
	r := &reader{fixture: f, events: make(chan protocol.Event, 10_000), stop: stop}
	done := make(chan error, 1)
	opened, err := protocol.Open(ctx, f.runs, f.ref, filter, since)
	f.must(err)
	go func() {
		done <- opened.Read(ctx, func(events []protocol.Event, _ int64) error {
			for _, e := range events {
				r.events <- e
			}
			return nil
		})
	}()
	f.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			f.Errorf("the reader ended with %v", err)
		}
	})
	return r
}

// ends are the names of the lifecycle events with which a run ends.
var ends = []string{"completed", "failed", "interrupted"}

// root returns the lifecycle event of a run itself, "" for any other event.
func root(e protocol.Event) string {
	var said struct{ Event string }
	if e.Method != protocol.MethodLifecycle || len(e.Namespace) > 0 || json.Unmarshal(e.Data, &said) != nil {
		return ""
	}
	return said.Event
}

// next reads events until the number of runs have ended.
func (r *reader) next(runs int) []protocol.Event {
	r.Helper()
	var all []protocol.Event
	patience := time.After(time.Minute)
	for runs > 0 {
		select {
		case e := <-r.events:
			all = append(all, e)
			if slices.Contains(ends, root(e)) {
				runs--
			}
		case <-patience:
			r.Fatalf("the reader waits for %d more ends behind %q", runs, lines(all))
		}
	}
	return all
}

// read reads the events that a filter wants until the number of runs have ended.
func (f *fixture) read(filter protocol.Filter, since *int64, runs int) []protocol.Event {
	f.Helper()
	filter.Channels = append(slices.Clone(filter.Channels), protocol.MethodLifecycle)
	r := f.reads(filter, since)
	defer r.stop()
	return r.next(runs)
}

// line returns an event without the parts that differ from run to run.
func line(e protocol.Event) string {
	where := strings.Join(e.Namespace, "|")
	if e.Node != "" {
		where += "@" + e.Node
	}
	return strings.TrimSpace(e.Method+" "+where) + " " + string(e.Data)
}

func lines(events []protocol.Event) []string {
	all := []string{}
	for _, e := range events {
		all = append(all, line(e))
	}
	return all
}

// wantLines checks the events of some methods.
func (f *fixture) wantLines(events []protocol.Event, methods []string, want ...string) {
	f.Helper()
	var got []string
	for _, e := range events {
		if slices.Contains(methods, e.Method) {
			got = append(got, line(e))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("events (-want +got):\n%s", diff)
	}
}

// wantRoots checks the lifecycles of runs, as "RUN EVENT".
func (f *fixture) wantRoots(events []protocol.Event, want ...string) {
	f.Helper()
	var got []string
	for _, e := range events {
		if root(e) != "" {
			got = append(got, strings.ReplaceAll(strings.TrimPrefix(e.ID, "synth:"), ":", " "))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("lifecycles (-want +got):\n%s", diff)
	}
}

// wantOrder checks that numbers increase and that no id appears twice.
func (f *fixture) wantOrder(events []protocol.Event) {
	f.Helper()
	seen := map[string]bool{}
	for i, e := range events {
		if i > 0 && e.Seq <= events[i-1].Seq {
			f.Errorf("%s has the number %d, behind %d", e.ID, e.Seq, events[i-1].Seq)
		}
		if seen[e.ID] {
			f.Errorf("the id %s is there twice", e.ID)
		}
		seen[e.ID] = true
	}
}

// before returns the number in the response of the command that created a run.
func (f *fixture) before(r run.Run) *int64 {
	f.Helper()
	place, err := f.runs.Behind(f.Context(), r.Ref.Ref, r.Run)
	f.must(err)
	return new(protocol.SeqOf(place))
}

// token is a piece of a message of the node model.
func token(id, text string) step {
	return step{run.EventMessages, fmt.Sprintf(`[{"type":"AIMessageChunk","id":%q,"content":%q},{"graph_node":"model"}]`, id, text)}
}

// update is what a node returns.
func update(node, members string) step {
	return step{run.EventUpdates, fmt.Sprintf(`{%q:{%s}}`, node, members)}
}

// input returns a run's input.
func input(raw string) run.Input {
	input, err := run.NewInput(json.RawMessage(raw))
	if err != nil {
		panic(err)
	}
	return input
}

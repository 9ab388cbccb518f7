package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// counted is a table that counts transactions. It leaves out the transactions that count stored
// bytes, because chance decides when they come.
type counted struct {
	table.Table
	transactions atomic.Int64
	// held, if it holds a channel, keeps a transaction that was applied from returning until
	// the channel is closed.
	held atomic.Pointer[chan struct{}]
	// before, if not nil, gets the writes of each transaction.
	before atomic.Pointer[func([]table.Write)]
}

func (c *counted) Transact(ctx context.Context, writes ...table.Write) error {
	if !slices.ContainsFunc(writes, countsStoredBytes) {
		c.transactions.Add(1)
	}
	if before := c.before.Load(); before != nil {
		(*before)(writes)
	}
	err := c.Table.Transact(ctx, writes...)
	if held := c.held.Load(); held != nil {
		<-*held
	}
	return err
}

func (c *counted) InOrder(ctx context.Context, writes ...table.Write) error {
	return c.Transact(ctx, writes...)
}

// countsStoredBytes reports whether a write notes bytes for the quota of stored bytes.
func countsStoredBytes(write table.Write) bool {
	update, ok := write.(table.Update)
	_, counts := update.Add["stored"]
	return ok && counts
}

// deployed is a deployment of one release, and the target that runs it.
type deployed struct {
	compute.Target // only Acquire is called
	acquire        func(ctx context.Context) (compute.Endpoint, error)
	// callers is how many callers have acquired an agent and not released it.
	callers atomic.Int64
	// promoted is how many releases have followed the first.
	promoted atomic.Int64
	// restarted is how often the agents were restarted.
	restarted atomic.Int64
	// canary is the endpoint of a canary that serves all threads; nil while there is no
	// canary.
	canary atomic.Pointer[func() (compute.Endpoint, error)]
}

// canaryRevision is the revision of the canary.
const canaryRevision = "canary"

func (d *deployed) Serving(_ context.Context, workspace, deployment, thread string) (compute.Ref, error) {
	revision := fmt.Sprint("revision ", d.promoted.Load())
	if thread != "" && d.canary.Load() != nil {
		revision = canaryRevision
	}
	return compute.Ref{Workspace: workspace, Deployment: deployment, Revision: revision}, nil
}

func (d *deployed) ServingSince(ctx context.Context, workspace, deployment, thread string) (compute.Ref, string, error) {
	release, err := d.Serving(ctx, workspace, deployment, thread)
	return release, fmt.Sprint("restart ", d.restarted.Load()), err
}

func (d *deployed) Acquire(ctx context.Context, ref compute.Ref) (endpoint compute.Endpoint, done func(), err error) {
	if canary := d.canary.Load(); canary != nil && ref.Revision == canaryRevision {
		endpoint, err = (*canary)()
	} else {
		endpoint, err = d.acquire(ctx)
	}
	if err != nil {
		return compute.Endpoint{}, nil, err
	}
	d.callers.Add(1)
	return endpoint, func() { d.callers.Add(-1) }, nil
}

// maxBody is the limit of the states.
var maxBody = check.Size(table.MaxBody, 4<<20)

// fixture is everything below the agent server: table, engine, runner and an agent.
type fixture struct {
	t       testing.TB
	table   *counted
	threads *thread.Store
	runs    *run.Store
	target  *deployed
	config  runner.Config
	engine  *engine
	clock   fixtures.RunningClock
	// slice, if not nil, returns how long the agent's work may take in the next task.
	slice func() time.Duration
	// apart gives each task a runner of its own, as if it ran in a process of its own.
	apart bool
}

// engine replaces the workflow engine. A test may start another engine, as another process
// would.
type engine struct {
	*local.Engine
	// ended gets the names of executions that are over.
	ended chan string
	// tasks is held for reading during each call of the runner, for which a closed engine does not
	// wait. A sync.WaitGroup would not do: a call may begin during awaitTasks.
	tasks sync.RWMutex
}

// awaitTasks waits for the calls of the runner that have begun.
func (e *engine) awaitTasks() {
	e.tasks.Lock()
	defer e.tasks.Unlock()
}

func newFixture(t testing.TB, endpoint compute.Endpoint, change func(*runner.Config)) *fixture {
	t.Helper()
	return newSlicedFixture(t, endpoint, nil, change)
}

// newSlicedFixture returns a fixture whose workers have a limited time for each task.
func newSlicedFixture(t testing.TB, endpoint compute.Endpoint, slice func() time.Duration, change func(*runner.Config)) *fixture {
	t.Helper()
	return newFixtureOn(t, fixtures.DomainTable(t, clock.System), endpoint, slice, change)
}

// newFixtureOn returns a fixture on a table.
func newFixtureOn(t testing.TB, tb table.Table, endpoint compute.Endpoint, slice func() time.Duration, change func(*runner.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, table: &counted{Table: table.Budgeted(tb)}, slice: slice}
	f.target = &deployed{acquire: func(context.Context) (compute.Endpoint, error) { return endpoint, nil }}
	f.threads = thread.NewStore(f.table, f.clock.Now, quota.Limits{}, slog.Default())
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f, Now: f.clock.Now, MaxBody: maxBody})
	f.config = runner.Config{
		Runs: f.runs, Deployments: f.target, Target: f.target, Graph: graph.NewClient(nil), Log: slog.New(slog.DiscardHandler),
	}
	if slice != nil {
		f.config.Margin = never
	}
	if change != nil {
		change(&f.config)
	}
	f.startEngine()
	return f
}

// startEngine starts an engine on the table, which goes on with the work that another engine
// left.
func (f *fixture) startEngine() {
	f.t.Helper()
	e := &engine{ended: make(chan string, 10000)}
	machine, err := statemachines.Files.ReadFile("run.asl.json")
	if err != nil {
		f.t.Fatal(err)
	}
	task := runner.New(f.config).Task
	e.Engine, err = local.New(local.Config{
		Table:         f.table,
		Definitions:   fstest.MapFS{"run.asl.json": {Data: machine}},
		Substitutions: map[string]string{"RunnerFunctionArn": "runner"},
		Functions: map[string]workflow.TaskFunc{"runner": func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			e.tasks.RLock()
			defer e.tasks.RUnlock()
			if f.slice != nil {
				// The remaining time, which is for the handover, is longer than any test.
				limited, cancel := context.WithTimeout(ctx, f.slice()+f.config.Margin)
				defer cancel()
				ctx = limited
			}
			if f.apart {
				return runner.New(f.config).Task(ctx, input)
			}
			return task(ctx, input)
		}},
		Now: f.clock.Now,
		Log: slog.New(slog.DiscardHandler),
		Observer: func(event local.Event) {
			switch event.Type {
			case local.ExecutionSucceeded, local.ExecutionFailed, local.ExecutionTimedOut, local.ExecutionAborted:
				e.ended <- fmt.Sprint(event.Type)
			}
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.engine = e
	f.t.Cleanup(func() { f.cutOff(e) })
	if err := e.Resume(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// cutOff ends an engine in the way in which the end of its process would.
func (f *fixture) cutOff(e *engine) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	e.Close(ended)
	e.awaitTasks()
}

// Start, Stop and Describe make the fixture a workflow.Engine that calls the present engine.
func (f *fixture) Start(ctx context.Context, machine workflow.Machine, name string, input json.RawMessage) error {
	return f.engine.Start(ctx, machine, name, input)
}

func (f *fixture) Stop(ctx context.Context, machine workflow.Machine, name, cause string) error {
	return f.engine.Stop(ctx, machine, name, cause)
}

func (f *fixture) Describe(ctx context.Context, machine workflow.Machine, name string) (workflow.Execution, error) {
	return f.engine.Describe(ctx, machine, name)
}

func (f *fixture) must(err error) {
	f.t.Helper()
	check.Must(f.t, err)
}

// newThread makes a thread.
func (f *fixture) newThread() thread.Ref {
	f.t.Helper()
	ref := thread.Ref{Workspace: "w", Deployment: "d", Thread: id.New(clock.System())}
	_, err := f.threads.Create(f.t.Context(), ref, nil, nil, false)
	f.must(err)
	return ref
}

// create creates a run with a message on a thread.
func (f *fixture) create(ref thread.Ref, text string, strategy run.Strategy) run.Run {
	f.t.Helper()
	message := fmt.Sprintf(`{"messages":[{"type":"human","id":%q,"content":%q}]}`, text, text)
	created, err := f.runs.Create(f.t.Context(), ref, run.Request{
		Graph: "agent", Strategy: strategy, Payload: run.Payload{Input: input(message)}, StreamModes: []string{"messages-tuple"}, StreamSubgraphs: true,
	})
	f.must(err)
	return created
}

// give makes a run with an input.
func (f *fixture) give(ref thread.Ref, raw string) run.Run {
	f.t.Helper()
	created, err := f.runs.Create(f.t.Context(), ref, run.Request{Graph: "agent", Strategy: run.Enqueue, Payload: run.Payload{Input: input(raw)}})
	f.must(err)
	return created
}

// join waits for a run's end.
func (f *fixture) join(r run.Run) run.Run {
	f.t.Helper()
	ended, err := f.runs.Await(f.t.Context(), r.Ref)
	f.must(err)
	return ended
}

// messages returns the contents of the messages that a run left behind, with "..." after an
// incomplete message.
func (f *fixture) messages(r run.Run) []string {
	f.t.Helper()
	st, err := f.runs.Result(f.t.Context(), f.join(r))
	f.must(err)
	var values struct {
		Messages []struct {
			Content  string
			Metadata struct{ Incomplete bool } `json:"response_metadata"`
		}
	}
	f.must(json.Unmarshal(st.Values.JSON(), &values))
	var texts []string
	for _, message := range values.Messages {
		texts = append(texts, message.Content)
		if message.Metadata.Incomplete {
			texts[len(texts)-1] += "..."
		}
	}
	return texts
}

// events returns the events that a run's readers get.
func (f *fixture) events(r run.Run) []run.Event {
	f.t.Helper()
	var events []run.Event
	f.must(f.runs.Stream(f.t.Context(), r, 0, func(batch []run.Event) error {
		events = append(events, batch...)
		return nil
	}))
	return events
}

// talk creates a run on a new thread, for an agent that answers with answer.
func talk(t *testing.T, answer graphtest.Func, change func(*runner.Config)) (*fixture, run.Run) {
	t.Helper()
	f := newFixture(t, graphtest.Start(t, answer), change)
	return f, f.create(f.newThread(), "hi", run.Enqueue)
}

// chunk returns the data of an event that shows some text of a message.
func chunk(id, text string) any {
	return []any{map[string]any{"id": id, "type": "AIMessageChunk", "content": text}, map[string]any{}}
}

// update returns the data of an event with which a node adds a message.
func update(id, text string) any {
	return map[string]any{"agent": map[string]any{"messages": []any{map[string]any{"type": "ai", "id": id, "content": cmp.Or(text, id)}}}}
}

// input returns a run's input.
func input(raw string) run.Input {
	input, err := run.NewInput(json.RawMessage(raw))
	if err != nil {
		panic(err)
	}
	return input
}

package run_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// engine only records the executions that were started; the tests are the workers.
type engine struct {
	mu       sync.Mutex
	started  []string
	stopped  []string
	statuses map[string]workflow.Status
	// onStart, if not nil, gets the input of each new execution; fails makes Start fail.
	onStart func(run.Task)
	fails   error
}

func (e *engine) Start(ctx context.Context, _ workflow.Machine, name string, input json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := cmp.Or(e.fails, ctx.Err()); err != nil {
		return err
	}
	if slices.Contains(e.started, name) {
		return nil
	}
	e.started = append(e.started, name)
	if e.onStart != nil {
		var task run.Task
		if err := json.Unmarshal(input, &task); err != nil {
			return err
		}
		e.onStart(task)
	}
	return nil
}

func (e *engine) Stop(_ context.Context, _ workflow.Machine, name, _ string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = append(e.stopped, name)
	return nil
}

func (e *engine) Describe(_ context.Context, _ workflow.Machine, name string) (workflow.Execution, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.started, name) {
		return workflow.Execution{}, workflow.ErrNotFound
	}
	status := e.statuses[name]
	if status == "" {
		status = workflow.Running
	}
	return workflow.Execution{Name: name, Status: status}, nil
}

// end ends an execution with a status.
func (e *engine) end(name string, status workflow.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.statuses == nil {
		e.statuses = map[string]workflow.Status{}
	}
	e.statuses[name] = status
}

func (e *engine) names() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.started)
}

// hooked is a table that counts calls. A test can act right before a transaction, when the
// request has already read its data.
type hooked struct {
	table.Table
	mu     sync.Mutex
	before func()
	// read, if not nil, gets the key of each item before the item is read.
	read func(table.Key)
	// query, if not nil, is called before the next query.
	query func()
	// batch, if not nil, is called before the next batch of items is read.
	batch func()
	// committed, if not nil, gets the writes of each transaction that was applied.
	committed func([]table.Write)
	// dead makes queries fail.
	dead atomic.Bool
	// largest is the largest number of writes in one transaction.
	largest int
	// transactions and reads count calls.
	transactions, reads atomic.Int64
}

// afterNext calls the function once, after the next transaction that is applied.
func (h *hooked) afterNext(f func()) {
	h.committed = func([]table.Write) {
		h.committed = nil
		f()
	}
}

// beforeGet calls the function once, before the next read of the item.
func (h *hooked) beforeGet(key table.Key, f func()) {
	h.read = func(read table.Key) {
		if read == key {
			h.read = nil
			f()
		}
	}
}

// beforeQuery calls the function once, before the next query.
func (h *hooked) beforeQuery(f func()) {
	h.query = func() {
		h.query = nil
		f()
	}
}

// beforeBatch calls the function once, before the next batch of items is read.
func (h *hooked) beforeBatch(f func()) {
	h.batch = func() {
		h.batch = nil
		f()
	}
}

// beforeNext calls the function once, before the next transaction.
func (h *hooked) beforeNext(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = f
}

// aside marks the context of a reader that works beside the test. Hooks are for the writes of the
// test's own goroutine, so the notes of readers that they wait call no hook.
type aside struct{}

func (h *hooked) Transact(ctx context.Context, writes ...table.Write) error {
	if ctx.Value(aside{}) != nil {
		h.transactions.Add(1)
		return h.Table.Transact(ctx, writes...)
	}
	h.mu.Lock()
	before := h.before
	h.before = nil
	h.mu.Unlock()
	if before != nil {
		before()
	}
	h.transactions.Add(1)
	err := h.Table.Transact(ctx, writes...)
	h.mu.Lock()
	h.largest = max(h.largest, len(writes))
	committed := h.committed
	h.mu.Unlock()
	if err == nil && committed != nil {
		committed(writes)
	}
	return err
}

// InOrder applies the writes one after the other, so that hooks may act between them.
func (h *hooked) InOrder(ctx context.Context, writes ...table.Write) error {
	for i, write := range writes {
		err := h.Transact(ctx, write)
		if failed, ok := errors.AsType[*table.ConditionFailed](err); ok {
			failed.Write = i
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete calls the hooks of a transaction.
func (h *hooked) Delete(ctx context.Context, keys ...table.Key) error {
	return h.Transact(ctx, table.Deletes(keys)...)
}

func (h *hooked) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	h.reads.Add(1)
	if h.read != nil {
		h.read(key)
	}
	return h.Table.Get(ctx, key)
}

func (h *hooked) GetBatch(ctx context.Context, keys ...table.Key) ([]*table.Item, error) {
	h.reads.Add(1)
	if h.batch != nil {
		h.batch()
	}
	return h.Table.GetBatch(ctx, keys...)
}

func (h *hooked) Query(ctx context.Context, query table.Query) (table.Page, error) {
	h.reads.Add(1)
	if h.query != nil {
		h.query()
	}
	if h.dead.Load() {
		return table.Page{}, errors.New("the process is dead")
	}
	return h.Table.Query(ctx, query)
}

// hand is a clock that moves one microsecond at each reading. The test can also move it.
type hand struct{ micros atomic.Int64 }

func (h *hand) now() time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(time.Duration(h.micros.Add(1)) * time.Microsecond)
}

func (h *hand) move(d time.Duration) { h.micros.Add(d.Microseconds()) }

// fixture is a thread on a table of its own.
type fixture struct {
	t       testing.TB
	table   *hooked
	engine  *engine
	hand    *hand
	threads *thread.Store
	runs    *run.Store
	ref     thread.Ref
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	hand := new(hand)
	return newFixtureAt(t, fixtures.DomainTable(t, hand.now), hand)
}

// newFixtureOn makes a thread on a table that other fixtures use, too.
func newFixtureOn(t testing.TB, tb table.Table) *fixture {
	t.Helper()
	return newFixtureAt(t, tb, new(hand))
}

func newFixtureAt(t testing.TB, tb table.Table, hand *hand) *fixture {
	t.Helper()
	f := &fixture{t: t, table: &hooked{Table: tb}, engine: new(engine), hand: hand}
	f.threads = thread.NewStore(f.table, f.hand.now, quota.Limits{}, slog.Default())
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Paced: true, Now: f.hand.now})
	f.ref = thread.Ref{Workspace: "w", Deployment: "d", Thread: id.New(clock.System())}
	if _, err := f.threads.Create(t.Context(), f.ref, nil, nil, false); err != nil {
		t.Fatal(err)
	}
	f.table.transactions.Store(0)
	return f
}

// say returns a run's request whose input is one message of a person. The message's text is
// also its id.
func say(text string, strategy run.Strategy) run.Request {
	message := fmt.Sprintf(`{"messages":[{"type":"human","id":%q,"content":%q}]}`, text, text)
	return run.Request{Graph: "agent", Strategy: strategy, Payload: run.Payload{Input: input(message)}}
}

func (f *fixture) create(text string, strategy run.Strategy) run.Run {
	f.t.Helper()
	created, err := f.runs.Create(f.t.Context(), f.ref, say(text, strategy))
	if err != nil {
		f.t.Fatalf("create %s: %v", text, err)
	}
	return created
}

func (f *fixture) claim(r run.Run) *run.Attempt {
	f.t.Helper()
	a, err := f.runs.Claim(f.t.Context(), r.Ref, 0)
	if err != nil {
		f.t.Fatalf("claim: %v", err)
	}
	return a
}

// started creates a run that a worker has taken up.
func (f *fixture) started(text string) (run.Run, *run.Attempt) {
	f.t.Helper()
	r := f.create(text, run.Enqueue)
	return r, f.claim(r)
}

func (f *fixture) finish(a *run.Attempt) {
	f.t.Helper()
	if err := a.Finish(f.t.Context(), run.Outcome{Status: run.Success}); err != nil {
		f.t.Fatalf("finish: %v", err)
	}
}

func (f *fixture) flush(a *run.Attempt) {
	f.t.Helper()
	if err := a.Flush(f.t.Context()); err != nil {
		f.t.Fatalf("flush: %v", err)
	}
}

// show shows a chunk of a message's text.
func show(a *run.Attempt, id, text string) {
	a.Show(run.EventMessages, json.RawMessage(fmt.Sprintf(`[{"id":%q,"type":"AIMessageChunk","content":%q},{}]`, id, text)))
}

// answer updates the state with a message.
func (f *fixture) answer(a *run.Attempt, id, text string) {
	f.t.Helper()
	update := fmt.Sprintf(`{"agent":{"messages":[{"type":"ai","id":%q,"content":%q}]}}`, id, text)
	if err := a.Update(run.EventUpdates, json.RawMessage(update)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) get(r run.Run) run.Run {
	f.t.Helper()
	got, err := f.runs.Get(f.t.Context(), r.Ref)
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

func (f *fixture) thread() thread.Thread {
	f.t.Helper()
	got, err := f.threads.Get(f.t.Context(), f.ref)
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

// statuses returns the statuses of the runs, in the order of the arguments.
func (f *fixture) statuses(runs ...run.Run) []run.Status {
	f.t.Helper()
	var statuses []run.Status
	for _, r := range runs {
		statuses = append(statuses, f.get(r).Status)
	}
	return statuses
}

// messages returns the thread's messages as "type text", with "..." after an incomplete
// message.
func (f *fixture) messages() []string {
	f.t.Helper()
	_, st, err := f.runs.State(f.t.Context(), f.ref)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.read(st)
}

func (f *fixture) read(st thread.State) []string {
	f.t.Helper()
	var values struct {
		Messages []struct {
			Type, Content string
			Metadata      struct{ Incomplete bool } `json:"response_metadata"`
		}
	}
	if err := json.Unmarshal(st.Values.JSON(), &values); err != nil {
		f.t.Fatal(err)
	}
	texts := []string{}
	for _, message := range values.Messages {
		text := message.Type + " " + message.Content
		if message.Metadata.Incomplete {
			text += "..."
		}
		texts = append(texts, text)
	}
	return texts
}

// result returns the messages that a run left behind.
func (f *fixture) result(r run.Run) []string {
	f.t.Helper()
	st, err := f.runs.Result(f.t.Context(), f.get(r))
	if err != nil {
		f.t.Fatal(err)
	}
	return f.read(st)
}

// items returns all items in the thread's partition.
func (f *fixture) items() []*table.Item {
	f.t.Helper()
	items, err := table.AllItems(f.t.Context(), f.table, table.Query{PK: keys.Thread(f.ref.Workspace, f.ref.Deployment, f.ref.Thread).PK})
	if err != nil {
		f.t.Fatal(err)
	}
	return items
}

// replay reads the events of a run that has ended, once in this process and once as another
// process, which remembers no events.
func (f *fixture) replay(r run.Run, after int64) []run.Event {
	f.t.Helper()
	here, elsewhere := f.replayIn(f.runs, r, after), f.replayIn(f.otherProcess(), r, after)
	if diff := gocmp.Diff(elsewhere, here); diff != "" {
		f.t.Errorf("events (-in another process +here):\n%s", diff)
	}
	return here
}

func (f *fixture) replayIn(runs *run.Store, r run.Run, after int64) []run.Event {
	f.t.Helper()
	events := []run.Event{}
	err := runs.Stream(f.t.Context(), r, after, func(batch []run.Event) error {
		events = append(events, batch...)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return events
}

// otherProcess returns a store that shares only the table with the fixture's store.
func (f *fixture) otherProcess() *run.Store {
	return run.NewStore(run.Config{Table: f.table, Threads: thread.NewStore(f.table, f.hand.now, quota.Limits{}, slog.Default()), Workflow: f.engine, Paced: true, Now: f.hand.now})
}

// names returns the names of the events.
func names(events []run.Event) string {
	var out []string
	for _, event := range events {
		out = append(out, event.Name)
	}
	return strings.Join(out, " ")
}

// wantFenced checks the error of a worker that has lost its run.
func (f *fixture) wantFenced(err error) {
	f.t.Helper()
	if !errors.Is(err, run.ErrFenced) {
		f.t.Errorf("got %v, want ErrFenced", err)
	}
}

// input returns a run's input.
func input(raw string) run.Input {
	input, err := run.NewInput(json.RawMessage(raw))
	if err != nil {
		panic(err)
	}
	return input
}

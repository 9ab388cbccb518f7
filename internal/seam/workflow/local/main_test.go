package local_test

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// inBubble runs a test in which time passes at once, on a table that lives outside the bubble.
func inBubble(t *testing.T, test func(t *testing.T, tb *outsideTable)) {
	t.Helper()
	inBubbleOver(t, filepath.Join(t.TempDir(), "table.db"), test)
}

// inBubbleOver is inBubble over the table of a file.
func inBubbleOver(t *testing.T, file string, test func(t *testing.T, tb *outsideTable)) {
	t.Helper()
	tb := openOutside(t, file)
	synctest.Test(t, func(t *testing.T) { test(t, tb) })
}

// bubbleStart is the time at which a bubble begins.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// outsideTable carries out the calls of a bubble's goroutines on goroutines outside of it,
// because SQLite's adapter reuses channels that a bubble does not share. Time stands still in
// the bubble while a call is carried out.
type outsideTable struct {
	table.Table
	calls chan *call
	free  chan *call
	// writes counts the transactions. clock is the clock of the table.
	writes atomic.Int64
	clock  atomic.Pointer[time.Time]
}

type call struct {
	run  func()
	done chan struct{}
}

func openOutside(t *testing.T, file string) *outsideTable {
	t.Helper()
	tb := &outsideTable{calls: make(chan *call), free: make(chan *call, 8)}
	tb.setClock(bubbleStart)
	tb.Table = fixtures.TableAt(t, file, sqlite.WithClock(func() time.Time { return *tb.clock.Load() }))
	var workers sync.WaitGroup
	for range cap(tb.free) {
		tb.free <- &call{done: make(chan struct{})}
		workers.Go(func() {
			for c := range tb.calls {
				c.run()
				c.done <- struct{}{}
			}
		})
	}
	t.Cleanup(func() {
		close(tb.calls)
		workers.Wait()
	})
	return tb
}

func (tb *outsideTable) setClock(now time.Time) { tb.clock.Store(&now) }

func (tb *outsideTable) do(run func()) {
	c := <-tb.free
	c.run = run
	tb.calls <- c
	<-c.done
	tb.free <- c
}

func (tb *outsideTable) Get(_ context.Context, key table.Key) (item *table.Item, err error) {
	tb.do(func() { item, err = tb.Table.Get(context.Background(), key) })
	return item, err
}

func (tb *outsideTable) Query(_ context.Context, query table.Query) (page table.Page, err error) {
	tb.do(func() { page, err = tb.Table.Query(context.Background(), query) })
	return page, err
}

func (tb *outsideTable) Transact(_ context.Context, writes ...table.Write) (err error) {
	tb.writes.Add(1)
	tb.do(func() { err = tb.Table.Transact(context.Background(), writes...) })
	return err
}

// history collects the events of an engine.
type history struct {
	mu     sync.Mutex
	events []local.Event
	ended  map[string]chan struct{}
}

func newHistory() *history { return &history{ended: map[string]chan struct{}{}} }

func (h *history) observe(event local.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
	switch event.Type {
	case local.ExecutionSucceeded, local.ExecutionFailed, local.ExecutionTimedOut, local.ExecutionAborted:
		close(h.endOf(event.Name))
	}
}

// endOf returns the channel that is closed when the execution ends. A second end panics.
func (h *history) endOf(name string) chan struct{} {
	if h.ended[name] == nil {
		h.ended[name] = make(chan struct{})
	}
	return h.ended[name]
}

// await waits for the end of an execution.
func (h *history) await(name string) {
	h.mu.Lock()
	end := h.endOf(name)
	h.mu.Unlock()
	<-end
}

func (h *history) types(name string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var types []string
	for _, event := range h.events {
		if event.Name == name {
			types = append(types, string(event.Type))
		}
	}
	return types
}

// setup is a machine "m" with the functions that it calls, on a table.
type setup struct {
	table      table.Table
	definition string
	functions  map[string]workflow.TaskFunc
	unstored   []workflow.Machine
	now        clock.Clock
	log        io.Writer
}

// engine makes an engine and collects its events. The engine is closed at the latest when the
// test ends.
func (s setup) engine(t *testing.T) (*local.Engine, *history) {
	t.Helper()
	h := newHistory()
	log := s.log
	if log == nil {
		log = io.Discard
	}
	e, err := local.New(local.Config{
		Table:       s.table,
		Definitions: fstest.MapFS{"m.asl.json": {Data: []byte(s.definition)}},
		Functions:   s.functions,
		Unstored:    s.unstored,
		Now:         s.now,
		Log:         slog.New(slog.NewJSONHandler(log, nil)),
		Observer:    h.observe,
	})
	check.Must(t, err)
	t.Cleanup(func() { cutOff(e) })
	return e, h
}

// cutOff closes an engine without waiting for Tasks. To the executions, it looks as if the
// process had ended.
func cutOff(e *local.Engine) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e.Close(ctx)
}

func start(t *testing.T, e *local.Engine, name, input string) {
	t.Helper()
	check.Must(t, e.Start(t.Context(), "m", name, []byte(input)))
}

func describe(t *testing.T, e *local.Engine, name string) workflow.Execution {
	t.Helper()
	execution, err := e.Describe(t.Context(), "m", name)
	check.Must(t, err)
	return execution
}

package run_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestQueuedRunsGoInTheirOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var runs []run.Run
	var ids []string
	for i := range 5 {
		r := f.create(strconv.Itoa(i), run.Enqueue)
		runs, ids = append(runs, r), append(ids, r.Run)
	}
	for i, r := range runs {
		for _, waiting := range runs[i+1:] {
			if _, err := f.runs.Claim(t.Context(), waiting.Ref, 0); err != run.ErrNothingToDo {
				t.Errorf("claim of a run that waits: got %v, want ErrNothingToDo", err)
			}
		}
		if diff := cmp.Diff(ids[:i+1], f.engine.names()); diff != "" {
			t.Errorf("started workflows (-want +got):\n%s", diff)
		}
		a := f.claim(r)
		f.answer(a, "a"+strconv.Itoa(i), "answer "+strconv.Itoa(i))
		f.finish(a)
	}
	want := []string{}
	for i := range runs {
		want = append(want, fmt.Sprintf("human %d", i), fmt.Sprintf("ai answer %d", i))
	}
	if diff := cmp.Diff(want, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := f.thread(); got.Lock.Busy || got.Status != thread.StatusIdle {
		t.Errorf("the thread is %s, busy %v, after its last run", got.Status, got.Lock.Busy)
	}
}

// TestAQueuedRunGoesOnAfterAFailure checks this after a failure of the graph, and after the
// failure of every worker.
func TestAQueuedRunGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	second, third := f.create("2", run.Enqueue), f.create("3", run.Enqueue)
	check.Must(t, a.Finish(t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E", Message: "m"}}))
	if got := f.thread().Lock.Run; got != second.Run {
		t.Fatalf("the active run is %s, want the second", got)
	}
	if err := f.runs.Fail(t.Context(), third.Ref, run.Failure{Name: "F"}); err != nil || f.get(third).Status != run.Pending {
		t.Errorf("a queued run that fails: got %v and status %s, want it left as it is", err, f.get(third).Status)
	}
	check.Must(t, f.runs.Fail(t.Context(), second.Ref, run.Failure{Name: "F"}))
	f.finish(f.claim(third))
	if diff := cmp.Diff([]string{"human 1", "human 2", "human 3"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestAFailedRunLeavesItsThreadInErrorUntilTheNext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, _ := f.in(run.Error)
	if got := f.thread().Status; got != thread.StatusError {
		t.Errorf("the thread is %s, want error", got)
	}
	if diff := cmp.Diff(&run.Failure{Name: "E", Message: "m"}, f.get(r).Failure); diff != "" {
		t.Errorf("failure (-want +got):\n%s", diff)
	}
	_, a := f.started("next")
	if got := f.thread().Status; got != thread.StatusBusy {
		t.Errorf("the thread is %s, want busy", got)
	}
	f.finish(a)
	if got := f.thread().Status; got != thread.StatusIdle {
		t.Errorf("the thread is %s, want idle", got)
	}
}

func TestARunThatPausesLeavesItsQuestions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	questions := json.RawMessage(`{"task":[{"id":"task","value":"sure?"}]}`)
	check.Must(t, a.Finish(t.Context(), run.Outcome{Status: run.Success, Interrupts: questions}))
	if got := f.thread(); got.Status != thread.StatusInterrupted || string(got.Interrupts) != string(questions) {
		t.Errorf("the thread is %s with %s", got.Status, got.Interrupts)
	}
	if got := f.get(r); got.Status != run.Success || string(got.Interrupts) != string(questions) {
		t.Errorf("the run is %s with %s", got.Status, got.Interrupts)
	}
	_, b := f.started("2")
	f.finish(b)
	if got := f.thread(); got.Status != thread.StatusIdle || string(got.Interrupts) != "{}" {
		t.Errorf("after the answer, the thread is %s with %s", got.Status, got.Interrupts)
	}
}

// TestQuestionsAreKeptWithTheMetadata checks that the questions are not in the part of the
// thread's item that each change of its lock writes again.
func TestQuestionsAreKeptWithTheMetadata(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var bodies []string
	f.table.committed = func(writes []table.Write) {
		for _, write := range writes {
			change, ok := write.(table.Update)
			if !ok || write.Target() != f.ref.Key() {
				continue
			}
			bodies = append(bodies, string(change.Body))
			for name, value := range change.Set {
				if text, _ := value.(string); strings.Contains(text, "sure?") {
					t.Errorf("attribute %s holds the question", name)
				}
			}
		}
	}
	created, err := f.threads.Create(t.Context(), thread.Ref{Workspace: "w", Deployment: "d"}, json.RawMessage(`{"graph_id":"agent","user":"u"}`), nil, false)
	f.must(err)
	f.ref = created.Ref
	_, a := f.started("1")
	f.must(a.Finish(t.Context(), run.Outcome{Status: run.Success, Interrupts: json.RawMessage(`{"task":[{"id":"task","value":"sure?"}]}`)}))
	for range 2 {
		_, b := f.started("next")
		f.finish(b)
	}
	// Only a write that changes the questions writes the body.
	want := []string{"", `{"metadata":{"graph_id":"agent","user":"u"},"interrupts":{"task":[{"id":"task","value":"sure?"}]}}`, "", `{"metadata":{"graph_id":"agent","user":"u"}}`, "", ""}
	if diff := cmp.Diff(want, bodies); diff != "" {
		t.Errorf("bodies that were written (-want +got):\n%s", diff)
	}
	if got := f.thread(); string(got.Metadata) != `{"graph_id":"agent","user":"u"}` {
		t.Errorf("got metadata %s", got.Metadata)
	}
}

// enqueueMany makes runs wait behind the last run, in few transactions. The result is the same
// as if Create had created one run after another.
func (f *fixture) enqueueMany(n int) (texts []string) {
	f.t.Helper()
	model := f.create("0", run.Enqueue)
	items, err := f.table.GetBatch(f.t.Context(), model.Key())
	if err != nil {
		f.t.Fatal(err)
	}
	texts = []string{"0"}
	var writes []table.Write
	last := model.Run
	for i := 1; i < n; i++ {
		item, request := *items[0], say(strconv.Itoa(i), run.Enqueue)
		last = id.New(id.Time(last).Add(time.Microsecond))
		item.Key = run.Ref{Ref: f.ref, Run: last}.Key()
		if item.Body, err = json.Marshal(request); err != nil {
			f.t.Fatal(err)
		}
		texts, writes = append(texts, strconv.Itoa(i)), append(writes, table.Put{Item: item, If: table.Absent()})
		if len(writes) == table.MaxWrites-1 || i == n-1 {
			read := f.thread()
			change := read.ChangeLock(f.hand.now())
			read.MarkNewest(&change, last, f.hand.now(), true)
			writes = append(writes, change)
			if err := f.table.Transact(f.t.Context(), writes...); err != nil {
				f.t.Fatal(err)
			}
			writes = nil
		}
	}
	return texts
}

// TestThousandsOfQueuedRunsAreInterruptedByOneRequest measures the writes of the request, and
// the work of sealing the inputs of the runs.
func TestThousandsOfQueuedRunsAreInterruptedByOneRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, a := f.started("first")
	show(a, "partial", "I was")
	f.flush(a)
	n := check.Size(3000, 300)
	texts := f.enqueueMany(n)
	f.table.largest = 0
	f.table.transactions.Store(0)
	last := f.create("last", run.Interrupt)
	if got, writes := f.table.transactions.Load(), f.table.largest; got != 1 || writes > 5 {
		t.Errorf("the interrupt took %d transactions, one of %d writes", got, writes)
	}
	counts := f.countStatuses()
	if diff := cmp.Diff(map[run.Status]int{run.Interrupted: n + 1, run.Pending: 1}, counts); diff != "" {
		t.Errorf("statuses before sealing (-want +got):\n%s", diff)
	}
	var sealers sync.WaitGroup
	for range 2 {
		sealers.Go(func() {
			if _, err := f.runs.Seal(t.Context(), f.ref); err != nil {
				t.Error(err)
			}
		})
	}
	sealers.Wait()
	if got := f.table.largest; got > table.MaxWrites {
		t.Errorf("sealing took a transaction of %d writes", got)
	}
	f.finish(f.claim(last))
	want := []string{"human first", "ai I was..."}
	for _, text := range texts {
		want = append(want, "human "+text)
	}
	if diff := cmp.Diff(append(want, "human last"), f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[run.Status]int{run.Interrupted: n + 1, run.Success: 1}, f.countStatuses()); diff != "" {
		t.Errorf("statuses at the end (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"human first", "ai I was..."}, f.result(first)); diff != "" {
		t.Errorf("what the first run left behind (-want +got):\n%s", diff)
	}
}

func (f *fixture) countStatuses() map[run.Status]int {
	f.t.Helper()
	listed, _, err := f.runs.List(f.t.Context(), f.ref, run.Filter{Window: windowOf(10000)})
	if err != nil {
		f.t.Fatal(err)
	}
	counts := map[run.Status]int{}
	for _, r := range listed {
		counts[r.Status]++
	}
	return counts
}

// TestAQueuedRunNamesTheRunThatSupersededIt also if a third run interrupts the second before
// anything was sealed.
func TestAQueuedRunNamesTheRunThatSupersededIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	active, _ := f.started("active")
	queued := f.create("queued", run.Enqueue)
	second := f.create("second", run.Interrupt)
	third := f.create("third", run.Interrupt)
	fourth := f.create("fourth", run.Interrupt)
	for superseded, by := range map[string]string{active.Run: second.Run, queued.Run: second.Run, second.Run: third.Run, third.Run: fourth.Run} {
		ref := active.Ref
		ref.Run = superseded
		got, err := f.runs.Get(t.Context(), ref)
		f.must(err)
		if got.Status != run.Interrupted || !strings.Contains(string(got.CancelReason), by) {
			t.Errorf("run %s is %s: %q, want a reason that names %s", superseded, got.Status, got.CancelReason, by)
		}
	}
}

// TestAnInterruptSealsOnlyWhatWouldLoseItsReason: interrupts one after another of runs without a
// queue leave the work of sealing to the next worker.
func TestAnInterruptSealsOnlyWhatWouldLoseItsReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.started("active")
	f.create("second", run.Interrupt)
	f.create("third", run.Interrupt)
	if lock := f.thread().Lock; lock.SealedUpTo != "" {
		t.Errorf("an interrupt has sealed runs up to %s", lock.SealedUpTo)
	}
}

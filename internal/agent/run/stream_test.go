package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// reader reads a run's stream in the background.
type reader struct {
	events []run.Event
	seen   chan run.Event
	done   chan error
}

func (f *fixture) follow(r run.Run, after int64) *reader {
	rd := &reader{seen: make(chan run.Event, 1000), done: make(chan error, 1)}
	ctx := context.WithValue(f.t.Context(), aside{}, true)
	runs := f.runs
	go func() {
		rd.done <- runs.Stream(ctx, r, after, func(events []run.Event) error {
			for _, event := range events {
				rd.events = append(rd.events, event)
				rd.seen <- event
			}
			return nil
		})
	}()
	return rd
}

// wait returns the events that were read when the stream is over.
func (rd *reader) wait(t *testing.T) []run.Event {
	t.Helper()
	check.Must(t, <-rd.done)
	return rd.events
}

// until waits for an event.
func (rd *reader) until(name string) run.Event {
	for event := range rd.seen {
		if event.Name == name {
			return event
		}
	}
	panic("unreachable")
}

// TestAReaderSeesEachFlushWhenItIsMade checks this, and that the reader gets exactly the
// events that a later reader gets.
func TestAReaderSeesEachFlushWhenItIsMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	live := f.follow(r, 0)
	a := f.claim(r)
	live.until(run.EventMetadata)
	for i := range 5 {
		a.Show("custom", json.RawMessage(fmt.Sprint(i)))
		f.flush(a)
		if got := live.until("custom"); string(got.Data) != fmt.Sprint(i) {
			t.Errorf("got %s, want %d", got.Data, i)
		}
	}
	f.answer(a, "m", "one")
	f.finish(a)
	got := live.wait(t)
	if diff := cmp.Diff(f.replay(r, 0), got); diff != "" {
		t.Errorf("(-replay +live):\n%s", diff)
	}
	if got, want := names(got), "metadata values custom custom custom custom custom updates values"; got != want {
		t.Errorf("got events %s\nwant %s", got, want)
	}
}

// threeRuns makes runs with events in batches, and some events of an attempt that died.
func (f *fixture) threeRuns() []run.Run {
	var runs []run.Run
	for i := range 3 {
		r, a := f.started(fmt.Sprint(i))
		for j := range 5 {
			show(a, fmt.Sprint("m", i), fmt.Sprint(j))
			show(a, fmt.Sprint("m", i), "<")
			f.flush(a)
		}
		a = f.claim(r)
		f.answer(a, fmt.Sprint("m", i), "done")
		f.finish(a)
		runs = append(runs, r)
	}
	return runs
}

// TestPositionsIncreaseAlongTheThread checks that they have no gap, over runs and attempts.
func TestPositionsIncreaseAlongTheThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	next := int64(1)
	for _, r := range f.threeRuns() {
		got := f.get(r)
		if got.Start != next-1 {
			t.Errorf("the run starts at %d, want %d", got.Start, next-1)
		}
		for _, event := range f.replay(r, 0) {
			if event.Position != next {
				t.Fatalf("got position %d, want %d", event.Position, next)
			}
			next++
		}
		if got.Position != next-1 {
			t.Errorf("the run's position is %d, want %d", got.Position, next-1)
		}
	}
	if got := f.thread().Lock.Position; got != next-1 {
		t.Errorf("the thread's position is %d, want %d", got, next-1)
	}
}

// TestAReaderGoesOnAfterAnyPosition checks that the reader gets exactly the remaining events.
func TestAReaderGoesOnAfterAnyPosition(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	runs := f.threeRuns()
	end := f.thread().Lock.Position
	for _, r := range runs {
		all := f.replay(r, 0)
		for after := range end + 2 {
			rest := []run.Event{}
			for _, event := range all {
				if event.Position > after {
					rest = append(rest, event)
				}
			}
			if diff := cmp.Diff(rest, f.replay(r, after)); diff != "" {
				t.Fatalf("after %d (-want +got):\n%s", after, diff)
			}
		}
	}
}

// TestALongReplayComesInPages checks this, because no reader holds a long run as a whole in
// memory.
func TestALongReplayComesInPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	const batches = 150
	for i := range batches {
		a.Show("custom", json.RawMessage(fmt.Sprint(i)))
		f.flush(a)
	}
	f.finish(a)
	if got, want := len(f.replay(r, 0)), 2+batches; got != want {
		t.Errorf("got %d events, want %d", got, want)
	}
}

func TestValuesOfAnEventAreThoseOfItsStep(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.answer(a, "m1", "one")
	f.answer(a, "m2", "two")
	f.finish(a)
	var got [][]string
	for _, event := range f.replay(r, 0) {
		if event.Name != run.EventValues {
			continue
		}
		st, err := f.runs.Values(t.Context(), f.ref, event)
		f.must(err)
		got = append(got, f.read(st))
	}
	want := [][]string{{"human 1"}, {"human 1", "ai one"}, {"human 1", "ai one", "ai two"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// TestEachStepOfAGraphShowsItsValues checks this also if a node writes values that are the
// same as before, as the framework's own server does. Values that only nodes see are not among
// the shown values.
func TestEachStepOfAGraphShowsItsValues(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	step := func(a *run.Attempt, id, source, values string) {
		t.Helper()
		f.must(a.Checkpoint(graph.Checkpoint{ID: id, Metadata: json.RawMessage(`{"source": "` + source + `"}`), Values: json.RawMessage(values), Data: []byte(id)}))
	}
	const begun, done = `{"files": 1}`, `{"files": 1, "read": 1}`
	for i, c := range []struct{ before, update, want string }{
		{`{}`, `{"read": {"read": 1}}`, "metadata values updates values"},
		{done, `{"read": {"read": 1}}`, "metadata values updates values"},
		{done, `{"read": [{"read": 1}]}`, "metadata values updates values"},
		{done, `{"read": {"private": 1}}`, "metadata values updates"},
		{done, `{"read": null}`, "metadata values updates"},
	} {
		r, a := f.started("1")
		step(a, fmt.Sprint(i, " input"), "input", c.before)
		if i == 0 {
			step(a, "0 begun", "loop", begun)
		} else {
			step(a, fmt.Sprint(i, " begun"), "loop", done)
		}
		f.must(a.Update(run.EventUpdates, json.RawMessage(c.update)))
		step(a, fmt.Sprint(i, " done"), "loop", done)
		f.finish(a)
		if got := names(f.replay(r, 0)); got != c.want {
			t.Errorf("run %d shows %s, want %s", i, got, c.want)
		}
	}
}

// TestStreamsEnd checks that streams end when their run ends, in every way in which it can
// end.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end  func(f *fixture, r run.Run, a *run.Attempt)
		want string
	}{
		"success":     {func(f *fixture, _ run.Run, a *run.Attempt) { f.finish(a) }, "metadata values"},
		"failure":     {func(f *fixture, r run.Run, a *run.Attempt) { f.must(finishAs(run.Error)(f, r, a)) }, "metadata values error"},
		"given up":    {func(f *fixture, r run.Run, _ *run.Attempt) { f.must(f.runs.Fail(f.t.Context(), r.Ref, run.Failure{})) }, "metadata values error"},
		"interrupted": {func(f *fixture, _ run.Run, _ *run.Attempt) { f.create("2", run.Interrupt) }, "metadata"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r, a := f.started("1")
			live := f.follow(r, 0)
			live.until(run.EventMetadata)
			test.end(f, r, a)
			if got := names(live.wait(t)); got != test.want {
				t.Errorf("got events %s, want %s", got, test.want)
			}
		})
	}
}

// TestReadersOfQueuedRunsAreWoken checks that readers are woken when their run begins, and
// when an interrupt supersedes the run without a write to the run's item.
func TestReadersOfQueuedRunsAreWoken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	second, third := f.create("2", run.Enqueue), f.create("3", run.Enqueue)
	begun, overtaken := f.follow(second, 0), f.follow(third, 0)
	statuses := make(chan run.Status, 1)
	go func() {
		ended, err := f.runs.Await(t.Context(), third.Ref)
		if err != nil {
			t.Error(err)
		}
		statuses <- ended.Status
	}()
	f.finish(a)
	b := f.claim(second)
	begun.until(run.EventMetadata)
	show(b, "m", "x")
	f.flush(b)
	begun.until(run.EventMessages)
	f.create("4", run.Interrupt)
	if got := names(begun.wait(t)); got != "metadata values messages" {
		t.Errorf("the second run's reader got %s", got)
	}
	if got := overtaken.wait(t); len(got) > 0 {
		t.Errorf("the third run's reader got %s", names(got))
	}
	if got := <-statuses; got != run.Interrupted {
		t.Errorf("Await: got status %s, want interrupted", got)
	}
}

// TestReadersDoNotPoll checks that a reader of many events reads the run about as often as the
// run or its thread was written.
func TestReadersDoNotPoll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	a := f.claim(r)
	f.table.reads.Store(0)
	f.table.transactions.Store(0)
	live := f.follow(r, 0)
	live.until(run.EventMetadata)
	for range 5 {
		show(a, "m", "x")
		f.flush(a)
		live.until(run.EventMessages)
	}
	f.finish(a)
	live.wait(t)
	// The reader reads once at the beginning, and at most twice for each write: once for the
	// wake-up of the run's watch, once for the wake-up of the thread's watch.
	if reads, writes := f.table.reads.Load(), f.table.transactions.Load(); reads > 2*writes+2 {
		t.Errorf("%d reads for %d writes", reads, writes)
	}
}

func TestASlowReaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	release, slow := make(chan struct{}), make(chan []run.Event, 1)
	go func() {
		var events []run.Event
		err := f.runs.Stream(t.Context(), r, 0, func(batch []run.Event) error {
			<-release
			events = append(events, batch...)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		slow <- events
	}()
	readers := []*reader{f.follow(r, 0), f.follow(r, 1), f.follow(r, 0)}
	for range 20 {
		show(a, "m", "x")
		f.flush(a)
	}
	f.finish(a)
	all := f.replay(r, 0)
	for i, rd := range readers {
		if diff := cmp.Diff(all[i%2:], rd.wait(t)); diff != "" {
			t.Errorf("reader %d (-want +got):\n%s", i, diff)
		}
	}
	close(release)
	if diff := cmp.Diff(all, <-slow); diff != "" {
		t.Errorf("slow reader (-want +got):\n%s", diff)
	}
}

func TestAReaderStopsByItself(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, _ := f.started("1")
	gone := errors.New("the client is gone")
	if err := f.runs.Stream(t.Context(), r, 0, func([]run.Event) error { return gone }); err != gone {
		t.Errorf("got %v, want the reader's own error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := f.runs.Stream(ctx, r, 0, func([]run.Event) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if _, err := f.runs.Await(ctx, r.Ref); !errors.Is(err, context.Canceled) {
		t.Errorf("Await: got %v, want the context's error", err)
	}
}

func TestUnknownRunsAreNotFoundByReaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	unknown := run.Ref{Ref: f.ref, Run: "unknown"}
	if err := f.runs.Stream(t.Context(), run.Run{Ref: unknown, Status: run.Pending}, 0, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("Stream: got %v, want not found", err)
	}
	if _, err := f.runs.Await(t.Context(), unknown); !fault.Is(err, fault.NotFound) {
		t.Errorf("Await: got %v, want not found", err)
	}
}

func TestManyWaitForOneRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	var clients sync.WaitGroup
	for range 10 {
		clients.Go(func() {
			ended, err := f.runs.Await(t.Context(), r.Ref)
			if err != nil || ended.Status != run.Success {
				t.Errorf("got status %s, error %v", ended.Status, err)
			}
		})
	}
	f.answer(a, "m", "one")
	f.finish(a)
	clients.Wait()
}

package run_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// TestALargeInputIsWrittenOnce checks that a large input is written once in an item of its
// own, and that it is read with the run: in lists, by the run's worker, and when the run is
// sealed.
func TestALargeInputIsWrittenOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	large := func(id string) run.Request {
		request := say(id, run.Enqueue)
		request.Config = json.RawMessage(`{"configurable":{"k":"` + strings.Repeat("x", 6<<10) + `"}}`)
		return request
	}
	first, err := f.runs.Create(t.Context(), f.ref, large("one"))
	f.must(err)
	item, err := f.table.Get(t.Context(), first.Key())
	f.must(err)
	if len(item.Body) > 512 {
		t.Errorf("the run's item has a body of %d bytes", len(item.Body))
	}
	a := f.claim(first)
	written := 0
	f.table.committed = func(writes []table.Write) {
		for _, write := range writes {
			if write.Target() == keys.RunRequest(f.ref.Workspace, f.ref.Deployment, f.ref.Thread, first.Run) {
				written++
			}
		}
	}
	show(a, "m", "Hel")
	f.flush(a)
	second, err := f.runs.Create(t.Context(), f.ref, large("two"))
	f.must(err)
	if written > 0 {
		t.Errorf("the request was written %d times more", written)
	}
	if diff := cmp.Diff([]json.RawMessage{first.Config, first.Config, first.Input.JSON()}, []json.RawMessage{a.Run.Config, f.get(first).Config, f.get(first).Input.JSON()}); diff != "" {
		t.Errorf("the request (-as created +as read):\n%s", diff)
	}
	listed, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: windowOf(10)})
	f.must(err)
	if len(listed) != 2 || !slices.Equal(listed[0].Input.JSON(), second.Input.JSON()) || !slices.Equal(listed[1].Config, first.Config) {
		t.Errorf("the runs are listed as %+v", listed)
	}
	f.create("three", run.Interrupt)
	if diff := cmp.Diff([]string{"human one", "ai Hel...", "human two"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestARunIsRemovedWhileItIsRead removes a run after its item was read and before its request
// is read, which has an item of its own. Readers are told that the run is gone.
func TestARunIsRemovedWhileItIsRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.create("one", run.Enqueue)
	large := say("two", run.Enqueue)
	large.Config = json.RawMessage(`{"configurable":{"k":"` + strings.Repeat("x", 6<<10) + `"}}`)
	removedInBetween := func() run.Ref {
		second, err := f.runs.Create(t.Context(), f.ref, large)
		f.must(err)
		f.table.beforeBatch(func() { f.must(f.runs.Cancel(t.Context(), second.Ref, run.ActionRollback)) })
		return second.Ref
	}
	if _, err := f.runs.Get(t.Context(), removedInBetween()); !fault.Is(err, fault.NotFound) {
		t.Errorf("a run that was removed is read with %v", err)
	}
	removedInBetween()
	listed, more, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: windowOf(10)})
	f.must(err)
	if len(listed) != 1 || listed[0].Run != first.Run || more {
		t.Errorf("the runs are listed as %+v", listed)
	}
}

// TestAWorkerIsNotWokenByItsOwnWrites checks that only a request that takes the run wakes the
// worker.
func TestAWorkerIsNotWokenByItsOwnWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("one")
	watcher := a.WatchLoss()
	defer watcher.Stop()
	for range 3 {
		show(a, "m", "x")
		f.flush(a)
	}
	select {
	case <-watcher.C():
		t.Error("it is woken by its own write")
	default:
	}
	f.create("two", run.Interrupt)
	<-watcher.C()
	f.wantFenced(a.CheckOwned(t.Context()))
}

// TestARunKnowsTheStateBeforeIt checks this also for a run that began at another state, or
// that never began.
func TestARunKnowsTheStateBeforeIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, a := f.started("one")
	f.answer(a, "m", "A")
	f.finish(a)
	second, b := f.started("two")
	f.answer(b, "n", "B")
	f.flush(b)
	third := f.create("three", run.Enqueue)
	f.create("four", run.Interrupt)
	f.messages() // this seals the thread
	if diff := cmp.Diff([]int64{-1, 1, 3}, []int64{f.get(first).CheckpointBefore, f.get(second).CheckpointBefore, f.get(third).CheckpointBefore}); diff != "" {
		t.Errorf("the checkpoint before each run (-want +got):\n%s", diff)
	}
	st, err := f.threads.StateAt(t.Context(), f.ref, f.get(second).CheckpointBefore)
	f.must(err)
	if diff := cmp.Diff([]string{"human one", "ai A"}, f.read(st)); diff != "" {
		t.Errorf("the state before the second run (-want +got):\n%s", diff)
	}
}

package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// notes is an observer that notes what it is told, with whole seconds of waiting.
type notes []string

func (n *notes) Started(_ context.Context, r run.Run, waited time.Duration) {
	*n = append(*n, fmt.Sprintf("%s started after %d s", r.Run, int(waited.Seconds())))
}

func (n *notes) Ended(_ context.Context, r run.Run) {
	*n = append(*n, fmt.Sprintf("%s ended with %s", r.Run, r.Status))
}

// TestRunsAreObserved checks that the observer is told once of each beginning and of each kind of
// end, although an attempt is repeated.
func TestRunsAreObserved(t *testing.T) {
	t.Parallel()
	f, told := newFixture(t), notes{}
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Now: f.hand.now, Observer: &told})
	first := f.create("first", run.Enqueue)
	f.hand.move(7 * time.Second)
	f.claim(first)
	f.finish(f.claim(first)) // the worker of the first attempt has died
	second, _ := f.started("second")
	third := f.create("third", run.Interrupt)
	a := f.claim(third)
	f.must(a.Finish(t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E", Message: "m"}}))
	fourth, _ := f.started("fourth")
	fifth, sixth := f.create("fifth", run.Enqueue), f.create("sixth", run.Enqueue)
	for _, r := range []run.Run{fifth, fourth, sixth} {
		f.must(f.runs.Cancel(t.Context(), r.Ref, run.ActionRollback))
	}
	want := notes{
		first.Run + " started after 7 s", first.Run + " ended with success",
		second.Run + " started after 0 s", second.Run + " ended with interrupted",
		third.Run + " started after 0 s", third.Run + " ended with error",
		fourth.Run + " started after 0 s", fifth.Run + " ended with removed", fourth.Run + " ended with removed", sixth.Run + " ended with removed",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestChangedQuestionsAreTold: a graph that pauses, and the run that answers, each change the
// questions of the thread once. Runs on a thread without questions change none.
func TestChangedQuestionsAreTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var told []string
	asked := func(workspace, deployment string) { told = append(told, workspace+"/"+deployment) }
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Now: f.hand.now, QuestionsChanged: asked})
	pause := run.Outcome{Status: run.Success, Interrupts: json.RawMessage(`{"task":[{"id":"task","value":"sure?"}]}`)}
	want := func(when string, times int) {
		t.Helper()
		if got := slices.Repeat([]string{"w/d"}, times); !slices.Equal(told, got) {
			t.Errorf("%s: told %q, want %q", when, told, got)
		}
	}
	_, a := f.started("1")
	f.finish(a)
	want("without questions", 0)
	_, a = f.started("2")
	f.must(a.Finish(t.Context(), pause))
	want("after the pause", 1)
	_, a = f.started("3")
	want("after the answer", 2)
	f.finish(a)
	want("without questions again", 2)
}

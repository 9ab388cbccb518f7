package agentserver_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// TestTheOlderFormOfDurabilityCounts checks that the older form counts if the present form is
// absent, for runs and for crons.
func TestTheOlderFormOfDurabilityCounts(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	f := setUp(t, func(_ context.Context, invocation graph.Invocation, _ func(string, any)) error {
		told <- invocation.Durability
		return nil
	})
	for _, test := range []struct {
		during, durability any
		agent, cron        string
	}{
		{nil, nil, "", "async"},
		{true, nil, "async", "async"},
		{false, nil, "async", "exit"},
		{false, "sync", "sync", "sync"},
		{true, "exit", "async", "exit"},
	} {
		body := with(with(hi(), "checkpoint_during", test.during), "durability", test.durability)
		f.finish(t, f.newThread(t), body)
		if got := <-told; got != test.agent {
			t.Errorf("%v, %v: the agent was told %q, want %q", test.during, test.durability, got, test.agent)
		}
		made := f.call(t, "POST", "/runs/crons", with(body, "schedule", "0 0 1 1 *"))
		wantStatus(t, made, http.StatusOK)
		if got := made.string("payload", "durability"); got != test.cron {
			t.Errorf("%v, %v: the cron has %q, want %q", test.during, test.durability, got, test.cron)
		}
	}
	wantStatus(t, f.call(t, "POST", f.newThread(t)+"/runs", with(hi(), "checkpoint_during", "no")), http.StatusUnprocessableEntity)
}

// TestARunKeepsItsStepsWhateverItsDurability checks agents that keep checkpoints. A client that
// asks for checkpoints at the end only loses no step of a run that does not come to its end, and
// is shown each step.
func TestARunKeepsItsStepsWhateverItsDurability(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	atExit := func(body object) object { return with(body, "durability", "exit") }
	held := graphtest.Node{Name: "model", Say: "A", HoldAfter: "update", Stored: true}
	for name, earlier := range map[string]string{"a new thread": "", "a used thread": "zero Z "} {
		trail := map[string]string{"": "[", "zero Z ": "[first "}[earlier]
		begin := func(t *testing.T) (thread, run string) {
			if thread = f.newThread(t); earlier != "" {
				f.finish(t, thread, plan("zero", says("first", "Z")))
			}
			run = f.start(t, thread, atExit(plan("one", held, says("last", "B"))))
			f.await(t, run, "updates")
			return thread, run
		}
		t.Run("interrupted on "+name, func(t *testing.T) {
			t.Parallel()
			thread, _ := begin(t)
			f.finish(t, thread, atExit(with(plan("two", says("tools", "C")), "multitask_strategy", "interrupt")))
			f.wantState(t, thread, earlier+"one A two C "+trail+"model tools]")
		})
		t.Run("cancelled and continued on "+name, func(t *testing.T) {
			t.Parallel()
			thread, run := begin(t)
			wantStatus(t, f.call(t, "POST", run+"/cancel?wait=true", nil), http.StatusNoContent)
			f.finish(t, thread, object{"assistant_id": "agent"})
			f.wantState(t, thread, earlier+"one A B "+trail+"model last]")
		})
		t.Run("values on "+name, func(t *testing.T) {
			t.Parallel()
			var seen [2][]string
			for i, asked := range []func(object) object{func(body object) object { return body }, atExit} {
				thread := f.newThread(t)
				if earlier != "" {
					f.finish(t, thread, plan("zero", says("first", "Z")))
				}
				_, events := f.stream(t, thread, asked(plan("one", says("model", "A"), says("tools", "B"))))
				seen[i] = shown(events)[1:]
			}
			if diff := cmp.Diff(seen[0], seen[1]); diff != "" || len(seen[1]) != 5 {
				t.Errorf("events (-without a durability +exit): %v\n%s", seen[1], diff)
			}
		})
	}
}

package agentserver_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/graph"
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
		run, cron          string
	}{
		{nil, nil, "", "async"},
		{true, nil, "async", "async"},
		{false, nil, "exit", "exit"},
		{false, "sync", "sync", "sync"},
		{true, "exit", "exit", "exit"},
	} {
		body := with(with(hi(), "checkpoint_during", test.during), "durability", test.durability)
		f.finish(t, f.newThread(t), body)
		if got := <-told; got != test.run {
			t.Errorf("%v, %v: the agent was told %q, want %q", test.during, test.durability, got, test.run)
		}
		made := f.call(t, "POST", "/runs/crons", with(body, "schedule", "0 0 1 1 *"))
		wantStatus(t, made, http.StatusOK)
		if got := made.string("payload", "durability"); got != test.cron {
			t.Errorf("%v, %v: the cron has %q, want %q", test.during, test.durability, got, test.cron)
		}
	}
	wantStatus(t, f.call(t, "POST", f.newThread(t)+"/runs", with(hi(), "checkpoint_during", "no")), http.StatusUnprocessableEntity)
}

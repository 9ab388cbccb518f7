package runner_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// TestAForkFromARemovedCheckpointFailsAtOnce rolls back the run from whose checkpoint another run
// waits to go on: that run has one attempt, and the next run begins.
func TestAForkFromARemovedCheckpointFailsAtOnce(t *testing.T) {
	t.Parallel()
	endpoint := graphtest.Start(t, nothing)
	f := newFixture(t, endpoint, nil)
	hold, claimed, calls := make(chan struct{}), make(chan struct{}), atomic.Int64{}
	f.target.acquire = func(context.Context) (compute.Endpoint, error) {
		if calls.Add(1) == 1 {
			close(claimed)
			<-hold
		}
		return endpoint, nil
	}
	ref := f.newThread()
	first := f.create(ref, "first", run.Enqueue)
	<-claimed
	a, err := f.runs.Claim(t.Context(), first.Ref, 0)
	f.must(err)
	f.must(a.Flush(t.Context()))
	fork, err := f.runs.Create(t.Context(), ref, run.Request{Graph: "agent", Strategy: run.Enqueue, Payload: run.Payload{Input: input(`{"messages":"fork"}`)}, Fork: &run.Fork{ID: a.Log.At.ID}})
	f.must(err)
	next := f.create(ref, "next", run.Enqueue)
	f.must(f.runs.Cancel(t.Context(), first.Ref, run.ActionRollback))
	got := f.join(fork)
	close(hold)
	if got.Status != run.Error || got.Failure.Name != "CheckpointGone" {
		t.Errorf("the fork is %s with %v", got.Status, got.Failure)
	}
	if diff := cmp.Diff([]string{"next"}, f.messages(next)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := calls.Load(); got != 3 {
		t.Errorf("the agent was acquired %d times, want once for each run", got)
	}
}

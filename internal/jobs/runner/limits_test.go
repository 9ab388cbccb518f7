package runner_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// limitTo configures deployments that work on this number of runs at a time, each for this
// time.
func limitTo(jobs int, timeout time.Duration) func(*runner.Config) {
	return func(c *runner.Config) {
		c.ReadLimits = func(context.Context, compute.Ref) (compute.RunLimits, error) {
			return compute.RunLimits{Jobs: jobs, Timeout: timeout}, nil
		}
	}
}

// TestRunsBeyondTheLimitWait checks that the runs wait and that no run is lost. It checks the
// limit of a deployment, also if each run has a process of its own, like a Lambda function,
// and the limit of a process.
func TestRunsBeyondTheLimitWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit func(*runner.Config)
		apart bool
	}{
		"of a deployment":                 {limitTo(2, 0), false},
		"of a deployment in many workers": {limitTo(2, 0), true},
		"of a process":                    {func(c *runner.Config) { c.Jobs = 2 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runsBeyondTheLimitWait(t, c.limit, c.apart)
		})
	}
}

func runsBeyondTheLimitWait(t *testing.T, limit func(*runner.Config), apart bool) {
	t.Helper()
	const jobs, all = 2, 7
	var present, most atomic.Int64
	entered, release := make(chan struct{}, all), make(chan struct{})
	f := newFixture(t, graphtest.Start(t, func(context.Context, graph.Invocation, func(string, any)) error {
		now := present.Add(1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		entered <- struct{}{}
		<-release
		present.Add(-1)
		return nil
	}), limit)
	f.apart = apart
	var runs []run.Run
	for range all {
		runs = append(runs, f.create(f.newThread(), "hi", run.Enqueue))
	}
	for range jobs {
		<-entered
	}
	running := 0
	for _, r := range runs {
		got, err := f.runs.Get(t.Context(), r.Ref)
		f.must(err)
		if got.Status == run.Running {
			running++
		} else if got.Status != run.Pending {
			t.Errorf("a run is %s while the others wait", got.Status)
		}
	}
	if running > jobs {
		t.Errorf("%d runs are worked on, the limit is %d", running, jobs)
	}
	close(release)
	for _, r := range runs {
		if got := f.join(r); got.Status != run.Success || got.Attempt != 1 {
			t.Errorf("a run ended as %s after attempt %d", got.Status, got.Attempt)
		}
	}
	if got := most.Load(); got != jobs {
		t.Errorf("at most %d runs were worked on at a time, want %d", got, jobs)
	}
}

// TestLimitsAreReadAnewAfterARestart checks this for a restart in place, because the values of
// secrets may limit runs.
func TestLimitsAreReadAnewAfterARestart(t *testing.T) {
	t.Parallel()
	var read atomic.Int64
	endpoint := graphtest.Start(t, func(context.Context, graph.Invocation, func(string, any)) error { return nil })
	f := newFixture(t, endpoint, func(c *runner.Config) {
		c.ReadLimits = func(context.Context, compute.Ref) (compute.RunLimits, error) {
			read.Add(1)
			return compute.RunLimits{}, nil
		}
	})
	for restarts := range 3 {
		f.target.restarted.Store(int64(restarts))
		for range 2 {
			if got := f.join(f.create(f.newThread(), "hi", run.Enqueue)); got.Status != run.Success {
				t.Errorf("a run ended as %s", got.Status)
			}
		}
		if got := read.Load(); got != int64(restarts+1) {
			t.Errorf("the limits were read %d times after %d restarts", got, restarts)
		}
	}
}

// TestARunThatTakesTooLongTimesOut checks this, and that the shown output of the run is kept.
func TestARunThatTakesTooLongTimesOut(t *testing.T) {
	t.Parallel()
	check.InTime(t, 300*time.Millisecond, func(limit time.Duration) bool {
		called, stopped := make(chan struct{}), make(chan struct{})
		f := newFixture(t, graphtest.Start(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
			close(called)
			emit(graph.EventMessages, chunk("m", "Hel"))
			<-ctx.Done()
			close(stopped)
			return ctx.Err()
		}), limitTo(0, limit))
		r := f.create(f.newThread(), "hi", run.Enqueue)
		got := f.join(r)
		if got.Status != run.Timeout || got.Failure == nil || got.Failure.Name != "Timeout" || got.Attempt != 1 {
			t.Errorf("got status %s of attempt %d: %v", got.Status, got.Attempt, got.Failure)
		}
		select {
		case <-called:
		default:
			return false
		}
		<-stopped
		if diff := cmp.Diff([]string{"hi", "Hel..."}, f.messages(r)); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		return true
	})
}

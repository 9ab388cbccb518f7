package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// behindBalancer returns the endpoint of an agent behind a load balancer, which answers the first
// requests itself, with these statuses.
func behindBalancer(t *testing.T, answers ...int) compute.Endpoint {
	t.Helper()
	agent := graphtest.NewAgent(nothing, graphtest.Token)
	var asked atomic.Int64
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := int(asked.Add(1)); n <= len(answers) {
			w.Header().Set("Server", graph.ServerOfBalancer)
			w.WriteHeader(answers[n-1])
			return
		}
		agent.ServeHTTP(w, r)
	}))
	t.Cleanup(balancer.Close)
	return compute.Endpoint{URL: balancer.URL, Token: graphtest.Token}
}

// alone returns a fixture with a run that its machine does not touch, and a function that calls a
// step of the machine and returns the name of its error.
func alone(t *testing.T, endpoint compute.Endpoint) (*fixture, run.Run, func(step, more string) string) {
	t.Helper()
	f := newFixture(t, endpoint, nil)
	first, begun := atomic.Bool{}, make(chan struct{})
	f.target.acquire = func(ctx context.Context) (compute.Endpoint, error) {
		if first.CompareAndSwap(false, true) { // the machine's own call
			close(begun)
			<-ctx.Done()
			return compute.Endpoint{}, ctx.Err()
		}
		return endpoint, nil
	}
	r := f.create(f.newThread(), "hi", run.Enqueue)
	<-begun
	work := runner.New(f.config)
	return f, r, func(step, more string) string {
		input := fmt.Sprintf(`{"step":%q,"workspace_id":"w","deployment_id":"d","thread_id":%q,"run_id":%q%s}`, step, r.Thread, r.Run, more)
		_, err := work.Task(t.Context(), json.RawMessage(input))
		if named, ok := errors.AsType[*workflow.TaskError](err); ok {
			return named.Name
		}
		f.must(err)
		return ""
	}
}

// TestAnAbsentAgentIsWaitedFor has a load balancer answer in the agent's place. Only the attempts
// that an agent may have begun count.
func TestAnAbsentAgentIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers  []int
		status   run.Status
		failures int64 // those that the next attempt has noted
	}{
		"more often than a run may fail": {[]int{503, 503, 503, 503, 503}, run.Success, 0},
		"before it is noticed":           {[]int{502, 503, 503, 504, 503}, run.Success, 2},
		"because the run ends it":        {[]int{502, 503, 502, 503, 502}, run.Error, run.MaxAttempts - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, r, call := alone(t, behindBalancer(t, c.answers...))
			for i := range c.answers {
				if got := call("Work", ""); got != run.FailureAgentAbsent {
					t.Errorf("attempt %d ends with %q", i+1, got)
				}
			}
			if got := call("Work", ""); got != "" {
				t.Errorf("the last attempt ends with %q", got)
			}
			if got := f.join(r); got.Status != c.status || got.Failures != c.failures {
				t.Errorf("got status %s after %d failures: %v", got.Status, got.Failures, got.Failure)
			}
		})
	}
}

// TestATargetWaitsForItsOwnAgent checks that a machine does not wait for hours for an agent that a
// target starts itself.
func TestATargetWaitsForItsOwnAgent(t *testing.T) {
	t.Parallel()
	endpoint := behindBalancer(t, 503)
	endpoint.Witness = witness("")
	_, _, call := alone(t, endpoint)
	if got := call("Work", ""); got != run.FailureAgentUnavailable {
		t.Errorf("the attempt ends with %q", got)
	}
}

// TestAnAgentThatStaysAbsent checks that the run ends with words when its machine gives up.
func TestAnAgentThatStaysAbsent(t *testing.T) {
	t.Parallel()
	f, r, call := alone(t, behindBalancer(t, 503))
	call("Work", "")
	call("GiveUp", `,"error":{"Error":"AgentAbsent","Cause":"it is away"}`)
	if got := f.join(r); got.Status != run.Error || got.Failure.Name != run.FailureAgentAbsent || !strings.HasSuffix(got.Failure.Message, "for hours. The last time: it is away") {
		t.Errorf("got status %s: %v", got.Status, got.Failure)
	}
}

// TestAnAbsentCanary checks that the active release takes the run at once, and that the canary's
// attempts are no slices of it.
func TestAnAbsentCanary(t *testing.T) {
	t.Parallel()
	canary := behindBalancer(t, 503, 503, 503, 503)
	f, r, call := alone(t, behindBalancer(t, 503, 503, 503))
	f.tryOut(func() (compute.Endpoint, error) { return canary, nil })
	for range 3 {
		if got := call("Work", ""); got != run.FailureAgentAbsent {
			t.Errorf("an attempt ends with %q", got)
		}
	}
	call("Work", "")
	if got := f.join(r); got.Status != run.Success || got.Failures != 0 {
		t.Errorf("got status %s after %d failures: %v", got.Status, got.Failures, got.Failure)
	}
}

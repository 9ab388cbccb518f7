package runner_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// TestAnAgentThatFailsToDescribeItself is unavailable: the client that asks for its graphs has done
// nothing wrong, and has changed nothing. An agent that refuses a change says why.
func TestAnAgentThatFailsToDescribeItself(t *testing.T) {
	t.Parallel()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "trouble", http.StatusInternalServerError)
	}))
	t.Cleanup(broken.Close)
	f := newFixture(t, compute.Endpoint{URL: broken.URL}, nil)
	agents := &runner.Agents{Deployments: f.target, Target: func(context.Context) (compute.Target, error) { return f.target, nil }, Graph: graph.NewClient(nil)}
	_, err := agents.Describe(t.Context(), "w", "d", graph.Invocation{Operation: graph.OperationDescribe})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "status 500") {
		t.Errorf("got %v", err)
	}
	err = agents.UpdateState(t.Context(), "w", "d", graph.Invocation{Graph: "agent", ThreadID: "t"}, nil)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "refused the change: trouble") {
		t.Errorf("got %v", err)
	}
}

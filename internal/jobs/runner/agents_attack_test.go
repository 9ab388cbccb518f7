package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// TestAttackAnAgentThatAnswersAChangeOfAState checks that what the agent sends is counted in the
// memory of the request that changes the state, and that it has no more values than an event of
// a run.
func TestAttackAnAgentThatAnswersAChangeOfAState(t *testing.T) {
	t.Parallel()
	const text, list = 1 << 20, 100_000
	for name, c := range map[string]struct {
		values  any
		held    int64
		refusal string
	}{
		"a text":          {strings.Repeat("x", text), 4 * text, ""},
		"a list":          {zeros(list), list * (4*2 + 90), ""},
		"too many values": {zeros(budget.MostValues + 1), 0, "more than 1000000 JSON values"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
				emit(graph.EventCheckpoint, map[string]any{"id": "1", "values": map[string]any{"a": c.values}})
				return nil
			}), nil)
			agents := &runner.Agents{Deployments: f.target, Target: func(context.Context) (compute.Target, error) { return f.target, nil }, Graph: graph.NewClient(nil)}
			reads := budget.New(1 << 30)
			hold := budget.NewHold(reads, 0, 0, nil)
			defer hold.Close()
			taken := 0
			err := agents.UpdateState(budget.Holding(t.Context(), hold), "w", "d", graph.Invocation{Graph: "agent", ThreadID: "t"}, func(graph.Checkpoint) error {
				if taken++; reads.Held() < c.held {
					t.Errorf("%d bytes are held, want at least %d", reads.Held(), c.held)
				}
				return nil
			})
			if c.refusal == "" && (err != nil || taken != 1) {
				t.Errorf("%d checkpoints were taken: %v", taken, err)
			}
			if c.refusal != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.refusal) || taken != 0) {
				t.Errorf("%d checkpoints were taken: %v", taken, err)
			}
		})
	}
}

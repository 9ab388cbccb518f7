package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// deleted is a deployment in its recovery window.
type deleted struct{}

func (d deleted) ServingSince(ctx context.Context, workspace, deployment, thread string) (compute.Ref, string, error) {
	release, err := d.Serving(ctx, workspace, deployment, thread)
	return release, "", err
}

func (deleted) Serving(context.Context, string, string, string) (compute.Ref, error) {
	return compute.Ref{}, fault.New(fault.Conflict, "It is being deleted.")
}

// TestARunOfADeletedDeploymentFailsInWords has a run come due whose deployment nobody serves.
func TestARunOfADeletedDeploymentFailsInWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t, compute.Endpoint{}, func(c *runner.Config) { c.Deployments = deleted{} })
	got := f.join(f.create(f.newThread(), "hi", run.Enqueue))
	if got.Status != run.Error || got.Failure.Name != "AgentUnavailable" || !strings.Contains(got.Failure.Message, "It is being deleted.") {
		t.Errorf("it is %s: %+v", got.Status, got.Failure)
	}
}

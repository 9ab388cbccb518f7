package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// unserved is a deployment whose release is not known.
type unserved struct{ err error }

func (u unserved) ServingSince(context.Context, string, string, string) (compute.Ref, string, error) {
	return compute.Ref{}, "", u.err
}

func (u unserved) Serving(context.Context, string, string, string) (compute.Ref, error) {
	return compute.Ref{}, u.err
}

// TestARunOfADeletedDeploymentFailsInWords makes a run due whose deployment no release serves.
func TestARunOfADeletedDeploymentFailsInWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t, compute.Endpoint{}, func(c *runner.Config) { c.Deployments = unserved{fault.New(fault.Conflict, "It is being deleted.")} })
	got := f.join(f.create(f.newThread(), "hi", run.Enqueue))
	if got.Status != run.Error || got.Failure.Name != "AgentUnavailable" || !strings.Contains(got.Failure.Message, "It is being deleted.") {
		t.Errorf("it is %s: %+v", got.Status, got.Failure)
	}
}

// TestABusyStoreIsNoFailureOfTheAgent checks that a task that finds no release because the
// table is busy returns this error, so that its machine waits.
func TestABusyStoreIsNoFailureOfTheAgent(t *testing.T) {
	t.Parallel()
	f, r := talk(t, nothing, nil)
	<-f.engine.ended
	f.config.Deployments = unserved{fmt.Errorf("get item: %w", table.ErrBusy)}
	input := fmt.Sprintf(`{"step":"Work","workspace_id":"w","deployment_id":"d","thread_id":%q,"run_id":%q}`, r.Thread, r.Run)
	_, err := runner.New(f.config).Task(t.Context(), json.RawMessage(input))
	if named, ok := errors.AsType[*workflow.TaskError](err); ok || !errors.Is(err, table.ErrBusy) {
		t.Errorf("got %v (%v), want that the store is busy", err, named)
	}
}

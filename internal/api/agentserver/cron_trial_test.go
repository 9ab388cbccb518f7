package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	workflowlocal "github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// newEngineOn is the engine of a server on the table.
func newEngineOn(t *testing.T, tb table.Table) *workflowlocal.Engine {
	t.Helper()
	nothing := func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	engine, err := workflowlocal.New(workflowlocal.Config{
		Table: tb, Definitions: statemachines.Files, Log: slog.New(slog.DiscardHandler), Crashed: true,
		Substitutions: map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner", "WebhookFunctionArn": "webhook"},
		Functions:     map[string]workflow.TaskFunc{"rollout": nothing, "runner": nothing, "webhook": nothing},
	})
	check.Must(t, err)
	return engine
}

// TestAttackACronThatEndsTheServer has two servers die while they begin the run of a cron. The
// third server does not begin it, and disables the cron. Other crons fire.
func TestAttackACronThatEndsTheServer(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	poison, _ := c.daily(t, object{"on_run_completed": "keep"})
	for _, at := range []string{"2030-01-01T08:00:00Z", "2030-01-01T08:30:00Z"} {
		server := &fixtures.Mortal{Table: c.table}
		c.crons.Trials = newEngineOn(t, server)
		c.crons.Room = func() error {
			server.Dead.Store(true)
			return errors.New("the process is dead")
		}
		c.set(t, at)
		if err := c.crons.Fire(t.Context(), *c.at.Load()); err == nil {
			t.Fatal("the server has not died")
		}
	}
	c.crons.Trials, c.crons.Room = newEngineOn(t, c.table), nil
	innocent, _ := c.daily(t, object{"on_run_completed": "keep", "schedule": "0 9 * * *"})
	c.tick(t, "2030-01-01T09:00:00Z")
	c.wantRuns(t, "after two deaths", poison)
	c.wantRuns(t, "beside it", innocent, "2030-01-01T09:00")
	disabled := c.call(t, "PATCH", poison, object{})
	if wantStatus(t, disabled, http.StatusOK); disabled.member("enabled") != false {
		t.Errorf("the cron is shown as %s", disabled.text)
	}
}

package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// TestADelayedRunIsNoFailure drives the steps of a delayed run: a worker that comes too early ends
// with an error that says so, and the next step tells the time.
func TestADelayedRunIsNoFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t, graphtest.Start(t, nothing), nil)
	delayed, err := f.runs.Create(t.Context(), f.newThread(), run.Request{Graph: "agent", After: time.Hour})
	f.must(err)
	f.cutOff(f.engine) // only the steps of this test work on the run
	task := runner.New(f.config).Task
	step := func(step string) (string, error) {
		output, err := task(t.Context(), stepOf(delayed, step, ""))
		return string(output), err
	}
	_, err = step("Work")
	if early, ok := errors.AsType[*workflow.TaskError](err); !ok || early.Name != "NotDue" {
		t.Errorf("got %v, want that the run is not due", err)
	}
	if got, err := step("Due"); err != nil || got != fmt.Sprintf(`{"due":%q}`, clock.Format(delayed.Due)) {
		t.Errorf("got %s, %v, want %s", got, err, clock.Format(delayed.Due))
	}
	f.clock.Pass(2 * time.Hour)
	if _, err := step("Work"); err != nil {
		t.Error(err)
	}
	if got := f.join(delayed); got.Status != run.Success || got.Attempt != 1 {
		t.Errorf("got status %s of attempt %d", got.Status, got.Attempt)
	}
	var due struct{ Due string }
	got, err := step("Due")
	if err = errors.Join(err, json.Unmarshal([]byte(got), &due)); err != nil || due.Due > clock.Format(f.clock.Now()) {
		t.Errorf("a run that waits for nothing is due at %s, %v", got, err)
	}
}

// stepOf is the input of a step of the run machine.
func stepOf(r run.Run, step, more string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"step":%q,"workspace_id":"w","deployment_id":"d","thread_id":%q,"run_id":%q%s}`, step, r.Thread, r.Run, more))
}

// TestARunThatNoWorkerCouldTakeUpIsPutBack gives up a run because the platform was busy, which ends
// its execution but not the run: reconcile starts another execution. A run whose worker has failed
// is over.
func TestARunThatNoWorkerCouldTakeUpIsPutBack(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]run.Status{
		"Lambda.TooManyRequestsException": run.Success, "Busy": run.Success, "Lambda.ServiceException": run.Error, "Sandbox.Timedout": run.Error,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, graphtest.Start(t, nothing), nil)
			waiting, err := f.runs.Create(t.Context(), f.newThread(), run.Request{Graph: "agent", After: time.Hour})
			f.must(err)
			f.cutOff(f.engine) // only the steps of this test work on the run
			f.clock.Pass(2 * time.Hour)
			task := runner.New(f.config).Task
			for _, step := range []string{"GiveUp", "Work"} {
				_, err := task(t.Context(), stepOf(waiting, step, fmt.Sprintf(`,"error":{"Error":%q,"Cause":"{}"}`, name)))
				f.must(err)
			}
			if got := f.join(waiting); got.Status != want {
				t.Errorf("the run ended as %s (%+v), want %s", got.Status, got.Failure, want)
			}
		})
	}
}

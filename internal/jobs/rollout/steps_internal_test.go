package rollout

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAStepIsRepeatedWithinBounds has steps that answer again a few times or always, and a step
// that forgets its answer.
func TestAStepIsRepeatedWithinBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		repeats, want int
		last          next
	}{
		"a few times":  {3, 4, done},
		"no answer":    {0, 1, ""},
		"without end":  {1_000_000, 0, done},
		"at the first": {0, 1, promote},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			got, err := untilDone(t.Context(), func(context.Context) (next, error) {
				if calls++; calls <= c.repeats {
					return again, nil
				}
				return c.last, nil
			})
			if c.want == 0 {
				if !fault.Is(err, fault.Unavailable) || calls > 1000 {
					t.Errorf("%s: got %q, %v after %d calls", name, got, err, calls)
				}
			} else if err != nil || got != c.last || calls != c.want {
				t.Errorf("%s: got %q, %v after %d calls", name, got, err, calls)
			}
		})
	}
}

// TestStepsAreThoseOfTheMachines compares the table of steps with the Task states of the machines.
// A state passes its own name as the step.
func TestStepsAreThoseOfTheMachines(t *testing.T) {
	t.Parallel()
	var named []string
	for _, machine := range []workflow.Machine{workflow.Rollout, workflow.Restart, workflow.Teardown} {
		text, err := statemachines.Files.ReadFile(string(machine) + ".asl.json")
		check.Must(t, err)
		var definition struct {
			States map[string]struct {
				Type       string
				Parameters struct{ Payload struct{ Step string } }
			}
		}
		check.Must(t, json.Unmarshal(text, &definition))
		for name, state := range definition.States {
			if state.Type != "Task" {
				continue
			}
			if state.Parameters.Payload.Step != name {
				t.Errorf("%s: the state %s asks for the step %q", machine, name, state.Parameters.Payload.Step)
			}
			named = append(named, state.Parameters.Payload.Step)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(named)), slices.Sorted(maps.Keys(steps))); diff != "" {
		t.Errorf("steps (-machines +table):\n%s", diff)
	}
}

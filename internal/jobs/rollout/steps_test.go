package rollout

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// TestStepsAreThoseOfTheMachines compares the table of steps with the Task states of the machines.
// A state passes its own name as the step.
func TestStepsAreThoseOfTheMachines(t *testing.T) {
	t.Parallel()
	var named []string
	for _, machine := range []workflow.Machine{workflow.Rollout, workflow.Restart, workflow.Teardown} {
		text, err := statemachines.Files.ReadFile(string(machine) + ".asl.json")
		if err != nil {
			t.Fatal(err)
		}
		var definition struct {
			States map[string]struct {
				Type       string
				Parameters struct{ Payload struct{ Step string } }
			}
		}
		if err := json.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
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

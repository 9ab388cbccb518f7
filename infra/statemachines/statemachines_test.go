package statemachines_test

import (
	"encoding/json"
	"io/fs"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/infra/statemachines"
)

const (
	throttled = "Lambda.TooManyRequestsException"
	// historyLimit is the number of events after which Step Functions ends an execution; a retry
	// writes four.
	historyLimit   = 25_000
	eventsPerRetry = 4
	// hoursOfWaiting is how long throttled work waits before it counts as failed. Full jitter waits
	// half of MaxDelaySeconds on average.
	hoursOfWaiting = 12
)

// TestThrottledWorkWaits checks that each task waits for hours while Lambda has no room, and that
// these waits do not use up the retries for other faults, nor the execution's history.
func TestThrottledWorkWaits(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(statemachines.Files, "*.asl.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("state machines: %v, %v", names, err)
	}
	for _, name := range names {
		text, err := statemachines.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var machine struct {
			States map[string]struct {
				Type  string
				Retry []struct {
					ErrorEquals     []string
					MaxAttempts     int
					MaxDelaySeconds int
					JitterStrategy  string
				}
			}
		}
		if err := json.Unmarshal(text, &machine); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for state, s := range machine.States {
			if s.Type != "Task" {
				continue
			}
			if len(s.Retry) == 0 || !slices.Equal(s.Retry[0].ErrorEquals, []string{throttled}) {
				t.Errorf("%s: %s has no retrier of its own for %s before the others", name, state, throttled)
				continue
			}
			first := s.Retry[0]
			if hours := first.MaxAttempts * first.MaxDelaySeconds / 2 / 3600; hours < hoursOfWaiting || first.JitterStrategy != "FULL" {
				t.Errorf("%s: %s waits %d hours, want %d with full jitter", name, state, hours, hoursOfWaiting)
			}
			if events := first.MaxAttempts * eventsPerRetry; events > historyLimit/2 {
				t.Errorf("%s: %s may write %d events of %d", name, state, events, historyLimit)
			}
		}
	}
}

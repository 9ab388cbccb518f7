package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// TestARunWaitsForItsAgent gives a run back more often than it may fail or be idle. It loses no
// attempt, no time and not its permit, and says what it waits for.
func TestARunWaitsForItsAgent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	for range 3 * run.MaxAttempts {
		a, err := f.runs.Claim(t.Context(), r.Ref, 1)
		f.must(err)
		f.hand.move(time.Second)
		f.must(a.GiveBack(t.Context()))
		f.wantFenced(a.GiveBack(t.Context()))
		if got, err := f.runs.Explain(t.Context(), r.Ref); err != nil || !strings.HasPrefix(got.Cause, "AGENT_ABSENT: ") || got.Remedy == "" {
			t.Errorf("the cause is %q, the remedy %q, %v", got.Cause, got.Remedy, err)
		}
		f.hand.move(time.Hour)
	}
	a, err := f.runs.Claim(t.Context(), r.Ref, 1)
	f.must(err)
	if got, want := f.runs.Elapsed(a.Run).Round(time.Second), 3*run.MaxAttempts*time.Second; got != want {
		t.Errorf("the run has taken %v, want %v", got, want)
	}
	if a.Run.Failures != 0 || a.Run.Idle != 0 || a.Run.Permit == 0 {
		t.Errorf("the run has %d failures, %d idle slices and permit %d", a.Run.Failures, a.Run.Idle, a.Run.Permit)
	}
	if got, err := f.runs.Explain(t.Context(), r.Ref); err != nil || got.Cause != "" {
		t.Errorf("with an agent: the cause is %q, %v", got.Cause, err)
	}
	f.finish(a)
}

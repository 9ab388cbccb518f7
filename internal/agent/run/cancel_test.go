package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// TestARunThatNeverBeganLeavesItsInputOnlyIfItsClientIsLost cancels the active run, or a queued
// run, for each reason before a worker has claimed it.
func TestARunThatNeverBeganLeavesItsInputOnlyIfItsClientIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cancel func(*run.Store, run.Run) error
		want   []string
	}{
		"by request": {
			cancel: func(s *run.Store, r run.Run) error { return s.Cancel(t.Context(), r.Ref, run.ActionInterrupt) },
		},
		"by taking": {
			cancel: func(s *run.Store, r run.Run) error { return s.CancelTaken(t.Context(), r.Ref) },
		},
		"by disconnect": {
			cancel: func(s *run.Store, r run.Run) error { return s.CancelOnDisconnect(t.Context(), r.Ref) },
			want:   []string{"human cancelled"},
		},
	} {
		for _, queued := range []bool{false, true} {
			f, want := newFixture(t), []string{}
			var active *run.Attempt
			if queued {
				_, active = f.started("active")
				want = append(want, "human active")
			}
			f.must(c.cancel(f.runs, f.create("cancelled", run.Enqueue)))
			if queued {
				f.finish(active)
			}
			if diff := cmp.Diff(append(want, c.want...), f.messages()); diff != "" {
				t.Errorf("%s, queued: %t: messages (-want +got):\n%s", name, queued, diff)
			}
		}
	}
}

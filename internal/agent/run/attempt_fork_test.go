package run_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// forked creates a run that waits to go on from a checkpoint that a rollback has removed. If
// refilled, there is another checkpoint of the same number.
func (f *fixture) forked(refilled bool) run.Run {
	f.t.Helper()
	first, a := f.started("first")
	f.answer(a, "m", "removed")
	f.flush(a)
	st, err := f.threads.State(f.t.Context(), f.ref)
	f.must(err)
	if refilled {
		for _, text := range []string{"lost 1", "lost 2"} {
			f.must(f.runs.CancelOnDisconnect(f.t.Context(), f.create(text, run.Enqueue).Ref))
		}
	}
	request := say("fork", run.Enqueue)
	request.Fork = &run.Fork{ID: st.At.ID}
	fork, err := f.runs.Create(f.t.Context(), f.ref, request)
	f.must(err)
	f.must(f.runs.Cancel(f.t.Context(), first.Ref, run.ActionRollback))
	return fork
}

// neverBegun are ways in which a fork ends before its first claim.
var neverBegun = map[string]func(f *fixture, fork run.Run) error{
	"it fails": func(f *fixture, fork run.Run) error {
		return f.runs.Fail(f.t.Context(), fork.Ref, run.Failure{Name: run.FailureCheckpointGone})
	},
	"it is interrupted": func(f *fixture, _ run.Run) error {
		f.create("next", run.Interrupt)
		return nil
	},
	"its client is lost": func(f *fixture, fork run.Run) error { return f.runs.CancelOnDisconnect(f.t.Context(), fork.Ref) },
}

// TestAForkThatNeverBegins checks that the input of a fork follows the fork's checkpoint, also if
// the fork ends before its first claim.
func TestAForkThatNeverBegins(t *testing.T) {
	t.Parallel()
	for name, end := range neverBegun {
		f := newFixture(t)
		_, a := f.started("first")
		f.finish(a)
		st, err := f.threads.State(t.Context(), f.ref)
		f.must(err)
		_, a = f.started("second")
		f.finish(a)
		request := say("instead of the second", run.Enqueue)
		request.Fork = &run.Fork{ID: st.At.ID}
		fork, err := f.runs.Create(t.Context(), f.ref, request)
		f.must(err)
		f.must(end(f, fork))
		if diff := cmp.Diff([]string{"human first", "human instead of the second"}, f.messages()); diff != "" {
			t.Errorf("%s: messages (-want +got):\n%s", name, diff)
		}
	}
}

// TestAForkFromARemovedCheckpoint checks that a fork whose checkpoint is gone fails at its first
// claim, and that its input comes into no state, however it ends.
func TestAForkFromARemovedCheckpoint(t *testing.T) {
	t.Parallel()
	for name, end := range neverBegun {
		for _, refilled := range []bool{false, true} {
			f, want := newFixture(t), []string{}
			fork := f.forked(refilled)
			if _, err := f.runs.Claim(t.Context(), fork.Ref, 0); !errors.Is(err, run.ErrCheckpointGone) {
				t.Errorf("%s, refilled: %t: the claim says %v", name, refilled, err)
			}
			f.must(end(f, fork))
			if refilled {
				want = []string{"human lost 1", "human lost 2"}
			}
			if diff := cmp.Diff(want, f.messages()); diff != "" {
				t.Errorf("%s, refilled: %t: messages (-want +got):\n%s", name, refilled, diff)
			}
		}
	}
}

// TestAForkFromACheckpointOfAnInterruptedRun checks that a rollback can go on from a checkpoint of
// an earlier run that was interrupted and is not sealed yet: the rollback does not remove it.
func TestAForkFromACheckpointOfAnInterruptedRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("first")
	f.answer(a, "m", "kept")
	f.flush(a)
	st, err := f.threads.State(t.Context(), f.ref)
	f.must(err)
	f.create("rolled back", run.Interrupt)
	request := say("fork", run.Rollback)
	request.Fork = &run.Fork{ID: st.At.ID}
	fork, err := f.runs.Create(t.Context(), f.ref, request)
	f.must(err)
	f.finish(f.claim(fork))
	if diff := cmp.Diff([]string{"human first", "ai kept", "human fork"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

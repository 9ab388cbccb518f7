package run_test

import (
	"context"
	"errors"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// TestAReaderOfNewEventsGetsNoOldOnes reads from now on while a superseded run is not sealed.
func TestAReaderOfNewEventsGetsNoOldOnes(t *testing.T) {
	t.Parallel()
	for name, supersede := range map[string]run.Strategy{"interrupted": run.Interrupt, "rolled back": run.Rollback} {
		f := newFixture(t)
		_, a := f.started("1")
		show(a, "m", "shown")
		f.flush(a)
		second := f.create("2", supersede)
		now, err := f.runs.NewestPosition(t.Context(), f.ref)
		f.must(err)
		b := f.claim(second)
		show(b, "n", "new")
		f.flush(b)
		ctx, leave := context.WithCancel(t.Context())
		err = f.runs.Follow(ctx, f.ref, now, func(part run.Part) error {
			leave()
			if part.Run.Run != second.Run || part.Events[0].Name != run.EventMetadata {
				t.Errorf("%s: the reader gets %s of run %s, want the beginning of %s", name, names(part.Events), part.Run.Run, second.Run)
			}
			return context.Canceled
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

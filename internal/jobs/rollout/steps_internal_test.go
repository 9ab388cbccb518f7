package rollout

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/slipway-run/slipway/internal/base/fault"
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

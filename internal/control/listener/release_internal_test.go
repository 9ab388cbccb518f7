package listener

import (
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

func TestTransitionsAreAmongKnownStatuses(t *testing.T) {
	t.Parallel()
	for from, all := range transitions {
		if !from.mayBecome(leaving) {
			t.Errorf("a release that is %s cannot be removed", from)
		}
		for _, next := range all {
			if transitions[next] == nil {
				t.Errorf("%s leads to %s, which is no status", from, next)
			}
		}
	}
	if healthy.mayBecome(waiting) || leaving.mayBecome(healthy) {
		t.Error("what runs is ordered again, or what leaves comes back by a report")
	}
}

func TestAnUnknownTransitionIsABug(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it was written")
		}
	}()
	(&release{status: healthy}).change(time.Time{}, waiting, table.Attrs{})
}

package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// serves is a deployment whose release cannot be read while err is set.
type serves struct {
	Deployments
	err error
}

func (s *serves) ServingSince(context.Context, string, string, string) (compute.Ref, string, error) {
	return compute.Ref{}, "", s.err
}

// TestATurnIsNotLostWithARunThatCannotBegin checks that a run leaves its turn if its deployment
// cannot be read after the run has waited for the turn. Otherwise each such run would take a turn
// of its deployment away until the process ends.
func TestATurnIsNotLostWithARunThatCannotBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(serves)
		r := New(Config{Deployments: d, Jobs: 1})
		_, _, leave, err := r.turn(t.Context(), t.Context(), run.Ref{}, "")
		check.Must(t, err)
		refused := make(chan error)
		go func() {
			_, _, _, err := r.turn(t.Context(), t.Context(), run.Ref{}, "")
			refused <- err
		}()
		synctest.Wait() // the second run waits for the turn
		d.err = errors.New("the table is busy")
		leave()
		if err := <-refused; !errors.Is(err, d.err) {
			t.Errorf("got %v, want the error of the deployment", err)
		}
		d.err = nil
		_, _, leave, err = r.turn(t.Context(), t.Context(), run.Ref{}, "")
		check.Must(t, err)
		leave()
	})
}

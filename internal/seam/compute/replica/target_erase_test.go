package replica_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/test/check"
)

// slow is a host on which no replica starts, and which takes its time to erase.
type slow struct {
	replica.Host
	begun, end chan struct{}
}

func (s slow) Prepare(context.Context, compute.Release) (replica.Prepared, *compute.Status) {
	return nil, replica.Failed(compute.ReasonStartFailed, "nothing starts here")
}

func (s slow) Erase(compute.Release) error {
	s.begun <- struct{}{}
	<-s.end
	return nil
}

// TestErasingOneReleaseHoldsUpNoOther removes a release that takes long to erase.
func TestErasingOneReleaseHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	host := slow{begun: make(chan struct{}), end: make(chan struct{})}
	target := replica.New(host, replica.Limits{}, nil, slog.New(slog.NewTextHandler(t.Output(), nil)), nil, nil)
	t.Cleanup(func() { target.Close(context.Background()) })
	release := func() compute.Release {
		return compute.Release{Ref: compute.Ref{Workspace: "w", Deployment: "d", Revision: id.New(time.Now())}}
	}
	gone, other := release(), release()
	for _, spec := range []compute.Release{gone, other} {
		check.Must(t, target.Apply(t.Context(), spec))
	}
	check.Must(t, target.Remove(t.Context(), gone.Ref))
	<-host.begun
	if status, err := target.Await(t.Context(), other.Ref); err != nil || status.State != compute.Failed {
		t.Errorf("the other release is %+v, %v", status, err)
	}
	if err := target.Apply(t.Context(), release()); err != nil {
		t.Errorf("one more release: %v", err)
	}
	// Only the same revision has to wait.
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := target.Apply(impatient, gone); !errors.Is(err, context.Canceled) {
		t.Errorf("the same revision is applied while it is being erased: %v", err)
	}
	close(host.end)
	if err := target.Apply(t.Context(), gone); err != nil {
		t.Errorf("the same revision afterwards: %v", err)
	}
	if status, err := target.Await(t.Context(), gone.Ref); err != nil || status.State != compute.Failed {
		t.Errorf("it is %+v, %v", status, err)
	}
}

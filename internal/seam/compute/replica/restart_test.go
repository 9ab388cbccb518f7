package replica_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/test/check"
)

// counting is a host whose replicas are servers of the test. It counts how often it erases.
type counting struct{ erased, ended, probed atomic.Int32 }

func (c *counting) Prepare(_ context.Context, spec compute.Release) (replica.Prepared, *compute.Status) {
	return counted{c, spec}, nil
}

func (*counting) Lone(compute.Release) bool { return false }

func (c *counting) Erase(compute.Release) error {
	c.erased.Add(1)
	return nil
}

type counted struct {
	*counting
	spec compute.Release
}

func (c counted) Release() compute.Release { return c.spec }

func (c counted) Start(context.Context) (replica.Replica, *compute.Status) {
	return &served{httptest.NewServer(nothing), c.counting, make(chan struct{})}, nil
}

// nothing answers every request with 200.
var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// served is a replica that is healthy until it is ended.
type served struct {
	server *httptest.Server
	of     *counting
	done   chan struct{}
}

func (s *served) URL() string           { return s.server.URL }
func (s *served) Done() <-chan struct{} { return s.done }
func (*served) Ended(bool) *compute.Status {
	return replica.Failed(compute.ReasonEnded, "it ended")
}

func (*served) Failure(reason, what string) *compute.Status { return replica.Failed(reason, what) }

func (s *served) End(context.Context) {
	s.server.Close()
	s.of.ended.Add(1)
	close(s.done)
}

// TestGenerationsAreErasedOnce, and not before the last of them has ended. Here the first
// generation ends last.
func TestGenerationsAreErasedOnce(t *testing.T) {
	t.Parallel()
	host := &counting{}
	target := replica.New(host, replica.Limits{}, nil, slog.New(slog.NewTextHandler(t.Output(), nil)), nil, nil)
	spec := compute.Release{Ref: compute.Ref{Workspace: "w", Deployment: "d", Revision: id.New(time.Now())}}
	check.Must(t, target.Apply(t.Context(), spec))
	_, leave, err := target.Acquire(t.Context(), spec.Ref)
	check.Must(t, err)
	for range 2 {
		restartID := id.New(time.Now())
		check.Must(t, target.Restart(t.Context(), spec, restartID))
		if status, err := target.AwaitRestart(t.Context(), spec.Ref, restartID); err != nil || status.State != compute.Healthy {
			t.Fatalf("the restart is %+v, %v", status, err)
		}
	}
	check.Must(t, target.Remove(t.Context(), spec.Ref))
	leave()
	target.Close(t.Context())
	if erased, ended := host.erased.Load(), host.ended.Load(); erased != 1 || ended != 3 {
		t.Errorf("of %d replicas that have ended the rest is erased %d times, want 3 and once", ended, erased)
	}
}

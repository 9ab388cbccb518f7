package replica_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/test/check"
)

// fragile is a host that panics at the point that a release's workspace names.
type fragile struct{ counting }

func (f *fragile) Prepare(ctx context.Context, spec compute.Release) (replica.Prepared, *compute.Status) {
	if spec.Workspace == "prepare" {
		panic("poison")
	}
	return fragilePrepared{counted{&f.counting, spec}}, nil
}

func (f *fragile) Erase(spec compute.Release) error {
	if spec.Workspace == "erase" {
		panic("poison")
	}
	return f.counting.Erase(spec)
}

type fragilePrepared struct{ counted }

func (p fragilePrepared) Start(ctx context.Context) (replica.Replica, *compute.Status) {
	if p.spec.Workspace == "start" {
		panic("poison")
	}
	running, failure := p.counted.Start(ctx)
	return fragileReplica{running.(*served), p.spec.Workspace}, failure
}

// fragileReplica panics at the second call of URL, when the release is about to become
// healthy.
type fragileReplica struct {
	*served
	workspace string
}

func (r fragileReplica) URL() string {
	if r.workspace == "probe" && r.of.probed.Add(1) > 1 {
		panic("poison")
	}
	return r.served.URL()
}

// TestAttackAReleaseWhoseSupervisionPanics fails with a fault of the platform and can be
// removed. The release of another workspace goes on, and so does the target.
func TestAttackAReleaseWhoseSupervisionPanics(t *testing.T) {
	t.Parallel()
	host := &fragile{}
	var alarms atomic.Int32
	alarm := func(_ context.Context, _ compute.Ref, status compute.Status) {
		alarms.Add(1)
		panic("poison: " + status.Reason)
	}
	target := replica.New(host, replica.Limits{}, alarm, slog.New(slog.NewTextHandler(t.Output(), nil)), nil, nil)
	t.Cleanup(func() { target.Close(context.Background()) })
	apply := func(workspace string) compute.Ref {
		ref := compute.Ref{Workspace: workspace, Deployment: "d", Revision: id.New(time.Now())}
		check.Must(t, target.Apply(t.Context(), compute.Release{Ref: ref}))
		return ref
	}
	other := apply("other")
	for _, point := range []string{"prepare", "start", "probe"} {
		ref := apply(point)
		if status, err := target.Await(t.Context(), ref); err != nil || status.State != compute.Failed || status.Reason != compute.ReasonInternal {
			t.Errorf("a panic at %s: the release is %+v, %v; want it failed with %s", point, status, err, compute.ReasonInternal)
		}
		if err := target.Remove(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	erased := apply("erase")
	if err := target.Remove(t.Context(), erased); err != nil {
		t.Error(err)
	}
	if status, err := target.Await(t.Context(), other); err != nil || status.State != compute.Healthy {
		t.Errorf("the other workspace's release is %+v, %v; want it healthy", status, err)
	}
	target.Close(t.Context()) // waits for everything that the target has begun
	if alarms.Load() != 3 {
		t.Errorf("%d alarms, want 3", alarms.Load())
	}
}

// TestAttackARestartThatPanics fails with a fault of the platform, and the previous release
// serves on.
func TestAttackARestartThatPanics(t *testing.T) {
	t.Parallel()
	target := replica.New(&fragile{}, replica.Limits{}, nil, slog.New(slog.NewTextHandler(t.Output(), nil)), nil, nil)
	t.Cleanup(func() { target.Close(context.Background()) })
	ref := compute.Ref{Workspace: "other", Deployment: "d", Revision: id.New(time.Now())}
	check.Must(t, target.Apply(t.Context(), compute.Release{Ref: ref}))
	if status, err := target.Await(t.Context(), ref); err != nil || status.State != compute.Healthy {
		t.Fatalf("the release is %+v, %v", status, err)
	}
	for _, point := range []string{"prepare", "start", "probe"} {
		poisoned, restart := ref, id.New(time.Now())
		poisoned.Workspace = point
		check.Must(t, target.Restart(t.Context(), compute.Release{Ref: poisoned}, restart))
		if status, err := target.AwaitRestart(t.Context(), ref, restart); err != nil || status.State != compute.Failed || status.Reason != compute.ReasonInternal {
			t.Errorf("a panic at %s: the restart is %+v, %v; want it failed with %s", point, status, err, compute.ReasonInternal)
		}
		if status, err := target.Await(t.Context(), ref); err != nil || status.State != compute.Healthy {
			t.Errorf("after a panic at %s the release is %+v, %v; want it healthy", point, status, err)
		}
	}
}

package runner_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// TestAttackARunThatSendsWithoutEnd checks that the run ends with an error that says why, and
// keeps the data that it has sent before.
func TestAttackARunThatSendsWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*runner.Config)
		want   string
	}{
		"events": {func(c *runner.Config) { c.MaxEvents = 50 }, "The run has sent more than 50 events, which is the most that this server takes of one run."},
		"bytes":  {func(c *runner.Config) { c.MaxBytes = 10_000 }, "The run has sent more than 10000 bytes of events, which is the most that this server takes of one run."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, graphtest.Start(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
				for ctx.Err() == nil {
					emit(graph.EventCustom, strings.Repeat("x", 1000))
				}
				return ctx.Err()
			}), c.change)
			ended := f.join(f.create(f.newThread(), "hi", run.Enqueue))
			if ended.Status != run.Error || ended.Failure == nil || ended.Failure.Name != "OutputTooLarge" || ended.Failure.Message != c.want {
				t.Errorf("got %s with %+v", ended.Status, ended.Failure)
			}
			if ended.Position-ended.Start < 5 {
				t.Errorf("%d events were kept", ended.Position-ended.Start)
			}
		})
	}
}

// TestARunThatFindsNoRoom checks that the run ends with an error that says why, and keeps the
// data that it has sent before.
func TestARunThatFindsNoRoom(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	f := newFixture(t, graphtest.Start(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
		for sent := 0; ctx.Err() == nil; sent++ {
			emit(graph.EventCustom, "x")
			full.Store(sent > 100)
		}
		return ctx.Err()
	}), func(c *runner.Config) {
		c.Reserve = func() error {
			if full.Load() {
				return disk.ErrFull
			}
			return nil
		}
	})
	ended := f.join(f.create(f.newThread(), "hi", run.Enqueue))
	if ended.Status != run.Error || ended.Failure == nil || ended.Failure.Name != "OutOfDisk" || ended.Failure.Message != disk.ErrFull.Message {
		t.Errorf("got %s with %+v", ended.Status, ended.Failure)
	}
}

package runner_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/budget"
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

// zeros returns a list of zeros.
func zeros(number int) json.RawMessage {
	return json.RawMessage("[0" + strings.Repeat(",0", number-1) + "]")
}

// TestAttackARunOfManyValues checks that a run whose event has too many values ends with an
// error that says why, and so does a run that makes such a state from many small parts. The
// thread takes the next run.
func TestAttackARunOfManyValues(t *testing.T) {
	t.Parallel()
	const tooMany, half = budget.MostValues + 1, budget.MostValues/2 + 1
	channels := func(emit func(string, any)) {
		for _, name := range []string{"a", "b", "c"} {
			emit(graph.EventUpdates, map[string]any{"agent": map[string]any{name: zeros(half)}})
		}
	}
	const output = "more than 1000000 JSON values in an event, which is the most that this server takes in one event."
	const stateful = "would hold more than 1000000 JSON values"
	for name, c := range map[string]struct {
		attack        func(emit func(string, any))
		failure, text string
	}{
		"values": {func(emit func(string, any)) { emit(graph.EventValues, map[string]any{"a": zeros(tooMany)}) }, "OutputTooLarge", output},
		"update": {func(emit func(string, any)) {
			emit(graph.EventUpdates, map[string]any{"agent": map[string]any{"a": zeros(tooMany)}})
		}, "OutputTooLarge", output},
		"checkpoint": {func(emit func(string, any)) {
			emit(graph.EventCheckpoint, map[string]any{"id": "1", "values": map[string]any{"a": zeros(tooMany)}})
		}, "OutputTooLarge", output},
		"custom":           {func(emit func(string, any)) { emit(graph.EventCustom, zeros(tooMany)) }, "OutputTooLarge", output},
		"updates together": {channels, "StateTooLarge", stateful},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, graphtest.Start(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
				if strings.Contains(string(invocation.Input), "attack") {
					c.attack(emit)
				}
				return nil
			}), nil)
			ref := f.newThread()
			ended := f.join(f.create(ref, "attack", run.Enqueue))
			if ended.Status != run.Error || ended.Failure == nil || ended.Failure.Name != c.failure || !strings.Contains(ended.Failure.Message, c.text) {
				t.Errorf("got %s with %+v", ended.Status, ended.Failure)
			}
			if next := f.join(f.create(ref, "hi", run.Enqueue)); next.Status != run.Success {
				t.Errorf("the next run ended as %s with %+v", next.Status, next.Failure)
			}
			st, err := f.threads.State(t.Context(), ref)
			f.must(err)
			if elements := st.Values.Elements(); elements > budget.MostValues {
				t.Errorf("the state has %d elements", elements)
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

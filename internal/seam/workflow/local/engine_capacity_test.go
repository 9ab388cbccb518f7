package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestRunsWaitForCapacityForHours starts many long runs at once for few workers. Lambda refuses
// the excess, and no run may fail because of that: each reaches its worker in the end. With the
// 12 attempts that the machine once had, three quarters of the first rush and the whole excess of
// the others were given up.
func TestRunsWaitForCapacityForHours(t *testing.T) {
	t.Parallel()
	for _, rush := range []*rush{
		{runs: 100, slots: 5, takes: time.Minute},
		{runs: 400, slots: 300, takes: 10 * time.Minute},
		{runs: 1000, slots: 300, takes: 10 * time.Minute},
	} {
		t.Run(fmt.Sprintf("%d runs on %d slots", rush.runs, rush.slots), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, tb *outsideTable) { rush.check(t, tb) })
		})
	}
}

// rush is a number of runs that begin at once, and a runner with so many slots at which each run
// takes so long.
type rush struct {
	runs, slots int
	takes       time.Duration

	// free holds a value for each slot that has no run.
	free                     chan struct{}
	refused, worked, givenUp atomic.Int64
}

// runner is the function, with the concurrency that its slots allow.
func (r *rush) runner(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	select {
	case <-r.free:
		defer func() { r.free <- struct{}{} }()
	default:
		r.refused.Add(1)
		return nil, &workflow.TaskError{Name: "Lambda.TooManyRequestsException", Cause: "Rate Exceeded."}
	}
	var task struct{ Step string }
	if err := json.Unmarshal(payload, &task); err != nil {
		return nil, err
	}
	if task.Step != "Work" {
		r.givenUp.Add(1)
		return answerJSON("Done"), nil
	}
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.worked.Add(1)
	return answerJSON("Done"), nil
}

// check lets all runs begin, and compares how they ended.
func (r *rush) check(t *testing.T, tb *outsideTable) {
	t.Helper()
	r.free = make(chan struct{}, r.slots)
	for range r.slots {
		r.free <- struct{}{}
	}
	h := newHistory()
	e := newMachines(t, tb, r.runner, h)
	defer cutOff(e)
	began := time.Now()
	names := make([]string, r.runs)
	for i := range names {
		names[i] = fmt.Sprintf("run-%d", i)
		check.Must(t, e.Start(t.Context(), workflow.Run, names[i], []byte(ids)))
	}
	failed := 0
	for _, name := range names {
		h.await(name)
		got, err := e.Describe(t.Context(), workflow.Run, name)
		check.Must(t, err)
		if got.Status != workflow.Succeeded {
			failed++
		}
	}
	t.Logf("all have ended after %s, and %d calls were refused", time.Since(began), r.refused.Load())
	if worked := int(r.worked.Load()); worked != r.runs || failed > 0 || r.givenUp.Load() > 0 {
		t.Errorf("of %d runs, %d were worked on, %d were given up and %d executions failed", r.runs, worked, r.givenUp.Load(), failed)
	}
	if r.refused.Load() < int64(r.runs-r.slots) {
		t.Errorf("%d calls were refused, so the runs did not wait", r.refused.Load())
	}
}

package run_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// handlers encrypt nothing. If they hang, they answer when their caller goes.
type handlers struct {
	hang  atomic.Bool
	asked atomic.Int64
	// opened counts the values that were decrypted, by their fields.
	opened map[string]int
}

func (h *handlers) ask(ctx context.Context, _, _ string, operation graph.Operation, asked graph.Encryption) (answer graph.Ciphered, err error) {
	h.asked.Add(1)
	for _, value := range asked.Values {
		if operation == graph.OperationDecrypt && h.opened != nil {
			h.opened[value.Field]++
		}
	}
	if h.hang.Load() {
		<-ctx.Done()
		return answer, context.Cause(ctx)
	}
	for _, value := range asked.Values {
		answer.Values = append(answer.Values, value.Data)
	}
	return answer, nil
}

// TestAttackTheLeasesOfADeploymentWhoseHandlersHang has leases of such a deployment before the
// lease of another tenant's run, in the same shard.
func TestAttackTheLeasesOfADeploymentWhoseHandlersHang(t *testing.T) {
	t.Parallel()
	var h handlers
	at := new(hand)
	below := fixtures.DomainTable(t, clock.System)
	check.Must(t, below.Transact(t.Context(), cipher.Mark("w", "d", clock.System())))
	encrypted, err := cipher.Open(t.Context(), below, at.now, h.ask)
	check.Must(t, err)
	f := newFixtureOn(t, encrypted)
	create := func(ref thread.Ref) run.Run {
		ref.Thread = id.New(clock.System())
		_, err := f.threads.Create(t.Context(), ref, nil, nil, false)
		check.Must(t, err)
		r, err := f.runs.Create(t.Context(), ref, say("1", run.Enqueue))
		check.Must(t, err)
		return r
	}
	shardOf := func(r run.Run) string { return keys.Leases.At(r.Run, time.Time{}).PK }
	hung := []run.Run{create(f.ref)}
	for len(hung) < 3 {
		if r := create(f.ref); shardOf(r) == shardOf(hung[0]) {
			hung = append(hung, r)
		} else {
			check.Must(t, below.Transact(t.Context(), table.Delete{Key: r.Key()}))
		}
	}
	others := create(thread.Ref{Workspace: "w2", Deployment: "d2"})
	for shardOf(others) != shardOf(hung[0]) {
		others = create(thread.Ref{Workspace: "w2", Deployment: "d2"})
	}
	f.lost()
	h.hang.Store(true)
	h.asked.Store(0)
	f.hand.move(time.Hour)
	if err := f.runs.Rescue(t.Context(), f.hand.now()); !cipher.IsUnavailable(err) {
		t.Errorf("got %v", err)
	}
	if names := f.engine.names(); !slices.Contains(names, others.Run) || slices.Contains(names, hung[0].Run) || h.asked.Load() != 1 {
		t.Errorf("started %v after %d questions", names, h.asked.Load())
	}
	h.hang.Store(false)
	at.move(time.Minute)
	f.hand.move(time.Minute)
	check.Must(t, f.runs.Rescue(t.Context(), f.hand.now()))
	for _, r := range hung {
		if names := f.engine.names(); !slices.Contains(names, r.Run) {
			t.Errorf("after the handlers answer again, %v are started", names)
		}
	}
}

// TestARollbackDecryptsNoEvents: what is erased need not be read.
func TestARollbackDecryptsNoEvents(t *testing.T) {
	t.Parallel()
	h := handlers{opened: map[string]int{}}
	below := fixtures.DomainTable(t, clock.System)
	check.Must(t, below.Transact(t.Context(), cipher.Mark("w", "d", clock.System())))
	encrypted, err := cipher.Open(t.Context(), below, clock.System, h.ask)
	check.Must(t, err)
	f := newFixtureOn(t, encrypted)
	r, a := f.started("first")
	for range 5 {
		show(a, "m", "shown")
		f.flush(a)
	}
	f.must(a.Checkpoint(graph.Checkpoint{ID: "c1", Values: []byte(`{"n":1}`), Next: []string{"more"}, Data: []byte("data")}))
	f.must(a.Writes(graph.Writes{CheckpointID: "c1", TaskID: "t1", Data: []byte("result")}))
	f.flush(a)
	h.opened = map[string]int{}
	f.must(f.runs.Cancel(t.Context(), r.Ref, run.ActionRollback))
	if h.opened["events"] > 0 || h.opened["kwargs"] == 0 {
		t.Errorf("decrypted %v", h.opened)
	}
}

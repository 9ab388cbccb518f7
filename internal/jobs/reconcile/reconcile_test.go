package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/jobs/reconcile"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

var errTable = errors.New("the table has trouble")

// asked is a table that has no items due, or fails, and records the queries.
type asked struct {
	table.Table
	trouble bool
	// stuck makes it give no answer.
	stuck    bool
	rollouts atomic.Int64
	leases   atomic.Int64
	to       atomic.Value
}

func (a *asked) Query(ctx context.Context, query table.Query) (table.Page, error) {
	if a.stuck {
		<-ctx.Done()
		return table.Page{}, ctx.Err()
	}
	if query.PK == "ROLLOUTS" {
		a.rollouts.Add(1)
		a.to.Store(query.To)
	} else {
		a.leases.Add(1)
	}
	if a.trouble {
		return table.Page{}, errTable
	}
	return table.Page{}, nil
}

func reconciler(tb table.Table, now func() time.Time, log *slog.Logger) *reconcile.Reconciler {
	deployments := deployment.NewStore(deployment.Config{Table: tb, Now: now, Log: log})
	return &reconcile.Reconciler{
		Runs:    run.NewStore(run.Config{Table: tb, Threads: thread.NewStore(tb, now, quota.Limits{}, slog.Default()), Now: now}),
		Rollout: rollout.New(rollout.Config{Deployments: deployments, Now: now, Log: log}),
		Now:     now, Log: log,
	}
}

func TestAPassLooksAtRolloutsAndRunsThatAreDue(t *testing.T) {
	t.Parallel()
	tb := &asked{}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	check.Must(t, reconciler(tb, time.Now, slog.New(slog.DiscardHandler)).Once(t.Context(), at))
	if got := tb.to.Load(); tb.rollouts.Load() != 1 || tb.leases.Load() == 0 || !strings.HasPrefix(got.(string), "2026-03-01T12:00:00.000000Z") {
		t.Errorf("asked %d times for rollouts up to %v, %d times for runs", tb.rollouts.Load(), got, tb.leases.Load())
	}
}

// TestTroubleWithOneKindDoesNotKeepTheOther checks that rollouts, runs and the clients of runs are
// looked at, and all errors returned.
func TestTroubleWithOneKindDoesNotKeepTheOther(t *testing.T) {
	t.Parallel()
	tb := &asked{trouble: true}
	err := reconciler(tb, time.Now, slog.New(slog.DiscardHandler)).Once(t.Context(), time.Now())
	if !errors.Is(err, errTable) || tb.rollouts.Load() != 1 || tb.leases.Load() == 0 || strings.Count(err.Error(), errTable.Error()) != 3 {
		t.Errorf("got %v after %d and %d queries, want three errors", err, tb.rollouts.Load(), tb.leases.Load())
	}
}

// TestAPassSweepsAfterTheRescues, whatever their results, and returns the errors of all three.
func TestAPassSweepsAfterTheRescues(t *testing.T) {
	t.Parallel()
	for _, trouble := range []bool{false, true} {
		tb, errSweep := &asked{trouble: trouble}, errors.New("it cannot be swept")
		r := reconciler(tb, time.Now, slog.New(slog.DiscardHandler))
		r.Sweep = func(context.Context) error {
			if tb.rollouts.Load() == 0 || tb.leases.Load() == 0 {
				t.Error("it sweeps before the rescues")
			}
			return errSweep
		}
		if err := r.Once(t.Context(), time.Now()); !errors.Is(err, errSweep) || errors.Is(err, errTable) != trouble {
			t.Errorf("trouble %v: got %v", trouble, err)
		}
	}
}

// TestAPassEndsBeforeItsDeadline without an error, at whatever point it is then.
func TestAPassEndsBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	stuck := map[string]func(r *reconcile.Reconciler, tb *asked){
		"in a rescue": func(r *reconcile.Reconciler, tb *asked) {
			tb.stuck = true
			r.Sweep = func(context.Context) error { t.Error("it sweeps though its time is up"); return nil }
		},
		"in the sweep": func(r *reconcile.Reconciler, _ *asked) {
			r.Sweep = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		},
	}
	for name, stick := range stuck {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tb := &asked{}
				r := reconciler(tb, time.Now, slog.New(slog.DiscardHandler))
				stick(r, tb)
				ctx, stop := context.WithTimeout(t.Context(), 55*time.Second)
				defer stop()
				began := time.Now()
				err := r.Once(ctx, time.Now())
				if took := time.Since(began); err != nil || took < 40*time.Second || took > 50*time.Second {
					t.Errorf("got %v after %s", err, took)
				}
			})
		})
	}
}

// TestEveryMakesAPassEachInterval advances the clock by an hour at once.
func TestEveryMakesAPassEachInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := &asked{trouble: true}
		var log bytes.Buffer
		// The last pass has a second.
		ctx, stop := context.WithTimeout(t.Context(), time.Hour+9*time.Second)
		defer stop()
		reconciler(tb, time.Now, slog.New(slog.NewTextHandler(&log, nil))).Every(ctx, 10*time.Second)
		if got := tb.rollouts.Load(); got != 360 {
			t.Errorf("got %d passes in an hour, want 360", got)
		}
		if got := strings.Count(log.String(), "msg=reconcile"); got != 360 {
			t.Errorf("trouble was logged %d times, want 360", got)
		}
	})
}

// TestAttackARescueThatPanics: the panic is an error of its pass, in which the other rescues
// are done.
func TestAttackARescueThatPanics(t *testing.T) {
	t.Parallel()
	tb := &asked{}
	r := reconciler(tb, time.Now, slog.New(slog.NewTextHandler(t.Output(), nil)))
	r.Ends = func(context.Context) error { panic("poison in ends") }
	r.Sweep = func(context.Context) error { panic("poison in sweep") }
	err := r.Once(t.Context(), time.Now())
	if err == nil || !strings.Contains(err.Error(), "poison in ends") || !strings.Contains(err.Error(), "poison in sweep") || tb.leases.Load() == 0 {
		t.Errorf("got %v, want both panics as errors", err)
	}
}

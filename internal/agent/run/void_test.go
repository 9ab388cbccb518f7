package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// loseBetween flushes a batch of a number of events, and loses the run after the batch is stored
// and before the run's position is moved. If the worker dies then, the void batch stays.
func (f *fixture) loseBetween(a *run.Attempt, events int, dies bool, lose func()) {
	f.t.Helper()
	for i := range events {
		show(a, "m", fmt.Sprint("void ", i))
	}
	f.table.beforeNext(func() { // the batch
		f.table.beforeNext(func() { // the move
			lose()
			if dies {
				f.table.beforeNext(func() { // the erasure
					panic(errDead)
				})
			}
		})
	})
	defer func() {
		if died := recover(); died != nil && died != errDead {
			panic(died)
		}
	}()
	f.wantFenced(a.Flush(f.t.Context()))
}

const errDead = "the worker is dead"

// voids returns the number of stored batches with void text.
func (f *fixture) voids() int {
	n := 0
	for _, item := range f.items() {
		if strings.HasPrefix(item.Key.SK, "EV#") && strings.Contains(string(item.Body), "void") {
			n++
		}
	}
	return n
}

// TestAVoidBatchIsNeverSeen lets a worker lose its run between the two writes of a flush, in each
// way, with batches that end before, at and after the end of the next worker's batches. The worker
// erases its batch, or dies first.
func TestAVoidBatchIsNeverSeen(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(f *fixture, r run.Run) run.Run{
		"an interrupt": func(f *fixture, _ run.Run) run.Run { return f.create("next", run.Interrupt) },
		"a cancel": func(f *fixture, r run.Run) run.Run {
			f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionInterrupt))
			return f.create("next", run.Enqueue)
		},
		"a rollback": func(f *fixture, _ run.Run) run.Run { return f.create("next", run.Rollback) },
		"a failure": func(f *fixture, r run.Run) run.Run {
			f.must(f.runs.Fail(f.t.Context(), r.Ref, run.Failure{Name: "F"}))
			return f.create("next", run.Enqueue)
		},
		"another worker": func(f *fixture, r run.Run) run.Run { f.claim(r); return r },
	} {
		for events := 1; events <= 5; events++ {
			for _, dies := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d events, dies: %v", name, events, dies), func(t *testing.T) {
					t.Parallel()
					f := newFixture(t)
					r, a := f.started("hi")
					show(a, "m", "shown")
					f.flush(a)
					var next run.Run
					f.loseBetween(a, events, dies, func() { next = lose(f, r) })
					if left := f.voids(); left > 0 && !dies {
						t.Errorf("the worker has left %d batches", left)
					}
					b := f.claim(next)
					for range 2 {
						show(b, "n", "seen")
						show(b, "n", ", too. ")
						f.flush(b)
					}
					f.finish(b)
					for _, shown := range []run.Run{r, next} {
						if got, err := f.runs.Get(t.Context(), shown.Ref); err == nil {
							f.wantNoVoid(got)
						}
					}
					if text := strings.Join(f.messages(), "\n"); strings.Contains(text, "void") {
						t.Errorf("the state has\n%s", text)
					}
				})
			}
		}
	}
}

// wantNoVoid reads a run from each of its positions, and checks that each event comes once.
func (f *fixture) wantNoVoid(r run.Run) {
	f.t.Helper()
	for after := r.Start; after < r.Position; after++ {
		want := after + 1
		for _, event := range f.replay(r, after) {
			if strings.Contains(string(event.Data), "void") || event.Position != want {
				f.t.Errorf("run %s after %d: position %d is %s, want position %d", r.Run, after, event.Position, event.Data, want)
			}
			want = event.Position + 1
		}
		if want != r.Position+1 {
			f.t.Errorf("run %s after %d ends before %d, want %d", r.Run, after, want, r.Position+1)
		}
	}
}

// TestAVoidBatchGoesWithItsRun deletes, or rolls back, the run of a worker that died between the
// two writes of a flush. The events of the next run stay.
func TestAVoidBatchGoesWithItsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("hi")
	var next run.Run
	f.loseBetween(a, 3, true, func() { next = f.create("next", run.Interrupt) })
	f.messages() // this seals the run
	if f.voids() != 1 {
		t.Fatalf("got %d void batches, want 1", f.voids())
	}
	b := f.claim(next)
	f.flush(b)
	show(b, "n", "seen")
	f.flush(b)
	f.must(f.runs.Delete(t.Context(), r.Ref))
	if f.voids() != 0 {
		t.Error("the void batch of the deleted run is left")
	}
	f.finish(b)
	f.wantNoVoid(f.get(next))
	_, c := f.started("again")
	f.loseBetween(c, 3, true, func() { f.create("last", run.Rollback) })
	f.messages()
	if f.voids() != 0 {
		t.Error("the void batch of the removed run is left")
	}
}

// TestALateBatchReplacesNoOther lets a worker store its batch after the next worker has stored
// batches at the same positions.
func TestALateBatchReplacesNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("hi")
	show(a, "m", "void")
	var b *run.Attempt
	f.table.beforeNext(func() { b = f.claim(r) })
	f.wantFenced(a.Flush(t.Context()))
	f.finish(b)
	f.wantNoVoid(f.get(r))
	if f.voids() != 0 {
		t.Error("the late batch is stored")
	}
}

// twice is a table that applies each write in order twice, as a client does that got no answer to
// the first request. between, if not nil, is called before the second move of a run.
type twice struct {
	table.Table
	between func()
}

func (w *twice) InOrder(ctx context.Context, writes ...table.Write) error {
	for i, write := range writes {
		err := w.Table.InOrder(ctx, write)
		if err == nil {
			if w.between != nil && i == len(writes)-1 {
				w.between()
			}
			err = w.Table.InOrder(ctx, write)
		}
		if failed, ok := errors.AsType[*table.ConditionFailed](err); ok {
			failed.Write = i
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestAFlushThatIsAppliedTwice checks that a worker whose flush was sent twice goes on, also if a
// reader has come between, and that its events are kept if it loses the run between.
func TestAFlushThatIsAppliedTwice(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(f *fixture, r run.Run){
		"nothing":      nil,
		"a reader":     func(f *fixture, r run.Run) { f.follow(r, 0).until(run.EventMetadata) },
		"an interrupt": func(f *fixture, _ run.Run) { f.create("next", run.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tb := &twice{Table: f.table}
			f.runs = run.NewStore(run.Config{Table: tb, Threads: f.threads, Workflow: f.engine, Paced: true, Now: f.hand.now})
			r, a := f.started("hi")
			if between != nil {
				tb.between = func() { between(f, r) }
			}
			show(a, "m", "kept")
			err := a.Flush(t.Context())
			tb.between = nil
			if name == "an interrupt" {
				f.wantFenced(err)
			} else {
				f.must(err)
				show(a, "m", " and more")
				f.flush(a)
				f.finish(a)
			}
			got := f.get(r)
			f.wantNoVoid(got)
			events := f.replay(got, 0)
			if !slices.ContainsFunc(events, func(e run.Event) bool { return strings.Contains(string(e.Data), "kept") }) {
				t.Errorf("the events are %v", events)
			}
		})
	}
}

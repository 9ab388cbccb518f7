package run_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAWorkerThatLostItsRunWritesNothing compares all stored items before and after the
// worker's late writes.
func TestAWorkerThatLostItsRunWritesNothing(t *testing.T) {
	t.Parallel()
	losses := map[string]func(f *fixture, r run.Run, a *run.Attempt){
		"by an interrupt": func(f *fixture, _ run.Run, _ *run.Attempt) { f.create("next", run.Interrupt) },
		"by an interrupt, sealed": func(f *fixture, _ run.Run, _ *run.Attempt) {
			f.create("next", run.Interrupt)
			f.messages()
		},
		"by an interrupt, whose run is over": func(f *fixture, _ run.Run, _ *run.Attempt) {
			f.finish(f.claim(f.create("next", run.Interrupt)))
		},
		"by a cancel": func(f *fixture, r run.Run, _ *run.Attempt) {
			f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionInterrupt))
		},
		"by a cancel that undoes": func(f *fixture, r run.Run, _ *run.Attempt) {
			f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionRollback))
		},
		"by a rollback": func(f *fixture, _ run.Run, _ *run.Attempt) { f.create("next", run.Rollback) },
		"by a rollback, erased": func(f *fixture, _ run.Run, _ *run.Attempt) {
			f.create("next", run.Rollback)
			f.messages()
		},
		"by a rollback, whose run is over": func(f *fixture, _ run.Run, _ *run.Attempt) {
			f.finish(f.claim(f.create("next", run.Rollback)))
		},
		"by a takeover": func(f *fixture, r run.Run, _ *run.Attempt) { f.claim(r) },
		"by a takeover that has ended the run": func(f *fixture, r run.Run, _ *run.Attempt) {
			f.finish(f.claim(r))
		},
		"by its own success":  func(f *fixture, _ run.Run, a *run.Attempt) { f.finish(a) },
		"by its own handover": func(f *fixture, _ run.Run, a *run.Attempt) { f.handOver(a) },
		"by a failure": func(f *fixture, r run.Run, _ *run.Attempt) {
			f.must(f.runs.Fail(f.t.Context(), r.Ref, run.Failure{Name: "F"}))
		},
	}
	failure := &run.Failure{Name: "late"}
	writes := map[string]func(f *fixture, a *run.Attempt) error{
		"hand over": func(f *fixture, a *run.Attempt) error { return a.HandOver(f.t.Context()) },
		"flush":     func(f *fixture, a *run.Attempt) error { return a.Flush(f.t.Context()) },
		"finish":    func(f *fixture, a *run.Attempt) error { return finishAs(run.Success)(f, run.Run{}, a) },
		"finish failed": func(f *fixture, a *run.Attempt) error {
			return a.Finish(f.t.Context(), run.Outcome{Status: run.Error, Failure: failure})
		},
	}
	for loss, lose := range losses {
		for name, write := range writes {
			t.Run(name+" after a loss "+loss, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				r, a := f.started("x")
				show(a, "m", "shown")
				f.flush(a)
				lose(f, r, a)
				before := f.items()
				show(a, "m", ", and late")
				f.answer(a, "late", "late")
				f.wantFenced(write(f, a))
				show(a, "m", ", and later")
				f.wantFenced(write(f, a))
				if diff := cmp.Diff(before, f.items()); diff != "" {
					t.Errorf("stored items (-before +after):\n%s", diff)
				}
				if err := a.CheckOwned(t.Context()); !errors.Is(err, run.ErrFenced) {
					t.Errorf("Owned: got %v, want ErrFenced", err)
				}
			})
		}
	}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	check.Must(f.t, err)
}

func TestAWorkerOwnsItsRunUntilItLosesIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("x")
	f.must(a.CheckOwned(t.Context()))
	watcher := a.WatchLoss()
	defer watcher.Stop()
	f.create("next", run.Interrupt)
	<-watcher.C()
	f.wantFenced(a.CheckOwned(t.Context()))
}

// TestFinishAndInterrupt forces both orders. The process that commits first decides the
// result, which then never changes.
func TestFinishAndInterrupt(t *testing.T) {
	t.Parallel()
	t.Run("interrupt first", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		r, a := f.started("1")
		show(a, "m", "Hel")
		f.flush(a)
		f.answer(a, "m", "Hello")
		f.table.beforeNext(func() { f.create("2", run.Interrupt) })
		f.wantFenced(finishAs(run.Success)(f, r, a))
		if diff := cmp.Diff([]string{"human 1", "ai Hel..."}, f.messages()); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		if got := f.get(r).Status; got != run.Interrupted {
			t.Errorf("got status %s, want interrupted", got)
		}
	})
	t.Run("finish first", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		r, a := f.started("1")
		show(a, "m", "Hel")
		f.flush(a)
		f.answer(a, "m", "Hello")
		f.table.beforeNext(func() { f.finish(a) })
		f.finish(f.claim(f.create("2", run.Interrupt)))
		if diff := cmp.Diff([]string{"human 1", "ai Hello", "human 2"}, f.messages()); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		if got := f.get(r).Status; got != run.Success {
			t.Errorf("got status %s, want success", got)
		}
	})
}

// TestFinishAndEnqueue forces both orders: the queued run always gets its turn.
func TestFinishAndEnqueue(t *testing.T) {
	t.Parallel()
	for name, race := range map[string]func(f *fixture, a *run.Attempt) (second run.Run){
		"enqueue first": func(f *fixture, a *run.Attempt) (second run.Run) {
			f.table.beforeNext(func() { second = f.create("2", run.Enqueue) })
			f.finish(a)
			return second
		},
		"finish first": func(f *fixture, a *run.Attempt) (second run.Run) {
			f.table.beforeNext(func() { f.finish(a) })
			return f.create("2", run.Enqueue)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first, a := f.started("1")
			second := race(f, a)
			if diff := cmp.Diff([]string{first.Run, second.Run}, f.engine.names()); diff != "" {
				t.Errorf("started workflows (-want +got):\n%s", diff)
			}
			f.finish(f.claim(second))
			if diff := cmp.Diff([]string{"human 1", "human 2"}, f.messages()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFailAndFinish lets a worker end the run between the reading and the writing of a process
// that gives the run up.
func TestFailAndFinish(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.answer(a, "m", "Hello")
	f.table.beforeNext(func() { f.finish(a) })
	f.must(f.runs.Fail(t.Context(), r.Ref, run.Failure{Name: "F"}))
	if got := f.get(r); got.Status != run.Success || got.Failure != nil {
		t.Errorf("got status %s, failure %v, want success", got.Status, got.Failure)
	}
}

// TestFailAndFlush lets the worker flush between the reading and the writing of Fail: the
// output that it showed is kept.
func TestFailAndFlush(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	show(a, "m", "late but shown")
	f.table.beforeNext(func() { f.flush(a) })
	f.must(f.runs.Fail(t.Context(), r.Ref, run.Failure{Name: "F"}))
	if diff := cmp.Diff([]string{"human 1", "ai late but shown..."}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestTwoWorkersClaimARun lets the second worker claim the run between the first worker's
// reading and writing.
func TestTwoWorkersClaimARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	var quick *run.Attempt
	f.table.beforeNext(func() { quick = f.claim(r) })
	slow := f.claim(r)
	if quick.Run.Attempt != 1 || slow.Run.Attempt != 2 {
		t.Errorf("got attempts %d and %d, want 1 and 2", quick.Run.Attempt, slow.Run.Attempt)
	}
	show(quick, "m", "x")
	f.wantFenced(quick.Flush(t.Context()))
	f.finish(slow)
	if diff := cmp.Diff([]string{"human 1"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestManyWorkersClaimARun checks that each attempt number is given out once, and that all
// workers except one are fenced off.
func TestManyWorkersClaimARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	attempts := make([]*run.Attempt, 8)
	var workers sync.WaitGroup
	for i := range attempts {
		workers.Go(func() {
			a, err := f.runs.Claim(t.Context(), r.Ref, 0)
			if err != nil && !errors.Is(err, run.ErrAttemptsExhausted) {
				t.Error(err)
			}
			if err == nil {
				attempts[i] = a
			}
		})
	}
	workers.Wait()
	numbers, wrote := map[int64]int{}, 0
	for i, a := range attempts {
		if a == nil {
			continue
		}
		numbers[a.Run.Attempt]++
		show(a, strconv.Itoa(i), "x")
		if err := a.Flush(t.Context()); err == nil {
			wrote++
		} else {
			f.wantFenced(err)
		}
	}
	if diff := cmp.Diff(map[int64]int{1: 1, 2: 1, 3: 1}, numbers); diff != "" {
		t.Errorf("workers by attempt (-want +got):\n%s", diff)
	}
	if wrote != 1 {
		t.Errorf("%d workers could write, want 1", wrote)
	}
}

// TestALateFlushBeforeATakeover lets the old worker flush between the next worker's reading
// and writing: the next worker goes on from the flushed state.
func TestALateFlushBeforeATakeover(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, zombie := f.started("1")
	f.answer(zombie, "m", "one")
	f.table.beforeNext(func() { f.flush(zombie) })
	a := f.claim(r)
	if diff := cmp.Diff([]string{"human 1", "ai one"}, f.read(a.Log.State)); diff != "" {
		t.Errorf("state of the next attempt (-want +got):\n%s", diff)
	}
	f.answer(a, "n", "two")
	f.finish(a)
	if diff := cmp.Diff([]string{"human 1", "ai one", "ai two"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got, want := names(f.replay(r, 0)), "metadata values updates values metadata updates values"; got != want {
		t.Errorf("got events %s\nwant %s", got, want)
	}
}

func TestARunHasThreeAttempts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create("1", run.Enqueue)
	for range run.MaxAttempts {
		f.claim(r)
	}
	if _, err := f.runs.Claim(t.Context(), r.Ref, 0); !errors.Is(err, run.ErrAttemptsExhausted) {
		t.Fatalf("got %v, want ErrAttemptsExhausted", err)
	}
	f.must(f.runs.Fail(t.Context(), r.Ref, run.Failure{Name: "F", Message: "m"}))
	if _, err := f.runs.Claim(t.Context(), r.Ref, 0); !errors.Is(err, run.ErrNothingToDo) {
		t.Errorf("after its failure: got %v, want ErrNothingToDo", err)
	}
	if diff := cmp.Diff([]string{"human 1"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestAFullAttemptFitsIntoATransaction adds the largest number of writes that one event may
// add to an attempt that is nearly full.
func TestAFullAttemptFitsIntoATransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r, a := f.started("1")
	f.create("2", run.Enqueue) // the end of the first run also promotes this run
	for i := 0; ; i++ {
		next := "m" + strconv.Itoa(i)
		f.answer(a, next, next)
		if a.Full() {
			break
		}
	}
	show(a, "open", "unfinished")
	nodes := `{"n":{"messages":"x"}`
	for i := range 31 {
		nodes += `,"n` + strconv.Itoa(i) + `":{"messages":"x"}`
	}
	f.must(a.Update(run.EventUpdates, []byte(nodes+`}`)))
	f.must(a.Finish(t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E"}}))
	if got := f.get(r).Status; got != run.Error {
		t.Errorf("got status %s, want error", got)
	}
	if err := a.Update(run.EventUpdates, []byte(nodes+`,"more":{"messages":"x"}}`)); err == nil {
		t.Error("an event that updates 33 nodes was accepted")
	}
}

// TestAnAttemptIsFull checks that bytes and events also make an attempt full.
func TestAnAttemptIsFull(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	f.flush(a) // the values event with the run's input
	for range 255 {
		show(a, "m", "x")
	}
	if a.Full() {
		t.Error("255 small events fill an attempt")
	}
	show(a, "m", "x")
	if !a.Full() {
		t.Error("256 events do not fill an attempt")
	}
	f.flush(a)
	if a.Full() || a.HasUnflushed() {
		t.Error("an attempt is full after its flush")
	}
	a.Show("custom", []byte(`"`+string(make([]byte, 1<<20))+`"`))
	if !a.Full() {
		t.Error("a megabyte does not fill an attempt")
	}
}

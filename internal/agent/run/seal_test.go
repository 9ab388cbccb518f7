package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestWhatAnInterruptedRunShowedIsKept(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		work func(f *fixture, a *run.Attempt)
		want []string // between the two inputs
	}{
		"nothing": {func(*fixture, *run.Attempt) {}, nil},
		"text": {func(_ *fixture, a *run.Attempt) {
			show(a, "m", "Hel")
			show(a, "m", "lo")
		}, []string{"ai Hello..."}},
		"finished and unfinished messages": {func(f *fixture, a *run.Attempt) {
			show(a, "m", "Hello")
			f.answer(a, "m", "Hello!")
			show(a, "n", "How a")
		}, []string{"ai Hello!", "ai How a..."}},
		"several messages at once": {func(_ *fixture, a *run.Attempt) {
			show(a, "m", "A")
			show(a, "n", "B")
			show(a, "m", "a")
		}, []string{"ai Aa...", "ai B..."}},
		"one of several finished": {func(f *fixture, a *run.Attempt) {
			show(a, "m", "A")
			show(a, "n", "B")
			f.answer(a, "m", "A!")
			show(a, "n", "b")
		}, []string{"ai A!", "ai Bb..."}},
		"a finished message": {func(f *fixture, a *run.Attempt) {
			show(a, "m", "Hello")
			f.answer(a, "m", "Hello!")
		}, []string{"ai Hello!"}},
		"only a tool call": {func(_ *fixture, a *run.Attempt) {
			a.Show(run.EventMessages, json.RawMessage(`[{"id":"m","type":"AIMessageChunk","content":"","tool_call_chunks":[{"name":"f","args":"{"}]},{}]`))
		}, nil},
		"blocks, with odd metadata": {func(_ *fixture, a *run.Attempt) {
			a.Show(run.EventMessages, json.RawMessage(`[{"id":"m","content":[{"type":"text","text":"Hi"}]},{"id":7}]`))
		}, []string{"ai Hi..."}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first, a := f.started("one")
			test.work(f, a)
			f.flush(a)
			second := f.create("two", run.Interrupt)
			kept := append([]string{"human one"}, test.want...)
			// The state that readers get before the successor begins.
			if diff := cmp.Diff(kept, f.messages()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			b := f.claim(second)
			f.answer(b, "b", "two!")
			f.finish(b)
			if diff := cmp.Diff(append(slices.Clip(kept), "human two", "ai two!"), f.messages()); diff != "" {
				t.Errorf("messages at the end (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(kept, f.result(first)); diff != "" {
				t.Errorf("what the first run left behind (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWasNotShownIsNotKept lets a worker die with a chunk that no reader has seen.
func TestWhatWasNotShownIsNotKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("one")
	show(a, "m", "seen")
	f.flush(a)
	show(a, "m", ", unseen")
	f.create("two", run.Interrupt)
	if diff := cmp.Diff([]string{"human one", "ai seen..."}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestInputsOfRunsThatNeverStartedAreKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.create("1", run.Enqueue) // no worker has claimed it yet
	second := f.create("2", run.Enqueue)
	third := f.create("3", run.Interrupt)
	fourth := f.create("4", run.Enqueue)
	if diff := cmp.Diff([]string{"human 1", "human 2"}, f.messages()); diff != "" {
		t.Errorf("messages after the interrupt (-want +got):\n%s", diff)
	}
	f.finish(f.claim(third))
	f.create("5", run.Interrupt)
	if diff := cmp.Diff([]string{"human 1", "human 2", "human 3", "human 4"}, f.messages()); diff != "" {
		t.Errorf("messages after the next interrupt (-want +got):\n%s", diff)
	}
	want := []run.Status{run.Interrupted, run.Interrupted, run.Success, run.Interrupted}
	if diff := cmp.Diff(want, f.statuses(first, second, third, fourth)); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"human 1"}, f.result(first)); diff != "" {
		t.Errorf("what the first run left behind (-want +got):\n%s", diff)
	}
}

// TestInputsAreKeptOfInterruptsOnly checks this also if some runs were interrupted and others
// cancelled before anything was sealed.
func TestInputsAreKeptOfInterruptsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("1", run.Enqueue)
	f.create("2", run.Enqueue)
	f.create("3", run.Interrupt)
	f.create("4", run.Enqueue)
	_, err := f.runs.CancelThread(t.Context(), f.ref, run.ActionInterrupt)
	f.must(err)
	f.create("5", run.Enqueue)
	f.create("6", run.Enqueue)
	f.table.afterNext(func() { f.table.dead.Store(true) })
	_, err = f.runs.CancelThread(t.Context(), f.ref, run.ActionInterrupt)
	f.must(err)
	f.table.dead.Store(false)
	if lock := f.thread().Lock; !lock.Unsealed {
		t.Fatalf("the thread is sealed: %+v", lock)
	}
	f.create("7", run.Enqueue)
	f.create("8", run.Interrupt)
	if diff := cmp.Diff([]string{"human 1", "human 2", "human 7"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestInputThatIsNoObjectIsTheGraphsOwnMatter checks this also if the run never started.
func TestInputThatIsNoObjectIsTheGraphsOwnMatter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, raw := range []string{`"text"`, `null`, `[1]`, ``} {
		if _, err := f.runs.Create(t.Context(), f.ref, run.Request{Strategy: run.Interrupt, Payload: run.Payload{Input: input(raw)}}); err != nil {
			t.Fatal(err)
		}
	}
	f.finish(f.claim(f.create("1", run.Interrupt)))
	if diff := cmp.Diff([]string{"human 1"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestARemovalThatWaitedTooLongStopsNobody interrupts a queued run whose input would have
// removed a message that another run removed.
func TestARemovalThatWaitedTooLongStopsNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	f.finish(a)
	remove := run.Request{Strategy: run.Enqueue, Payload: run.Payload{Input: input(`{"messages":[{"type":"remove","id":"1"}]}`)}}
	for range 2 {
		if _, err := f.runs.Create(t.Context(), f.ref, remove); err != nil {
			t.Fatal(err)
		}
	}
	f.finish(f.claim(f.create("2", run.Interrupt)))
	if diff := cmp.Diff([]string{"human 2"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestSealingTwiceFoldsOnce lets a second process seal the thread after the first process has
// read and before it writes.
func TestSealingTwiceFoldsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	show(a, "m", "partial")
	f.flush(a)
	f.create("2", run.Enqueue)
	f.create("3", run.Interrupt)
	f.table.beforeNext(func() {
		if _, err := f.otherProcess().Seal(t.Context(), f.ref); err != nil {
			t.Error(err)
		}
	})
	want := []string{"human 1", "ai partial...", "human 2"}
	if diff := cmp.Diff(want, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	f.table.transactions.Store(0)
	if diff := cmp.Diff(want, f.messages()); diff != "" {
		t.Errorf("messages when read again (-want +got):\n%s", diff)
	}
	if got := f.table.transactions.Load(); got != 0 {
		t.Errorf("reading a sealed thread wrote %d times", got)
	}
}

// awaited is a context that says, by closing a channel, when a function begins to wait for its end.
type awaited struct {
	context.Context
	begun func()
}

func (a awaited) Done() <-chan struct{} {
	a.begun()
	return a.Context.Done()
}

// TestSealersOfOneProcessWriteOnce lets a reader come while another sealer is about to write: the
// reader waits for it, and does not do the same work in vain.
func TestSealersOfOneProcessWriteOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, a := f.started("1")
	show(a, "m", "partial")
	f.flush(a)
	f.create("2", run.Interrupt)
	unsealed, err := f.threads.Get(t.Context(), f.ref)
	f.must(err)
	begun, read := make(chan struct{}), make(chan thread.State, 1)
	ctx := awaited{context.WithValue(t.Context(), aside{}, true), sync.OnceFunc(func() { close(begun) })}
	f.table.beforeNext(func() {
		go func() {
			_, st, err := f.runs.StateOf(ctx, unsealed)
			if err != nil {
				t.Error(err)
			}
			read <- st
		}()
		<-begun
	})
	f.table.transactions.Store(0)
	want := f.messages()
	if diff := cmp.Diff(want, f.read(<-read)); diff != "" {
		t.Errorf("the state that the waiting reader got (-want +got):\n%s", diff)
	}
	if got := f.table.transactions.Load(); got != 1 {
		t.Errorf("the sealers began %d transactions, want 1", got)
	}
}

// TestAnInterruptWhileSealing gives the thread more runs to seal than the sealing process has
// read.
func TestAnInterruptWhileSealing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("1", run.Enqueue)
	second := f.create("2", run.Interrupt)
	f.table.beforeNext(func() { f.create("3", run.Interrupt) })
	if _, err := f.runs.Claim(t.Context(), second.Ref, 0); err != run.ErrNothingToDo {
		t.Errorf("claim of the run that was superseded meanwhile: got %v, want ErrNothingToDo", err)
	}
	if diff := cmp.Diff([]string{"human 1", "human 2"}, f.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestLargeInputsAreSealedInSmallTransactions checks this, because no store takes much more
// than a megabyte at a time.
func TestLargeInputsAreSealedInSmallTransactions(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := newFixture(t)
	large := input(`{"document":"` + strings.Repeat("x", 1<<20) + `"}`)
	for _, strategy := range []run.Strategy{run.Enqueue, run.Enqueue, run.Interrupt} {
		if _, err := f.runs.Create(t.Context(), f.ref, run.Request{Strategy: strategy, Payload: run.Payload{Input: large}}); err != nil {
			t.Fatal(err)
		}
	}
	batches := 0
	f.table.committed = func(writes []table.Write) {
		for _, write := range writes {
			// Another transaction may count the stored bytes.
			if lock, ok := write.(table.Update); ok && lock.Set["sealed"] != nil {
				batches++
			}
		}
	}
	if _, err := f.runs.Seal(t.Context(), f.ref); err != nil {
		t.Fatal(err)
	}
	if batches != 2 {
		t.Errorf("two large inputs were sealed in %d transactions, want 2", batches)
	}
}

// TestASealerThatWasOvertaken lets another process seal the rest between two batches, and a
// run begin and end. The first process must not use the state that it had read before.
func TestASealerThatWasOvertaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("first", run.Enqueue)
	f.enqueueMany(45)
	second := f.create("second", run.Interrupt)
	f.table.afterNext(func() {
		other := *f
		other.runs = f.otherProcess()
		a := other.claim(second)
		other.answer(a, "m", "answer")
		other.flush(a)
		other.create("third", run.Interrupt)
	})
	if _, err := f.runs.Seal(t.Context(), f.ref); err != nil {
		t.Fatal(err)
	}
	got := f.result(second)
	if diff := cmp.Diff([]string{"human 44", "human second", "ai answer"}, got[len(got)-3:]); diff != "" {
		t.Errorf("what the overtaking run left behind (-want +got):\n%s", diff)
	}
}

// TestASupersededRunHasEndedThen checks that the end of a run that was superseded in the queue is
// the time of the supersession: not its creation, its due time or the time when it was sealed.
func TestASupersededRunHasEndedThen(t *testing.T) {
	t.Parallel()
	for name, supersede := range map[string]func(f *fixture) error{
		"by an interrupt": func(f *fixture) error {
			_, err := f.runs.Create(f.t.Context(), f.ref, say("next", run.Interrupt))
			return err
		},
		"by an interrupt, and then by a rollback": func(f *fixture) error {
			_, err := f.runs.Create(f.t.Context(), f.ref, say("next", run.Interrupt))
			f.hand.move(time.Hour)
			_, again := f.runs.Create(f.t.Context(), f.ref, say("last", run.Rollback))
			return errors.Join(err, again)
		},
		"with its thread": func(f *fixture) error {
			_, err := f.runs.CancelThread(f.t.Context(), f.ref, run.ActionInterrupt)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c, address, told := f.withCourier()
			f.started("1")
			later := say("delayed", run.Enqueue)
			later.After = 24 * time.Hour
			delayed, err := f.runs.Create(t.Context(), f.ref, later)
			f.must(err)
			request := say("waiting", run.Enqueue)
			request.Webhook = address
			waiting, err := f.runs.Create(t.Context(), f.ref, request)
			f.must(err)
			f.hand.move(time.Hour)
			from, to := f.hand.now(), time.Time{}
			f.table.afterNext(func() { to = f.hand.now() })
			f.must(supersede(f))
			f.hand.move(time.Hour)
			wantEnd := func(when string) {
				t.Helper()
				listed, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Status: run.Interrupted, Window: record.Window{Limit: 10}})
				f.must(err)
				for _, got := range append(listed, f.get(waiting), f.get(delayed)) {
					if got.Updated.Before(from) || got.Updated.After(to) {
						t.Errorf("%s: run %s ended at %v, want %v", when, got.Run, got.Updated, from)
					}
				}
			}
			wantEnd("superseded")
			f.messages() // this seals the thread
			wantEnd("sealed")
			f.must(<-c.errs)
			var got struct {
				Updated time.Time `json:"updated_at"`
				Ended   time.Time `json:"run_ended_at"`
			}
			f.must(json.Unmarshal(<-told, &got))
			if got.Ended.Before(from) || got.Ended.After(to) || !got.Updated.Equal(got.Ended) {
				t.Errorf("the webhook is told of the end at %v, want %v", got.Ended, from)
			}
		})
	}
}

package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestAttackAReaderThatWantsLittle checks that a reader of a few events of a long run holds at
// most one page of the run.
func TestAttackAReaderThatWantsLittle(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, table.Budgeted(fixtures.DomainTable(t, clock.System)))
	a := f.claim(f.create(run.Request{}))
	for range 40 {
		f.shows(a, step{"custom", `"` + strings.Repeat("x", 30<<10) + `"`})
	}
	f.finish(a, run.Outcome{})
	bound := budget.New(16 << 20)
	hold := budget.NewHold(bound, 0, time.Second, nil)
	ctx, cancel := context.WithCancel(budget.Holding(t.Context(), hold))
	defer cancel()
	most, ended := int64(0), false
	reader, err := protocol.Open(ctx, f.runs, f.ref, protocol.Filter{Channels: []string{"lifecycle", "input"}}, nil)
	f.must(err)
	err = reader.Read(ctx, func(events []protocol.Event, _ int64) error {
		most = max(most, bound.Held())
		hold.Return(hold.Detach())
		if len(events) > 0 && root(events[len(events)-1]) == "completed" {
			ended = true
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || !ended {
		t.Fatalf("the reader ended with %v", err)
	}
	if most > 1<<20 {
		t.Errorf("the reader held %d bytes", most)
	}
}

// TestRunsThatNeverBegan checks that such runs are shown to a reader that begins at the number
// from the response of the command that created one of them.
func TestRunsThatNeverBegan(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.does(run.Request{})
	first := f.create(run.Request{})
	afterFirst := f.before(first)
	queued := f.create(run.Request{})
	second := f.create(run.Request{Strategy: run.Interrupt})
	afterSecond := f.before(second)
	f.must(f.runs.Fail(t.Context(), second.Ref, run.Failure{Name: "E", Message: "no agent"}))
	third := f.create(run.Request{})
	afterThird := f.before(third)
	f.must(f.runs.Cancel(t.Context(), third.Ref, run.ActionInterrupt))
	all := f.read(everything(), afterFirst, 4)
	f.wantRoots(all, first.Run+" running", first.Run+" interrupted", queued.Run+" running", queued.Run+" interrupted",
		second.Run+" running", second.Run+" failed", third.Run+" running", third.Run+" interrupted")
	f.wantOrder(all)
	f.wantRoots(f.read(everything(), afterSecond, 2), second.Run+" running", second.Run+" failed", third.Run+" running", third.Run+" interrupted")
	f.wantRoots(f.read(everything(), afterThird, 1), third.Run+" running", third.Run+" interrupted")
	last := f.does(run.Request{})
	f.wantRoots(f.read(everything(), &all[len(all)-1].Seq, 1), last.Run+" running", last.Run+" completed")
	f.wantRoots(f.read(everything(), f.before(last), 1), last.Run+" running", last.Run+" completed")
}

// TestManyRunsThatNeverBegan checks that each of them has a number of its own.
func TestManyRunsThatNeverBegan(t *testing.T) {
	t.Parallel()
	const many = 150
	f := newFixture(t)
	f.create(run.Request{})
	for range many {
		f.create(run.Request{})
	}
	f.create(run.Request{Strategy: run.Interrupt})
	all := f.read(everything(), new(int64), many+1)
	f.wantOrder(all)
	if len(all) != 2*(many+1) {
		t.Errorf("there are %d events", len(all))
	}
	if got := f.read(everything(), &all[len(all)-3].Seq, 1); got[0].ID != all[len(all)-2].ID {
		t.Errorf("behind %s comes %s", all[len(all)-3].ID, got[0].ID)
	}
}

// watched is a table that reports each item that a reader begins to watch.
type watched struct {
	table.Table
	begun chan table.Key
}

func (w watched) Watch(key table.Key) table.Watcher {
	watcher := w.Table.Watch(key)
	w.begun <- key
	return watcher
}

// TestANumberBehindTheEnd checks that such a number counts as the end: the reader sees later
// events.
func TestANumberBehindTheEnd(t *testing.T) {
	t.Parallel()
	tb := watched{fixtures.DomainTable(t, clock.System), make(chan table.Key, 100)}
	f := newFixtureOn(t, tb)
	f.does(run.Request{})
	beyond := protocol.Seq(1000, 0)
	present := f.reads(everything(), &beyond)
	<-tb.begun // the reader has its position
	next := f.does(run.Request{})
	f.wantRoots(present.next(1), next.Run+" running", next.Run+" completed")
}

// readBetween calls a function before each of its next queries, once it is armed.
type readBetween struct {
	table.Table
	armed atomic.Bool
	do    []func()
}

func (r *readBetween) Query(ctx context.Context, query table.Query) (table.Page, error) {
	if r.armed.CompareAndSwap(true, false) {
		r.do[0]()
		r.do = r.do[1:]
		r.armed.Store(len(r.do) > 0)
	}
	return r.Table.Query(ctx, query)
}

// TestARunThatComesWhileAReaderBegins checks that the run is shown to a reader that has found
// a thread without runs.
func TestARunThatComesWhileAReaderBegins(t *testing.T) {
	t.Parallel()
	tb := &readBetween{Table: fixtures.DomainTable(t, clock.System)}
	f := newFixtureOn(t, tb)
	var first run.Run
	tb.do = []func(){func() { first = f.does(run.Request{}) }}
	tb.armed.Store(true)
	seen := f.reads(everything(), nil).next(1)
	f.wantRoots(seen, first.Run+" running", first.Run+" completed")
}

// TestARunThatGoesWhileItsReaderComesBack checks that such a run hides no later run: the
// reader's number is not behind the end, although the run is gone when the reader reads it.
func TestARunThatGoesWhileItsReaderComesBack(t *testing.T) {
	t.Parallel()
	tb := &readBetween{Table: fixtures.DomainTable(t, clock.System)}
	f := newFixtureOn(t, tb)
	a := f.claim(f.create(run.Request{}))
	f.shows(a, step{"custom", "1"}, step{"custom", "2"})
	present := f.reads(everything(), new(int64))
	var all []protocol.Event
	for len(all) == 0 || all[len(all)-1].Method != "custom" {
		all = append(all, <-present.events)
	}
	var next run.Run
	present.stop()
	tb.do = []func(){
		func() { f.finish(a, run.Outcome{}); f.must(f.runs.Delete(t.Context(), a.Run.Ref)) },
		func() { next = f.does(run.Request{}) },
	}
	tb.armed.Store(true)
	f.wantRoots(f.read(everything(), &all[len(all)-1].Seq, 1), next.Run+" running", next.Run+" completed")
}

// rollingBack is a table that calls a function when a reader begins to watch an item.
type rollingBack struct {
	table.Table
	key  atomic.Pointer[table.Key]
	roll func()
}

func (r *rollingBack) Watch(key table.Key) table.Watcher {
	if at := r.key.Load(); at != nil && *at == key && r.key.CompareAndSwap(at, nil) {
		r.roll()
	}
	return r.Table.Watch(key)
}

// TestARunThatIsRolledBackAsItsReaderComes checks that such a run, of which the reader has no
// event, changes no number of the runs that never began.
func TestARunThatIsRolledBackAsItsReaderComes(t *testing.T) {
	t.Parallel()
	tb := &rollingBack{Table: fixtures.DomainTable(t, clock.System)}
	f := newFixtureOn(t, tb)
	neverBegan := func() run.Run {
		r := f.create(run.Request{})
		f.must(f.runs.Cancel(t.Context(), r.Ref, run.ActionInterrupt))
		return r
	}
	first := neverBegan()
	a := f.claim(f.create(run.Request{}))
	tb.roll = func() { f.must(f.runs.Cancel(t.Context(), a.Run.Ref, run.ActionRollback)) }
	tb.key.Store(new(a.Run.Key()))
	present := f.reads(everything(), new(int64))
	all := present.next(1)
	second := neverBegan()
	all = append(all, present.next(1)...)
	f.wantRoots(all, first.Run+" running", first.Run+" interrupted", second.Run+" running", second.Run+" interrupted")
	f.wantOrder(all)
	if diff := cmp.Diff(all, f.read(everything(), new(int64), 2)); diff != "" {
		t.Errorf("events (-present +late):\n%s", diff)
	}
}

// halting is a table whose transactions fail after a number of them.
type halting struct {
	table.Table
	left atomic.Int64
}

func (h *halting) Transact(ctx context.Context, writes ...table.Write) error {
	if h.left.Add(-1) < 0 {
		return errors.New("the process dies")
	}
	return h.Table.Transact(ctx, writes...) //nolint:wrapcheck // the table's own
}

// TestADelayedRunThatIsBeingRemoved checks that such a run hides no later run, whose id is
// smaller, from a reader that finds the removal under way.
func TestADelayedRunThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	tb := &halting{Table: fixtures.DomainTable(t, clock.System)}
	tb.left.Store(1000)
	f := newFixtureOn(t, tb)
	early := f.create(run.Request{})
	f.must(f.runs.Cancel(t.Context(), early.Ref, run.ActionInterrupt))
	f.create(run.Request{})
	delayed := f.create(run.Request{After: time.Hour})
	tb.left.Store(1)
	_, _ = f.runs.CancelThread(t.Context(), f.ref, run.ActionRollback) // the removal has begun
	tb.left.Store(1000)
	var next run.Run
	var seen []string
	done := errors.New("done")
	attendance, err := f.runs.Attend(t.Context(), f.ref, new(run.ReaderPosition))
	f.must(err)
	err = attendance.Follow(t.Context(), func(part run.Part) error {
		if part.Run.Run == early.Run {
			_, err := f.runs.Seal(t.Context(), f.ref)
			f.must(err)
			next = f.does(run.Request{})
		}
		if part.Ended {
			seen = append(seen, part.Run.Run)
		}
		if part.Ended && part.Run.Run == next.Run {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{early.Run, next.Run}, seen); diff != "" || next.Run > delayed.Run {
		t.Errorf("the removed run is %s, the ends (-want +got):\n%s", delayed.Run, diff)
	}
}

// TestANumberOfARunThatWasRolledBack checks that such a number is not behind the end: a reader
// that has it sees no event again.
func TestANumberOfARunThatWasRolledBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.does(run.Request{})
	a := f.claim(f.create(run.Request{}))
	f.shows(a, step{"custom", "1"}, step{"custom", "2"})
	present := f.reads(everything(), new(int64))
	all := present.next(1)
	for len(all) == 0 || all[len(all)-1].Method != "custom" {
		all = append(all, <-present.events)
	}
	f.must(f.runs.Cancel(t.Context(), a.Run.Ref, run.ActionRollback))
	all = append(all, present.next(1)...)
	late := f.reads(everything(), &all[len(all)-1].Seq)
	next := f.does(run.Request{})
	rest := late.next(1)
	f.wantRoots(rest, next.Run+" running", next.Run+" completed")
	f.wantOrder(append(all, rest...))
}

// TestARunThatIsDeleted checks that all its events are gone for later readers, and that the
// events of other runs stay as they are.
func TestARunThatIsDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.does(run.Request{}, step{"custom", "1"})
	f.does(run.Request{}, step{"custom", "2"})
	all := f.read(everything(), new(int64), 2)
	rest := slices.DeleteFunc(slices.Clone(all), func(e protocol.Event) bool { return strings.Contains(e.ID, first.Run) })
	f.must(f.runs.Delete(t.Context(), first.Ref))
	for _, since := range []*int64{new(int64), &all[1].Seq} {
		if diff := cmp.Diff(rest, f.read(everything(), since, 1)); diff != "" {
			t.Errorf("events behind %d (-want +got):\n%s", *since, diff)
		}
	}
}

// TestAThreadThatIsMadeAnew checks that its numbers begin at 0, also for a reader of the
// earlier thread.
func TestAThreadThatIsMadeAnew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 3 {
		f.does(run.Request{})
	}
	all := f.read(everything(), new(int64), 3)
	old := f.reads(everything(), &all[len(all)-3].Seq)
	last := old.next(1)
	f.must(f.threads.Delete(t.Context(), f.ref))
	f.makeThread()
	next := f.does(run.Request{})
	seen := old.next(1)
	f.wantRoots(seen, next.Run+" running", next.Run+" completed")
	if seen[0].Seq >= last[0].Seq {
		t.Errorf("the new thread begins with the number %d, behind %d", seen[0].Seq, last[0].Seq)
	}
}

// TestADelayedRunThatWasCancelled checks that a delayed run that was cancelled in the queue
// does not hide the runs that come before its time. Its end is shown in its place.
func TestADelayedRunThatWasCancelled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	present := f.reads(everything(), new(int64))
	a := f.claim(f.create(run.Request{}))
	delayed := f.create(run.Request{After: time.Hour})
	f.must(f.runs.Cancel(t.Context(), delayed.Ref, run.ActionInterrupt))
	f.finish(a, run.Outcome{})
	all := present.next(1)
	followed := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- f.runs.Follow(ctx, f.ref, run.ReaderPosition{}, func(part run.Part) error {
			if part.Ended {
				followed <- part.Run.Run
			}
			return nil
		})
	}()
	if got := <-followed; got != a.Run.Run {
		t.Errorf("the first end is that of %s", got)
	}
	next := f.does(run.Request{})
	all = append(all, present.next(1)...)
	if got := <-followed; got != next.Run {
		t.Errorf("the second end is that of %s", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	f.clock.Pass(2 * time.Hour)
	last := f.does(run.Request{})
	all = append(all, present.next(2)...)
	f.wantRoots(all, a.Run.Run+" running", a.Run.Run+" completed", next.Run+" running", next.Run+" completed",
		delayed.Run+" running", delayed.Run+" interrupted", last.Run+" running", last.Run+" completed")
	f.wantOrder(all)
	if diff := cmp.Diff(all, f.read(everything(), new(int64), 4)); diff != "" {
		t.Errorf("events (-present +late):\n%s", diff)
	}
}

// TestTheEndOfADelayedRunThatWasCancelled checks that the end is shown when the run's time has
// come, even if no other run comes.
func TestTheEndOfADelayedRunThatWasCancelled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.claim(f.create(run.Request{}))
	delayed := f.create(run.Request{After: time.Second})
	f.must(f.runs.Cancel(t.Context(), delayed.Ref, run.ActionInterrupt))
	f.finish(a, run.Outcome{})
	f.wantRoots(f.read(everything(), new(int64), 2), a.Run.Run+" running", a.Run.Run+" completed", delayed.Run+" running", delayed.Run+" interrupted")
}

// TestSealingChangesNoEvent checks that sealing does not change the events of the sealed runs:
// a reader that follows the runs sees the same events as a later reader.
func TestSealingChangesNoEvent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.claim(f.create(run.Request{}))
	f.shows(a, token("m1", "Hel"))
	waiting := f.create(run.Request{})
	last := f.create(run.Request{Strategy: run.Interrupt})
	present := f.read(everything(), new(int64), 2)
	f.wantRoots(present, a.Run.Run+" running", a.Run.Run+" interrupted", waiting.Run+" running", waiting.Run+" interrupted")
	f.clock.Pass(time.Hour)
	f.finish(f.claim(last), run.Outcome{}) // the claim seals the thread
	if diff := cmp.Diff(present, f.read(everything(), new(int64), 2)); diff != "" {
		t.Errorf("events (-present +late):\n%s", diff)
	}
}

// TestAnswersAreShown checks that answers are shown by the ids of the questions, in whichever
// form the client sends them.
func TestAnswersAreShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		fork    bool
		want    []string
	}{
		"by their ids":                   {command: `{"resume":{"q2":1}}`, want: []string{"q2"}},
		"an object that is the answer":   {command: `{"resume":{"ok":true}}`, want: []string{"q1", "q2"}},
		"a text":                         {command: `{"resume":"yes"}`, want: []string{"q1", "q2"}},
		"null":                           {command: `{"resume":null}`},
		"another command":                {command: `{"goto":"model"}`},
		"no command":                     {},
		"at an earlier checkpoint":       {command: `{"resume":"yes"}`, fork: true},
		"in a command that is detached":  {command: fmt.Sprintf(`{"resume":%q}`, strings.Repeat("y", 10_000)), want: []string{"q1", "q2"}},
		"an object without any members":  {command: `{"resume":{}}`, want: []string{"q1", "q2"}},
		"by an id and one that is wrong": {command: `{"resume":{"q1":1,"q3":2}}`, want: []string{"q1", "q2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.does(run.Request{Payload: run.Payload{Input: input(`{"n":1}`)}})
			f.asks("q1", "q2")
			request := run.Request{Payload: run.Payload{Command: []byte(c.command)}}
			if c.fork {
				request.Fork = &run.Fork{ID: f.ref.Root()}
			}
			answered := f.does(request)
			var want []string
			if c.want != nil {
				want = []string{`input.answered {"interrupt_ids":["` + strings.Join(c.want, `","`) + `"]}`}
			}
			f.wantLines(f.read(everything(), f.before(answered), 1), []string{"input.answered"}, want...)
		})
	}
}

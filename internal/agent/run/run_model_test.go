package run_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// model plays clients, workers and readers of one thread in an order that its seed decides.
// Another request may also come between the reading and the writing of a request. The model
// remembers everything that the protocol must keep.
type model struct {
	*fixture
	t   *testing.T
	rng *rand.Rand
	// runs are the accepted runs, in the order of their turns. ended is the final status that
	// was seen of a run.
	runs  []run.Run
	ended map[string]run.Status
	// removed are the runs that a rollback has removed, mayGo the runs that a rollback could
	// have removed.
	removed, mayGo map[string]bool
	// withdrawn are the runs that their client cancelled, or whose input it gave to another run,
	// before a worker took them up.
	withdrawn map[string]bool
	// workers are the live workers: each believes that it owns its run.
	workers []*worker
	readers []*follower
	// claims is the number of attempts of each run, handed the number of attempts that were
	// handed over, and idle the number of slices since the last step.
	claims, handed, idle map[string]int
	// depth bounds how deep requests interleave.
	depth, messages int
}

// worker is one attempt with the message it is writing.
type worker struct {
	*run.Attempt
	message string
	text    string
	// made says that the worker finished a message that is not written yet, stepped that it
	// has written a message.
	made, stepped bool
	// acts says that the worker is in the middle of an operation.
	acts bool
}

// follower is a reader that began at some time, at some position.
type follower struct {
	*reader
	run   run.Run
	after int64
}

// TestRandomHistories checks every promise of the protocol. A failure names its seed: run it
// alone with -run 'TestRandomHistories/seed_7$'.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	for seed := range uint64(check.Size(60, 20)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := &model{fixture: newFixtureOn(t, tb), t: t, rng: rand.New(rand.NewPCG(seed, 1)), ended: map[string]run.Status{}, removed: map[string]bool{}, mayGo: map[string]bool{}, withdrawn: map[string]bool{}}
			// The one permit of this deployment belongs to this thread.
			m.ref.Deployment = fmt.Sprint("d", seed)
			_, err := m.threads.Create(t.Context(), m.ref, nil, nil, false)
			m.must(err)
			m.claims, m.handed, m.idle = map[string]int{}, map[string]int{}, map[string]int{}
			for range 120 {
				m.act()
				m.look()
			}
			m.drain()
			m.check()
		})
	}
}

// act does one random operation. Another operation may happen in the middle of it, in another
// process: operations of one process may wait for each other.
func (m *model) act() {
	if m.depth < 2 && m.rng.IntN(3) == 0 {
		m.table.beforeNext(func() {
			outer := m.fixture.runs
			m.depth, m.fixture.runs = m.depth+1, m.otherProcess()
			defer func() { m.depth, m.fixture.runs = m.depth-1, outer }()
			m.act()
		})
	}
	defer m.table.beforeNext(nil)
	switch m.rng.IntN(31) {
	case 0, 1, 2:
		m.request(run.Enqueue)
	case 3:
		m.request(run.Interrupt)
	case 4:
		m.request(run.Reject)
	case 5, 6, 7:
		m.takeUp()
	case 8, 9, 10, 11:
		m.work((*model).speak)
	case 12, 13:
		m.work((*model).finishMessage)
	case 14, 15:
		m.work(func(m *model, w *worker) error { return m.written(w, w.Flush(m.t.Context())) })
	case 16:
		m.work(func(m *model, w *worker) error { return m.end(w, run.Success) })
	case 17:
		if m.rng.IntN(3) == 0 {
			m.work(func(m *model, w *worker) error { return m.end(w, run.Error) })
		}
	case 18:
		m.fixture.messages() // this seals the thread
	case 19:
		m.read()
	case 20, 21, 22:
		m.work((*model).handOver)
	case 23:
		m.request(run.Rollback)
	case 24:
		m.delayed([]run.Strategy{run.Enqueue, run.Enqueue, run.Interrupt, run.Rollback}[m.pick(4)])
	case 25, 26:
		m.interrupt()
	case 27:
		m.rollback()
	case 28:
		m.cancelThread()
	case 29, 30:
		m.hand.move(time.Duration(m.pick(40)) * time.Second)
	}
}

// delayed requests a run that begins some time later.
func (m *model) delayed(strategy run.Strategy) {
	request := say(m.next("input"), strategy)
	request.After = time.Duration(1+m.pick(60)) * time.Second
	m.create(request)
}

// interrupt cancels some run for one of the reasons for which the run stays.
func (m *model) interrupt() {
	s, back := m.fixture.runs, true
	cancel := func(ctx context.Context, ref run.Ref) error { return s.Cancel(ctx, ref, run.ActionInterrupt) }
	switch m.pick(4) {
	case 0:
		cancel = s.CancelTaken
	case 1:
		cancel, back = s.CancelOnDisconnect, false
	}
	if r, done := m.cancel(cancel); done && back && m.claims[r.Run] == 0 {
		m.withdrawn[r.Run] = true
	}
}

// rollback cancels some run so that nothing of it stays.
func (m *model) rollback() {
	r, done := m.cancel(func(ctx context.Context, ref run.Ref) error {
		return m.fixture.runs.Cancel(ctx, ref, run.ActionRollback)
	})
	if done {
		m.mayGo[r.Run] = true
		m.wantRemoved(r)
	}
}

// cancel ends some run, most often a run in flight, if this is possible.
func (m *model) cancel(cancel func(context.Context, run.Ref) error) (r run.Run, done bool) {
	if len(m.runs) == 0 {
		return r, false
	}
	r = m.runs[m.pick(len(m.runs))]
	if m.pick(2) > 0 {
		r.Run = m.thread().Lock.Run
	}
	err := cancel(m.t.Context(), r.Ref)
	if err != nil && !fault.Is(err, fault.NotFound) {
		m.t.Fatal(err)
	}
	return r, err == nil
}

// cancelThread ends all runs in flight.
func (m *model) cancelThread() {
	action := []run.Action{run.ActionInterrupt, run.ActionRollback}[m.pick(2)]
	_, err := m.fixture.runs.CancelThread(m.t.Context(), m.ref, action)
	m.must(err)
	if action == run.ActionRollback {
		m.rollBack()
	}
}

// rollBack notes that the runs that have not ended may be removed.
func (m *model) rollBack() {
	for _, r := range m.runs {
		m.mayGo[r.Run] = true
	}
}

// wantRemoved checks that a run is removed for good.
func (m *model) wantRemoved(r run.Run) {
	if _, err := m.fixture.runs.Get(m.t.Context(), r.Ref); !fault.Is(err, fault.NotFound) {
		m.t.Fatalf("run %s was rolled back: Get says %v", r.Run, err)
	}
	m.removed[r.Run] = true
}

// next returns a new message id.
func (m *model) next(kind string) string {
	m.messages++
	return fmt.Sprint(kind, " ", m.messages)
}

func (m *model) pick(n int) int { return m.rng.IntN(n) }

func (m *model) request(strategy run.Strategy) {
	m.create(say(m.next("input"), strategy))
}

// create creates a run with the request. The runs are in the order of their turns; a delayed
// run has its turn later.
func (m *model) create(request run.Request) {
	created, err := m.fixture.runs.Create(m.t.Context(), m.ref, request)
	if err == nil {
		if request.Strategy == run.Rollback {
			m.rollBack()
		}
		m.runs = append(m.runs, created)
		slices.SortFunc(m.runs, func(a, b run.Run) int { return strings.Compare(a.Run, b.Run) })
	} else if request.Strategy != run.Reject || !fault.Is(err, fault.Conflict) {
		m.t.Fatal(err)
	}
}

// takeUp lets another worker try some run, most often the active run.
func (m *model) takeUp() {
	if len(m.runs) == 0 {
		return
	}
	ref := m.runs[m.pick(len(m.runs))].Ref
	if m.pick(4) > 0 {
		ref.Run = m.thread().Lock.Run
	}
	if a := m.claim(ref); a != nil {
		m.workers = append(m.workers, &worker{Attempt: a})
	}
}

// claim takes a run up, or ends it if the run has no attempt left. Other workers may do the
// same in the middle of it. Each worker is in a process of its own.
func (m *model) claim(ref run.Ref) *run.Attempt {
	failed, idle := m.failed(ref), m.idle[ref.Run]
	a, err := m.otherProcess().Claim(m.t.Context(), ref, 1)
	switch {
	case err == nil:
		m.claims[ref.Run]++
		if m.failed(ref) > run.MaxAttempts || m.idle[ref.Run] >= run.MaxIdleSlices {
			m.t.Fatalf("run %s is taken up after %d attempts that were not handed over and %d slices without a step", ref.Run, m.failed(ref)-1, m.idle[ref.Run])
		}
		if a.Run.Attempt != int64(m.claims[ref.Run]) {
			m.t.Fatalf("run %s is taken up as attempt %d, want %d", ref.Run, a.Run.Attempt, m.claims[ref.Run])
		}
	case errors.Is(err, run.ErrAttemptsExhausted):
		if max(failed, m.failed(ref)) < run.MaxAttempts {
			m.t.Fatalf("run %s has no attempt left after %d", ref.Run, failed)
		}
		m.must(m.fixture.runs.Fail(m.t.Context(), ref, run.Failure{Name: "exhausted"}))
	case errors.Is(err, run.ErrNoProgress):
		if max(idle, m.idle[ref.Run]) < run.MaxIdleSlices {
			m.t.Fatalf("run %s makes no progress after %d slices", ref.Run, idle)
		}
		m.must(m.fixture.runs.TimeOut(m.t.Context(), ref, run.Failure{Name: "no progress"}))
	case isEarly(err):
	case !errors.Is(err, run.ErrNothingToDo):
		m.t.Fatal(err)
	}
	return a
}

// isEarly reports whether a run waits for its time.
func isEarly(err error) bool {
	_, early := errors.AsType[*run.NotDueError](err)
	return early
}

// failed is how many attempts at a run were not handed over.
func (m *model) failed(ref run.Ref) int { return m.claims[ref.Run] - m.handed[ref.Run] }

// written notes the step that a worker has written.
func (m *model) written(w *worker, err error) error {
	if err == nil && w.made {
		w.made, w.stepped, m.idle[w.Run.Run] = false, true, 0
	}
	return err
}

// handOver ends a slice: the worker ends, and the next worker can take the run up.
func (m *model) handOver(w *worker) error {
	err := m.written(w, w.HandOver(m.t.Context()))
	if err != nil {
		return err
	}
	m.handed[w.Run.Run]++
	if !w.stepped {
		m.idle[w.Run.Run]++
	}
	m.workers = slices.DeleteFunc(m.workers, func(other *worker) bool { return other == w })
	return nil
}

// work lets some worker go on. A worker that is fenced off stops; a few workers die by
// themselves.
func (m *model) work(step func(*model, *worker) error) {
	if len(m.workers) == 0 {
		return
	}
	w := m.workers[m.pick(len(m.workers))]
	if w.acts {
		return
	}
	w.acts = true
	err := step(m, w)
	w.acts = false
	if err != nil && !errors.Is(err, run.ErrFenced) {
		m.t.Fatal(err)
	}
	if err != nil || m.pick(15) == 0 {
		m.workers = slices.DeleteFunc(m.workers, func(other *worker) bool { return other == w })
	}
}

func (m *model) speak(w *worker) error {
	if w.message == "" {
		w.message, w.text = m.next("message"), ""
	}
	piece := fmt.Sprintf("%s piece %d;", w.message, len(w.text))
	w.text += piece
	show(w.Attempt, w.message, piece)
	return nil
}

func (m *model) finishMessage(w *worker) error {
	if w.message != "" {
		m.answer(w.Attempt, w.message, w.text)
		w.message, w.made = "", true
	}
	return nil
}

func (m *model) end(w *worker, status run.Status) error {
	err := finishAs(status)(m.fixture, run.Run{}, w.Attempt)
	if err == nil {
		m.ended[w.Run.Run] = status
		m.workers = slices.DeleteFunc(m.workers, func(other *worker) bool { return other == w })
	}
	return err
}

func (m *model) read() {
	if len(m.runs) == 0 {
		return
	}
	r := m.runs[m.pick(len(m.runs))]
	after := int64(m.pick(20))
	m.readers = append(m.readers, &follower{reader: m.follow(r, after), run: r, after: after})
}

// look checks the conditions that must hold at every moment.
func (m *model) look() {
	listed, _, err := m.fixture.runs.List(m.t.Context(), m.ref, run.Filter{Window: windowOf(1000)})
	m.must(err)
	m.forget(listed)
	if len(listed) != len(m.runs) {
		m.t.Fatalf("%d runs are listed, %d were accepted", len(listed), len(m.runs))
	}
	th := m.thread()
	lock := th.Lock
	if !lock.Busy && lock.Unsealed {
		m.t.Fatalf("nothing seals the idle thread: %+v", lock)
	}
	if possible := m.rests(listed); !lock.Busy && !slices.Contains(possible, th.Status) {
		m.t.Fatalf("the thread is %s, possible are %q", th.Status, possible)
	}
	for i, r := range listed {
		if accepted := m.runs[len(m.runs)-1-i].Run; r.Run != accepted {
			m.t.Fatalf("run %d from the end is %s, %s was accepted", i, r.Run, accepted)
		}
		if m.removed[r.Run] {
			m.t.Fatalf("run %s was rolled back and is listed", r.Run)
		}
		if before, seen := m.ended[r.Run]; seen && r.Status != before {
			m.t.Fatalf("run %s ended as %s and is %s now", r.Run, before, r.Status)
		}
		switch {
		case r.Status.Final():
			m.ended[r.Run] = r.Status
		case r.Status == run.Running && r.Run != lock.Run, !lock.Busy, r.Run < lock.Run:
			m.t.Fatalf("run %s is %s, and the lock %+v", r.Run, r.Status, lock)
		}
	}
}

// forget removes the runs that were rolled back from the model. Only runs that had not ended
// may be rolled back.
func (m *model) forget(listed []run.Run) {
	there := map[string]bool{}
	for _, r := range listed {
		there[r.Run] = true
	}
	m.runs = slices.DeleteFunc(m.runs, func(r run.Run) bool {
		if there[r.Run] {
			return false
		}
		if before, seen := m.ended[r.Run]; seen {
			m.t.Fatalf("run %s ended as %s and is gone", r.Run, before)
		}
		if !m.mayGo[r.Run] {
			m.t.Fatalf("run %s is gone, and nobody rolled it back", r.Run)
		}
		m.wantRemoved(r)
		return true
	})
}

// drain brings every run to its end.
func (m *model) drain() {
	for m.thread().Lock.Busy {
		ref := run.Ref{Ref: m.ref, Run: m.thread().Lock.Run}
		if a := m.claim(ref); a != nil {
			m.finish(a)
		} else {
			m.hand.move(10 * time.Second)
		}
		m.look()
	}
	m.look()
	if len(m.ended) != len(m.runs) {
		m.t.Fatalf("%d of %d runs have ended", len(m.ended), len(m.runs))
	}
}

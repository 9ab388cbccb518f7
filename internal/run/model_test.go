package run_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/run"
	"github.com/slipway-run/slipway/internal/table/sqlite"
)

// model plays clients, workers and readers of one thread in an order that its seed decides: also between what a request read and
// what it writes, another one may come. It remembers what the protocol owes to whom.
type model struct {
	*fixture
	t   *testing.T
	rng *rand.Rand
	// runs are those that were accepted, in the order in which they were; ended is the final status that was seen of a run.
	runs  []run.Run
	ended map[string]run.Status
	// workers are the live ones: each believes that it owns its run.
	workers []*worker
	readers []*follower
	// depth bounds how deep requests interleave.
	depth, messages int
}

// worker is one attempt with the message it is writing.
type worker struct {
	*run.Attempt
	message string
	text    string
	// acts says that it is in the midst of something.
	acts bool
}

// follower is a reader that began at some time after some position.
type follower struct {
	*reader
	run   run.Run
	after int64
}

// TestRandomHistories keeps every promise of the protocol. A failure names its seed: run it alone with -run 'TestRandomHistories/seed_7$'.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	tb, err := sqlite.Open(filepath.Join(t.TempDir(), "table.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := &model{fixture: newFixtureOn(t, tb), t: t, rng: rand.New(rand.NewPCG(seed, 1)), ended: map[string]run.Status{}}
			for range 60 {
				m.act()
				m.look()
			}
			m.drain()
			m.check()
		})
	}
}

// act does one random thing, in whose midst another may happen.
func (m *model) act() {
	if m.depth < 2 && m.rng.IntN(3) == 0 {
		m.table.beforeNext(func() {
			m.depth++
			defer func() { m.depth-- }()
			m.act()
		})
	}
	defer m.table.beforeNext(nil)
	switch m.rng.IntN(20) {
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
		m.work(func(m *model, w *worker) error { return w.Flush(m.t.Context()) })
	case 16:
		m.work(func(m *model, w *worker) error { return m.end(w, run.Success) })
	case 17:
		if m.rng.IntN(3) == 0 {
			m.work(func(m *model, w *worker) error { return m.end(w, run.Error) })
		}
	case 18:
		m.fixture.messages() // which seals
	case 19:
		m.read()
	}
}

// next returns a new message id.
func (m *model) next(kind string) string {
	m.messages++
	return fmt.Sprint(kind, " ", m.messages)
}

func (m *model) pick(n int) int { return m.rng.IntN(n) }

func (m *model) request(strategy run.Strategy) {
	created, err := m.fixture.runs.Create(m.t.Context(), m.ref, say(m.next("input"), strategy))
	if err == nil {
		m.runs = append(m.runs, created)
	} else if strategy != run.Reject || !fault.Is(err, fault.Conflict) {
		m.t.Fatal(err)
	}
}

// takeUp has another worker try some run, most often the active one.
func (m *model) takeUp() {
	if len(m.runs) == 0 {
		return
	}
	ref := m.runs[m.pick(len(m.runs))].Ref
	if m.pick(4) > 0 {
		ref.Run = m.thread().Lock.Run
	}
	a, err := m.fixture.runs.Claim(m.t.Context(), ref)
	switch {
	case err == nil:
		m.workers = append(m.workers, &worker{Attempt: a})
	case errors.Is(err, run.ErrAttemptsExhausted):
		m.must(m.fixture.runs.Fail(m.t.Context(), ref, run.Failure{Name: "exhausted"}))
	case !errors.Is(err, run.ErrNothingToDo):
		m.t.Fatal(err)
	}
}

// work lets some worker go on. One that is fenced off stops, a few die on their own.
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
		w.message = ""
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

// look checks what must hold at every moment.
func (m *model) look() {
	listed, err := m.fixture.runs.List(m.t.Context(), m.ref, run.Filter{Window: windowOf(1000)})
	m.must(err)
	if len(listed) != len(m.runs) {
		m.t.Fatalf("%d runs are listed, %d were accepted", len(listed), len(m.runs))
	}
	lock := m.thread().Lock
	for i, r := range listed {
		if accepted := m.runs[len(m.runs)-1-i].Run; r.Run != accepted {
			m.t.Fatalf("run %d from the end is %s, %s was accepted", i, r.Run, accepted)
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

// drain brings every run to its end.
func (m *model) drain() {
	for m.thread().Lock.Busy {
		ref := run.Ref{Ref: m.ref, Run: m.thread().Lock.Run}
		a, err := m.fixture.runs.Claim(m.t.Context(), ref)
		if errors.Is(err, run.ErrAttemptsExhausted) {
			m.must(m.fixture.runs.Fail(m.t.Context(), ref, run.Failure{Name: "exhausted"}))
			continue
		}
		m.must(err)
		m.finish(a)
		m.look()
	}
	m.look()
	if len(m.ended) != len(m.runs) {
		m.t.Fatalf("%d of %d runs have ended", len(m.ended), len(m.runs))
	}
}

package run_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// TestConcurrentHistories checks the same promises as TestRandomHistories with clients and
// workers that really are concurrent, so that the race detector sees them. Workers die and
// come back as zombies.
func TestConcurrentHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := &model{fixture: newFixture(t), t: t, ended: map[string]run.Status{}}
			tasks, over := make(chan run.Task, 10000), make(chan struct{})
			m.engine.onStart = func(task run.Task) { tasks <- task }
			var workers, clients sync.WaitGroup
			for i := range uint64(3) {
				workers.Go(func() {
					w := crew{model: m, rng: rand.New(rand.NewPCG(seed, i)), name: fmt.Sprint("worker ", i), tasks: tasks}
					for {
						select {
						case task := <-tasks:
							w.work(task)
						case <-over:
							return
						}
					}
				})
			}
			var mu sync.Mutex
			for i := range uint64(4) {
				clients.Go(func() {
					runs, readers := m.chat(rand.New(rand.NewPCG(seed, 100+i)), fmt.Sprint("client ", i))
					mu.Lock()
					defer mu.Unlock()
					m.runs, m.readers = append(m.runs, runs...), append(m.readers, readers...)
				})
			}
			clients.Wait()
			slices.SortFunc(m.runs, func(a, b run.Run) int { return strings.Compare(a.Run, b.Run) })
			for _, r := range m.runs {
				ended, err := m.fixture.runs.Await(t.Context(), r.Ref)
				m.must(err)
				m.ended[r.Run] = ended.Status
			}
			close(over)
			workers.Wait()
			m.look()
			m.check()
		})
	}
}

// chat is one client: it makes requests one after the other and follows the streams of the runs
// that it gets.
func (m *model) chat(rng *rand.Rand, name string) (runs []run.Run, readers []*follower) {
	for i := range 10 {
		strategy := []run.Strategy{run.Enqueue, run.Enqueue, run.Interrupt, run.Reject}[rng.IntN(4)]
		created, err := m.fixture.runs.Create(m.t.Context(), m.ref, say(fmt.Sprint(name, " says ", i), strategy))
		if fault.Is(err, fault.Conflict) {
			continue
		}
		if err != nil {
			m.t.Error(err)
			return runs, readers
		}
		runs = append(runs, created)
		readers = append(readers, &follower{reader: m.follow(created, 0), run: created})
		if rng.IntN(2) == 0 {
			if _, _, err := m.fixture.runs.State(m.t.Context(), m.ref); err != nil {
				m.t.Error(err)
			}
		}
	}
	return runs, readers
}

// crew is a worker that takes up one task after another.
type crew struct {
	*model
	rng   *rand.Rand
	name  string
	tasks chan run.Task
	count int
	// zombie is an attempt of this worker that was given up. The worker goes on with it some
	// day.
	zombie *worker
}

func (c *crew) work(task run.Task) {
	a, err := c.fixture.runs.Claim(c.t.Context(), task.Ref(), 0)
	switch {
	case errors.Is(err, run.ErrNothingToDo):
		return
	case errors.Is(err, run.ErrAttemptsExhausted):
		err = c.fixture.runs.Fail(c.t.Context(), task.Ref(), run.Failure{Name: "exhausted"})
	case err == nil:
		err = c.answerRun(&worker{Attempt: a}, task)
	}
	if err != nil && !errors.Is(err, run.ErrFenced) {
		c.t.Error(err)
	}
}

// answerRun shows messages and ends the run, unless the worker dies before.
func (c *crew) answerRun(w *worker, task run.Task) error {
	for range 1 + c.rng.IntN(5) {
		if w.message == "" {
			c.count++
			w.message, w.text = fmt.Sprint(c.name, " message ", c.count), ""
		}
		if err := c.speak(w); err != nil {
			return err
		}
		if c.rng.IntN(2) == 0 {
			if err := w.Flush(c.t.Context()); err != nil {
				return err
			}
		}
		if c.rng.IntN(3) == 0 {
			if err := c.finishMessage(w); err != nil {
				return err
			}
		}
		c.haunt()
	}
	if c.rng.IntN(4) == 0 {
		c.zombie = w
		c.tasks <- task // as reconcile would
		return nil
	}
	if err := c.finishMessage(w); err != nil {
		return err
	}
	return w.Finish(c.t.Context(), run.Outcome{Status: run.Success})
}

// haunt lets the zombie write. The zombie may write until another worker has the run.
func (c *crew) haunt() {
	if c.zombie == nil {
		return
	}
	show(c.zombie.Attempt, c.zombie.message, "")
	if err := c.zombie.Flush(c.t.Context()); err == nil {
		return
	} else if !errors.Is(err, run.ErrFenced) {
		c.t.Error(err)
	}
	c.zombie = nil
}

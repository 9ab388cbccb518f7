package run_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// verb names an operation on a thread's lock.
type verb string

const (
	doCreate verb = "create"
	doClaim  verb = "claim"
	doFlush  verb = "flush"
	doFinish verb = "finish"
	doFail   verb = "fail"
	doCancel verb = "cancel"
	doSweep  verb = "cancel all"
	doGet    verb = "get"
	doLook   verb = "look"
)

// call is the input of an operation, answer its result.
type call struct {
	verb     verb
	run      string
	attempt  int64
	strategy run.Strategy
	action   run.Action
}

type answer struct {
	// done says that the operation did what its name says: it was not refused, it was not
	// fenced off, and it had work to do.
	done    bool
	run     string
	attempt int64
	status  run.Status
	// exhausted says that a claim failed because the run had no attempt left.
	exhausted bool
}

func (c call) String() string {
	return strings.Join(strings.Fields(fmt.Sprint(c.verb, " ", c.strategy, " ", c.action, " ", c.run, " ", c.attempt)), " ")
}

func (a answer) String() string {
	return strings.Join(strings.Fields(fmt.Sprint(a.done, " ", a.status, " ", a.run, " ", a.attempt)), " ")
}

// lock is the active-run lock as the protocol promises it: one run at a time, in the order of
// creation.
type lock struct {
	active  string
	attempt int64
	waiting []string
	// ended has the final status of each run that has ended. last is the run that was created
	// last.
	ended map[string]run.Status
	last  string
}

// after returns the lock after runs have ended. If the active run is among them, the lock
// passes to the next run.
func (l lock) after(status run.Status, runs ...string) lock {
	l.ended = maps.Clone(l.ended)
	for _, r := range runs {
		l.ended[r] = status
	}
	gone := func(r string) bool { return slices.Contains(runs, r) }
	l.waiting = slices.DeleteFunc(slices.Clone(l.waiting), gone)
	if gone(l.active) {
		l.active, l.attempt = "", 0
		if len(l.waiting) > 0 {
			l.active, l.waiting = l.waiting[0], l.waiting[1:]
		}
	}
	return l
}

// all returns the runs that have not ended.
func (l lock) all() []string {
	if l.active == "" {
		return nil
	}
	return append([]string{l.active}, l.waiting...)
}

// owned reports whether a worker has the attempt that writes next.
func (l lock) owned(c call) bool { return l.active == c.run && l.attempt == c.attempt }

// status returns the status that a run shows.
func (l lock) status(r string) run.Status {
	switch {
	case r == l.active && l.attempt > 0:
		return run.Running
	case slices.Contains(l.all(), r):
		return run.Pending
	default:
		return l.ended[r]
	}
}

// step reports whether the lock may give this answer, and returns the lock after the call.
func (l lock) step(c call, a answer) (bool, lock) {
	switch c.verb {
	case doCreate:
		return l.create(c, a)
	case doClaim:
		return l.claim(c, a)
	case doFlush:
		return a.done == l.owned(c), l
	case doFinish:
		if !a.done || !l.owned(c) {
			return a.done == l.owned(c), l
		}
		return true, l.after(run.Success, c.run)
	case doFail:
		if l.active != c.run {
			return true, l
		}
		return true, l.after(run.Error, c.run)
	case doCancel:
		if !slices.Contains(l.all(), c.run) {
			return !a.done, l
		}
		return a.done, l.after(ends[c.action], c.run)
	case doSweep:
		return a.done == (l.active != ""), l.after(ends[c.action], l.all()...)
	case doGet:
		shown := l.status(c.run)
		return a.status == shown || (a.status == "" && shown == run.Removed), l
	case doLook:
		return a.done == (l.active != "") && (!a.done || a.run == l.active), l
	}
	panic(c.verb)
}

var ends = map[run.Action]run.Status{run.ActionInterrupt: run.Interrupted, run.ActionRollback: run.Removed}

func (l lock) create(c call, a answer) (bool, lock) {
	if !a.done {
		return c.strategy == run.Reject && l.active != "", l
	}
	if a.run <= l.last {
		return false, l // ids tell the order in which runs were accepted
	}
	switch c.strategy {
	case run.Reject:
		if l.active != "" {
			return false, l
		}
	case run.Interrupt:
		l = l.after(run.Interrupted, l.all()...)
	case run.Rollback:
		l = l.after(run.Removed, l.all()...)
	}
	l.last = a.run
	if l.active == "" {
		l.active, l.attempt = a.run, 0
	} else {
		l.waiting = append(slices.Clone(l.waiting), a.run)
	}
	return true, l
}

func (l lock) claim(c call, a answer) (bool, lock) {
	switch {
	case l.active != c.run:
		return !a.done && !a.exhausted, l
	case l.attempt == run.MaxAttempts:
		return a.exhausted, l
	}
	l.attempt++
	return a.done && a.attempt == l.attempt, l
}

func equalLocks(x, y any) bool {
	a, b := x.(lock), y.(lock)
	return a.active == b.active && a.attempt == b.attempt && a.last == b.last && slices.Equal(a.waiting, b.waiting) && maps.Equal(a.ended, b.ended)
}

var lockModel = porcupine.Model{
	Init:  func() any { return lock{ended: map[string]run.Status{}} },
	Step:  func(s, in, out any) (bool, any) { return s.(lock).step(in.(call), out.(answer)) },
	Equal: equalLocks,
}

// TestTheLockIsLinearizable lets clients and workers of two servers use one thread at once.
// The servers share one table, and their clocks differ by an hour. The test looks for an order
// of all operations in which one run has the thread at a time. A failure names its seed, which
// decides the operations of each actor.
func TestTheLockIsLinearizable(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			var all sync.WaitGroup
			for i := range 6 {
				actor := &actor{history: h, id: i, rng: rand.New(rand.NewPCG(seed, uint64(i))), runs: h.servers[i%2]}
				all.Go(func() {
					for range 14 {
						actor.act()
					}
				})
			}
			all.Wait()
			result, about := porcupine.CheckOperationsVerbose(lockModel, h.operations, time.Minute)
			if result == porcupine.Ok {
				return
			}
			t.Fatalf("the history is %s\n%s", result, unordered(h.operations, about))
		})
	}
}

// unordered shows the longest order of operations that was found, and the operations that have
// no place in it.
func unordered(operations []porcupine.Operation, about porcupine.LinearizationInfo) string {
	longest := []porcupine.Operation{}
	for _, order := range about.PartialLinearizationsOperations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	var text strings.Builder
	now := lockModel.Init()
	write := func(o porcupine.Operation) {
		fmt.Fprintf(&text, "%d %7d-%7d µs %+v -> %+v\n", o.ClientId, o.Call/1000, o.Return/1000, o.Input, o.Output)
	}
	for _, o := range longest {
		write(o)
		_, now = lockModel.Step(now, o.Input, o.Output)
	}
	fmt.Fprintf(&text, "then it is %+v, and none of these fits:\n", now)
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range operations {
		if !slices.Contains(longest, o) {
			write(o)
		}
	}
	return text.String()
}

// history holds the operations of all actors on a thread.
type history struct {
	*fixture
	servers [2]*run.Store
	begun   time.Time

	mu         sync.Mutex
	operations []porcupine.Operation
	known      []run.Ref
}

func newHistory(t *testing.T) *history {
	t.Helper()
	tb := fixtures.DomainTable(t, clock.System)
	first, second := newFixtureOn(t, tb), newFixtureOn(t, tb)
	second.hand.move(time.Hour)
	return &history{fixture: first, servers: [2]*run.Store{first.runs, second.runs}, begun: time.Now()}
}

// record runs an operation and notes it with the time that it took.
func (h *history) record(client int, c call, do func() answer) answer {
	from := time.Since(h.begun)
	got := do()
	to := time.Since(h.begun)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{ClientId: client, Input: c, Call: int64(from), Output: got, Return: int64(to)})
	return got
}

// actor is a client and a worker of one server.
type actor struct {
	*history
	id   int
	rng  *rand.Rand
	runs *run.Store
	// attempts are the attempts that the actor has claimed. It goes on with any of them, even
	// if another worker has the run.
	attempts []*run.Attempt
	created  int
}

func (a *actor) act() {
	switch a.rng.IntN(18) {
	case 0, 1, 2:
		a.create(run.Enqueue)
	case 3:
		a.create(run.Interrupt)
	case 4:
		a.create(run.Reject)
	case 5:
		a.create(run.Rollback)
	case 6, 7, 8, 9:
		a.claim()
	case 10, 16:
		a.write(doFlush, func(at *run.Attempt) error { show(at, "a message", "text"); return at.Flush(a.t.Context()) })
	case 11, 12, 17:
		a.write(doFinish, func(at *run.Attempt) error { return at.Finish(a.t.Context(), run.Outcome{Status: run.Success}) })
	case 13:
		a.cancel()
	case 14:
		a.sweep()
	case 15:
		a.get()
	}
}

func (a *actor) create(strategy run.Strategy) {
	a.created++
	request := say(fmt.Sprintf("input %d of %d", a.created, a.id), strategy)
	a.record(a.id, call{verb: doCreate, strategy: strategy}, func() answer {
		created, err := a.runs.Create(a.t.Context(), a.ref, request)
		if fault.Is(err, fault.Conflict) {
			return answer{}
		}
		a.must(doCreate, err)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.known = append(a.known, created.Ref)
		return answer{done: err == nil, run: created.Run}
	})
}

// look reads which run has the thread.
func (a *actor) look() answer {
	return a.record(a.id, call{verb: doLook}, func() answer {
		found, err := a.threads.Get(a.t.Context(), a.ref)
		a.must(doLook, err)
		return answer{done: found.Lock.Busy, run: found.Lock.Run}
	})
}

func (a *actor) claim() {
	found := a.look()
	if !found.done {
		return
	}
	ref := run.Ref{Ref: a.ref, Run: found.run}
	claimed := a.record(a.id, call{verb: doClaim, run: ref.Run}, func() answer {
		at, err := a.runs.Claim(a.t.Context(), ref, 0)
		if errors.Is(err, run.ErrNothingToDo) || errors.Is(err, run.ErrAttemptsExhausted) {
			return answer{exhausted: errors.Is(err, run.ErrAttemptsExhausted)}
		}
		a.must(doClaim, err)
		if err != nil {
			return answer{}
		}
		a.attempts = append(a.attempts, at)
		return answer{done: true, attempt: at.Run.Attempt}
	})
	if claimed.exhausted {
		a.record(a.id, call{verb: doFail, run: ref.Run}, func() answer {
			a.must(doFail, a.runs.Fail(a.t.Context(), ref, run.Failure{Name: "exhausted"}))
			return answer{done: true}
		})
	}
}

// write makes a write with one of the actor's attempts.
func (a *actor) write(what verb, do func(*run.Attempt) error) {
	if len(a.attempts) == 0 {
		return
	}
	i := a.rng.IntN(len(a.attempts))
	at := a.attempts[i]
	wrote := a.record(a.id, call{verb: what, run: at.Run.Run, attempt: at.Run.Attempt}, func() answer {
		err := do(at)
		if !errors.Is(err, run.ErrFenced) {
			a.must(what, err)
		}
		return answer{done: err == nil}
	})
	if !wrote.done || what == doFinish {
		a.attempts = slices.Delete(a.attempts, i, i+1)
	}
}

// some returns a run that an actor has created.
func (a *actor) some() (run.Ref, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) == 0 {
		return run.Ref{}, false
	}
	return a.known[len(a.known)-1-a.rng.IntN(min(len(a.known), 4))], true
}

func (a *actor) action() run.Action {
	return []run.Action{run.ActionInterrupt, run.ActionRollback}[a.rng.IntN(2)]
}

func (a *actor) cancel() {
	ref, ok := a.some()
	if !ok {
		return
	}
	action := a.action()
	a.record(a.id, call{verb: doCancel, run: ref.Run, action: action}, func() answer {
		err := a.runs.Cancel(a.t.Context(), ref, action)
		if !fault.Is(err, fault.NotFound) {
			a.must(doCancel, err)
		}
		return answer{done: err == nil}
	})
}

func (a *actor) sweep() {
	action := a.action()
	a.record(a.id, call{verb: doSweep, action: action}, func() answer {
		found, err := a.runs.CancelThread(a.t.Context(), a.ref, action)
		a.must(doSweep, err)
		return answer{done: found}
	})
}

func (a *actor) get() {
	ref, ok := a.some()
	if !ok {
		return
	}
	a.record(a.id, call{verb: doGet, run: ref.Run}, func() answer {
		found, err := a.runs.Get(a.t.Context(), ref)
		if !fault.Is(err, fault.NotFound) {
			a.must(doGet, err)
		}
		return answer{done: err == nil, status: found.Status}
	})
}

func (a *actor) must(what verb, err error) {
	if err != nil {
		a.t.Errorf("%s: %v", what, err)
	}
}

package runner_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// largeText is the size of the state of a large thread: 8 times what a run may hold uncounted.
// grownText is the size of a state that grows in one run; runners do not look at smaller growth.
const (
	largeText = 1 << 20
	grownText = 5 << 18
)

// patient is an agent that answers a run with the input "wait" when the test lets it.
type patient struct {
	arrived, leave chan struct{}
	inside, most   atomic.Int64
}

func newPatient() *patient {
	return &patient{arrived: make(chan struct{}, 100), leave: make(chan struct{})}
}

func (p *patient) answer(ctx context.Context, invocation graph.Invocation, _ func(string, any)) error {
	if !strings.Contains(string(invocation.Input), "wait") {
		return nil
	}
	inside := p.inside.Add(1)
	defer p.inside.Add(-1)
	for most := p.most.Load(); inside > most && !p.most.CompareAndSwap(most, inside); most = p.most.Load() {
	}
	p.arrived <- struct{}{}
	select {
	case <-p.leave:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits for an invocation.
func (f *fixture) wait(arrived <-chan struct{}) {
	f.t.Helper()
	select {
	case <-arrived:
	case <-time.After(time.Minute):
		f.t.Fatal("the agent is not called")
	}
}

// newLargeThread makes a thread with a large state.
func (f *fixture) newLargeThread() thread.Ref {
	f.t.Helper()
	ref := f.newThread()
	f.join(f.give(ref, fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", largeText))))
	return ref
}

// TestAttackRunsOnLargeThreads checks that the states of such runs share one budget, however
// many runs there are. Runs of another workspace do not wait for them, and all runs succeed.
func TestAttackRunsOnLargeThreads(t *testing.T) {
	t.Parallel()
	const runs, atOnce = 6, 3
	agent := newPatient()
	// A state is read twice: as the state, and as the update that its agent has not seen. Half
	// of the budget is for two states at rest (2) and one that is sent (6), but not for a fourth.
	states := budget.NewLasting(16 * largeText)
	f := newFixture(t, graphtest.Start(t, agent.answer), func(c *runner.Config) { c.States, c.StateAtRest, c.StateWait = states, 1, time.Hour })
	var refs []thread.Ref
	for range runs {
		refs = append(refs, f.newLargeThread())
	}
	var all []run.Run
	for _, ref := range refs {
		all = append(all, f.create(ref, "wait", run.Enqueue))
	}
	for range atOnce {
		f.wait(agent.arrived)
	}
	other := thread.Ref{Workspace: "other", Deployment: "d", Thread: id.New(clock.System())}
	_, err := f.threads.Create(t.Context(), other, nil, nil, false)
	f.must(err)
	if small := f.join(f.create(other, "hi", run.Enqueue)); small.Status != run.Success {
		t.Errorf("the small run ended as %s", small.Status)
	}
	if held := states.Held(); held < atOnce*largeText*3/4 {
		t.Errorf("%d bytes are held for %d states of %d bytes", held, atOnce, largeText)
	}
	close(agent.leave)
	for _, r := range all {
		if ended := f.join(r); ended.Status != run.Success || ended.Attempt != 1 {
			t.Errorf("a run ended as %s after %d attempts: %+v", ended.Status, ended.Attempt, ended.Failure)
		}
	}
	if most := agent.most.Load(); most > atOnce {
		t.Errorf("the agent worked on %d runs at once, want %d", most, atOnce)
	}
	f.cutOff(f.engine)
	if held := states.Held(); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}

// TestAttackRunsOnThreadsThatAreRemembered checks that a state counts that was found in memory
// and not read, because its snapshot is not among the newest checkpoints.
func TestAttackRunsOnThreadsThatAreRemembered(t *testing.T) {
	t.Parallel()
	agent := newPatient()
	states := budget.NewLasting(100 * largeText)
	f := newFixture(t, graphtest.Start(t, agent.answer), func(c *runner.Config) { c.States, c.StateAtRest = states, 1 })
	ref := f.newLargeThread()
	for i := range 10 {
		f.join(f.create(ref, fmt.Sprint("small ", i), run.Enqueue))
	}
	r := f.create(ref, "wait", run.Enqueue)
	f.wait(agent.arrived)
	if held := states.Held(); held < largeText/2 {
		t.Errorf("%d bytes are held for a state of %d bytes", held, largeText)
	}
	close(agent.leave)
	if ended := f.join(r); ended.Status != run.Success {
		t.Errorf("the run ended as %s", ended.Status)
	}
}

// TestAttackStatesThatGrow has agents that send large states on small threads. What the states
// have grown by shares the budget of all states, and all runs succeed in the end.
func TestAttackStatesThatGrow(t *testing.T) {
	t.Parallel()
	const runs, atOnce = 3, 2
	agent := newPatient()
	answer := func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		emit(graph.EventUpdates, map[string]any{"n": map[string]any{"text": strings.Repeat("x", grownText)}})
		return agent.answer(ctx, invocation, emit)
	}
	// Half of the budget is for two states.
	states := budget.NewLasting(5 * grownText)
	f := newFixture(t, graphtest.Start(t, answer), func(c *runner.Config) { c.States, c.StateAtRest, c.StateWait = states, 1, time.Hour })
	var all []run.Run
	for range runs {
		all = append(all, f.create(f.newThread(), "wait", run.Enqueue))
	}
	for range runs {
		f.wait(agent.arrived)
	}
	few := int64(atOnce * (grownText - 1<<18))
	for tick, late := time.NewTicker(10*time.Millisecond), time.After(time.Minute); states.Held() < few; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%d bytes are held, want %d states of %d bytes", states.Held(), atOnce, grownText)
		}
	}
	if held := states.Held(); held > atOnce*(grownText+1<<18) {
		t.Errorf("%d bytes are held, want %d states of %d bytes", held, atOnce, grownText)
	}
	close(agent.leave)
	for _, r := range all {
		if ended := f.join(r); ended.Status != run.Success || ended.Attempt != 1 {
			t.Errorf("a run ended as %s after %d attempts: %+v", ended.Status, ended.Attempt, ended.Failure)
		}
	}
	f.cutOff(f.engine)
	if held := states.Held(); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}

// TestStatesThatGrowDoNotWaitForEver has a run that holds all room, and ends after runs whose
// states grow, too.
func TestStatesThatGrowDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	agent := newPatient()
	states := budget.NewLasting(2 * grownText)
	answer := func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		emit(graph.EventUpdates, map[string]any{"n": map[string]any{"text": strings.Repeat("x", grownText)}})
		return agent.answer(ctx, invocation, emit)
	}
	f := newFixture(t, graphtest.Start(t, answer), func(c *runner.Config) {
		c.States, c.StateAtRest, c.StateWait, c.Heartbeat = states, 1, 20*time.Millisecond, 20*time.Millisecond
	})
	first := f.create(f.newThread(), "wait", run.Enqueue)
	f.wait(agent.arrived)
	others := []run.Run{f.create(f.newThread(), "go", run.Enqueue), f.create(f.newThread(), "go", run.Enqueue)}
	for _, r := range others {
		if ended := f.join(r); ended.Status != run.Success || ended.Attempt != 1 {
			t.Errorf("a run ended as %s after %d attempts: %+v", ended.Status, ended.Attempt, ended.Failure)
		}
	}
	close(agent.leave)
	if ended := f.join(first); ended.Status != run.Success {
		t.Errorf("the run that holds the room ended as %s", ended.Status)
	}
}

// TestRunsDoNotWaitForRoomForEver has two runs work at the same time, although there is room for
// the state of one run only: the first run may wait for the second one.
func TestRunsDoNotWaitForRoomForEver(t *testing.T) {
	t.Parallel()
	agent := newPatient()
	states := budget.NewLasting(7 * largeText)
	f := newFixture(t, graphtest.Start(t, agent.answer), func(c *runner.Config) {
		c.States, c.StateAtRest, c.StateWait = states, 1, 20*time.Millisecond
	})
	refs := []thread.Ref{f.newLargeThread(), f.newLargeThread(), f.newLargeThread()}
	var all []run.Run
	for _, ref := range refs {
		all = append(all, f.create(ref, "wait", run.Enqueue))
		f.wait(agent.arrived)
	}
	close(agent.leave)
	for _, r := range all {
		if ended := f.join(r); ended.Status != run.Success {
			t.Errorf("a run ended as %s", ended.Status)
		}
	}
	f.cutOff(f.engine)
	if held := states.Held(); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}

// TestRunsOnEncryptedStatesDoNotWaitForRoomForEver: while the first run works, there is no room for
// the answer of the handlers that decrypt the state of the second run.
func TestRunsOnEncryptedStatesDoNotWaitForRoomForEver(t *testing.T) {
	t.Parallel()
	below := fixtures.DomainTable(t, clock.System)
	check.Must(t, below.Transact(t.Context(), cipher.Mark("w", "d", clock.System())))
	encrypted, err := cipher.Open(t.Context(), below, clock.System, func(ctx context.Context, _, _ string, _ graph.Operation, asked graph.Encryption) (answer graph.Ciphered, err error) {
		hold, taken := budget.HoldOf(ctx), int64(0)
		defer func() { hold.Give(taken) }()
		for _, value := range asked.Values {
			size := int64(len(value.Data)) * 8
			if !hold.Try(size) { // as Agents.Cipher
				return answer, hold.Take(ctx, size)
			}
			taken += size
			answer.Values = append(answer.Values, value.Data)
		}
		return answer, nil
	})
	check.Must(t, err)
	agent := newPatient()
	f := newFixtureOn(t, encrypted, graphtest.Start(t, agent.answer), nil, func(c *runner.Config) {
		c.States, c.StateAtRest, c.StateWait = budget.NewLasting(7*largeText), 1, 20*time.Millisecond
	})
	var all []run.Run
	for _, ref := range []thread.Ref{f.newLargeThread(), f.newLargeThread()} {
		all = append(all, f.create(ref, "wait", run.Enqueue))
		f.wait(agent.arrived)
	}
	close(agent.leave)
	for _, r := range all {
		if ended := f.join(r); ended.Status != run.Success || ended.Attempt != 1 {
			t.Errorf("a run ended as %s after %d attempts", ended.Status, ended.Attempt)
		}
	}
}

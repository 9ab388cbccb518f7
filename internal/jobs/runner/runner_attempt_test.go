package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// TestABrokenConnectionIsTriedAgain checks that the next attempt goes on from the checkpoint,
// so that the agent sees its earlier work.
func TestABrokenConnectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	f, r := talk(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
		if invocation.Attempt == 1 {
			emit(graph.EventUpdates, update("one", ""))
			emit(graph.EventMessages, chunk("two", "I was say"))
			return graphtest.ErrBreak
		}
		if strings.Count(string(invocation.State.Values), `"one"`) != 2 { // as an id and as content
			return fmt.Errorf("the state is %s", invocation.State.Values)
		}
		emit(graph.EventUpdates, update("two", ""))
		return nil
	}, nil)
	if got := f.join(r); got.Status != run.Success || got.Attempt != 2 {
		t.Errorf("got status %s of attempt %d, failure %v", got.Status, got.Attempt, got.Failure)
	}
	if diff := cmp.Diff([]string{"hi", "one", "two"}, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got, want := names(f.events(r)), "metadata values updates values messages metadata updates values"; got != want {
		t.Errorf("got events %s\nwant %s", got, want)
	}
}

// TestAConnectionThatBreaksEachTime checks that the run ends after three attempts, and that
// shown output is kept once.
func TestAConnectionThatBreaksEachTime(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int64
	f, r := talk(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		text := "I was saying"
		emit(graph.EventMessages, chunk(fmt.Sprint("m", attempts.Add(1)), text[:len(text)-int(attempts.Load())]))
		return graphtest.ErrBreak
	}, nil)
	got := f.join(r)
	if got.Status != run.Error || got.Attempt != 3 || attempts.Load() != 3 || got.Failure.Name != "AgentUnavailable" {
		t.Errorf("got status %s, %v, after %d attempts of the run and %d of the agent", got.Status, got.Failure, got.Attempt, attempts.Load())
	}
	if cause := got.Failure.Message; !strings.Contains(cause, "at each attempt. The last time: agent is unavailable: ") {
		t.Errorf("got message %q, want one with the last attempt's end", cause)
	}
	if diff := cmp.Diff([]string{"hi", "I was sayin..."}, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got, want := <-f.engine.ended, "ExecutionSucceeded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// witness is the reason why an agent has ended.
type witness string

func (w witness) WhyEnded(context.Context) string { return string(w) }

// TestARunSaysWhyItsAgentEnded checks that the failure has the words of the target that ran
// the agent, if the target knows the reason.
func TestARunSaysWhyItsAgentEnded(t *testing.T) {
	t.Parallel()
	for words, want := range map[witness]string{
		"the agent was ended because it used more than the 64 MB of memory that it may.": "agent is unavailable: the agent was ended because it used more than the 64 MB of memory that it may.",
		"": "agent is unavailable: ",
	} {
		endpoint := graphtest.Start(t, func(context.Context, graph.Invocation, func(string, any)) error { return graphtest.ErrBreak })
		endpoint.Witness = words
		f := newFixture(t, endpoint, nil)
		got := f.join(f.create(f.newThread(), "hi", run.Enqueue))
		if got.Status != run.Error || got.Failure == nil || !strings.Contains(got.Failure.Message, "at each attempt. The last time: "+want) {
			t.Errorf("%q: got status %s, %v", words, got.Status, got.Failure)
		}
	}
}

// TestARestartingAgentIsWaitedFor checks that an attempt waits for the agent, and so do the
// next attempts.
func TestARestartingAgentIsWaitedFor(t *testing.T) {
	t.Parallel()
	endpoint := graphtest.Start(t, nil)
	f := newFixture(t, endpoint, func(c *runner.Config) { c.AgentWait = time.Millisecond })
	var calls atomic.Int64
	f.target.acquire = func(ctx context.Context) (compute.Endpoint, error) {
		switch calls.Add(1) {
		case 1:
			<-ctx.Done() // the agent does not come back in time
			return compute.Endpoint{}, ctx.Err()
		case 2:
			return compute.Endpoint{}, &compute.UnavailableError{Status: compute.Status{State: compute.Progressing}}
		default:
			return endpoint, nil
		}
	}
	r := f.create(f.newThread(), "hi", run.Enqueue)
	if got := f.join(r); got.Status != run.Success || got.Attempt != 1 {
		t.Errorf("got status %s of attempt %d, failure %v", got.Status, got.Attempt, got.Failure)
	}
}

// TestAnAgentThatIsNotThere checks that the run fails visibly, that its input is kept, and
// that the next run has its turn.
func TestAnAgentThatIsNotThere(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		trouble error
		want    run.Failure
	}{
		"its release has failed": {
			&compute.UnavailableError{
				Ref:    compute.Ref{Revision: "v"},
				Status: compute.Status{State: compute.Failed, Message: "it exited with status 1. Its last output:\nsecret stack trace"},
			},
			run.Failure{
				Name: "AgentUnavailable",
				Message: "The agent could not be reached, or ended before its answer did, at each attempt. " +
					"The last time: revision v is failed: it exited with status 1. Its last output:",
			},
		},
		"the target has trouble": {
			errors.New("trouble of ours"),
			run.Failure{
				Name:    "InternalError",
				Message: "The platform could not complete the run; its log says why. Try again, and tell its operator if it persists.",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint := graphtest.Start(t, nothing)
			f := newFixture(t, endpoint, nil)
			var calls atomic.Int64
			f.target.acquire = func(context.Context) (compute.Endpoint, error) {
				if calls.Add(1) <= run.MaxAttempts {
					return compute.Endpoint{}, test.trouble
				}
				return endpoint, nil
			}
			ref := f.newThread()
			first, second := f.create(ref, "one", run.Enqueue), f.create(ref, "two", run.Enqueue)
			if got := f.join(first); got.Status != run.Error || got.Attempt != 0 {
				t.Errorf("got status %s of attempt %d", got.Status, got.Attempt)
			}
			if diff := cmp.Diff(&test.want, f.join(first).Failure); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
			if got, want := names(f.events(first)), "values error"; got != want {
				t.Errorf("got events %s, want %s", got, want)
			}
			if diff := cmp.Diff([]string{"one", "two"}, f.messages(second)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if got := f.join(second).Status; got != run.Success {
				t.Errorf("the next run is %s, want success", got)
			}
		})
	}
}

// TestARunWithoutAttemptsLeft checks that the run ends at once after three workers have died
// on it.
func TestARunWithoutAttemptsLeft(t *testing.T) {
	t.Parallel()
	endpoint := graphtest.Start(t, nothing)
	f := newFixture(t, endpoint, nil)
	release, calls := make(chan struct{}), atomic.Int64{}
	f.target.acquire = func(context.Context) (compute.Endpoint, error) {
		calls.Add(1)
		<-release
		return endpoint, nil
	}
	r := f.create(f.newThread(), "hi", run.Enqueue)
	for range run.MaxAttempts {
		_, err := f.runs.Claim(t.Context(), r.Ref, 0)
		f.must(err)
	}
	close(release)
	if got := f.join(r); got.Status != run.Error || got.Attempt != run.MaxAttempts || calls.Load() != 1 || got.Failure.Name != "AttemptsExhausted" {
		t.Errorf("got status %s of attempt %d, the agent was acquired %d times", got.Status, got.Attempt, calls.Load())
	}
	if diff := cmp.Diff([]string{"hi"}, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestAnInterruptClosesTheConnection checks that it closes promptly, and that the next run's
// agent sees the shown output.
func TestAnInterruptClosesTheConnection(t *testing.T) {
	t.Parallel()
	closed, late := make(chan struct{}), make(chan json.RawMessage, 1)
	f, first := talk(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		if strings.Contains(string(invocation.Input), "stop") {
			late <- invocation.State.Values
			emit(graph.EventUpdates, update("stopped", ""))
			return nil
		}
		emit(graph.EventMessages, chunk("m", "I was say"))
		<-ctx.Done()
		close(closed)
		return ctx.Err()
	}, nil)
	f.until(first, run.EventMessages)
	second := f.create(first.Ref.Ref, "stop", run.Interrupt)
	<-closed
	if got := f.join(first).Status; got != run.Interrupted {
		t.Errorf("got status %s, want interrupted", got)
	}
	if values := string(<-late); !strings.Contains(values, "I was say") {
		t.Errorf("the successor's state is %s", values)
	}
	if diff := cmp.Diff([]string{"hi", "I was say...", "stop", "stopped"}, f.messages(second)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for range 2 {
		if got, want := <-f.engine.ended, "ExecutionSucceeded"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// until waits for an event of a run.
func (f *fixture) until(r run.Run, name string) {
	f.t.Helper()
	f.untilMany(r, name, 1)
}

// untilMany waits for a number of events of a run.
func (f *fixture) untilMany(r run.Run, name string, many int) {
	f.t.Helper()
	there := errors.New("there")
	err := f.runs.Stream(f.t.Context(), r, 0, func(events []run.Event) error {
		for _, event := range events {
			if event.Name == name {
				many--
			}
			if many == 0 {
				return there
			}
		}
		return nil
	})
	if !errors.Is(err, there) {
		f.t.Fatalf("waiting for %s: got %v", name, err)
	}
}

// TestARunGoesOnInAnotherProcess ends the engine in the middle of a run. The run goes on, no
// message appears twice and no shown output is lost.
func TestARunGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	f, r := talk(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		if invocation.Attempt == 1 {
			emit(graph.EventUpdates, update("one", ""))
			emit(graph.EventMessages, chunk("two", "tw"))
			<-ctx.Done()
			return ctx.Err()
		}
		emit(graph.EventMessages, chunk("two", "two"))
		emit(graph.EventUpdates, update("two", ""))
		return nil
	}, nil)
	f.until(r, run.EventMessages)
	f.cutOff(f.engine)
	if got, err := f.runs.Get(t.Context(), r.Ref); err != nil || got.Status != run.Running {
		t.Fatalf("after the end of the engine: got status %s, error %v", got.Status, err)
	}
	f.startEngine()
	if diff := cmp.Diff([]string{"hi", "one", "two"}, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := f.join(r); got.Status != run.Success || got.Attempt != 2 {
		t.Errorf("got status %s of attempt %d", got.Status, got.Attempt)
	}
	if got, want := names(f.events(r)), "metadata values updates values messages metadata messages updates values"; got != want {
		t.Errorf("got events %s\nwant %s", got, want)
	}
}

// TestARunIsHandedOver checks that each process that stops in the middle of the run hands it
// over, more often than the run may have attempts. The next process takes the run up at once,
// goes on after the last step, and shows nothing twice.
func TestARunIsHandedOver(t *testing.T) {
	t.Parallel()
	const processes = run.MaxAttempts + 2
	f, r := talk(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		step := fmt.Sprint("step ", 1+strings.Count(string(invocation.State.Values), `"content":"step`))
		emit(graph.EventMessages, chunk(step, step))
		emit(graph.EventUpdates, update(step, ""))
		if invocation.Attempt == processes {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}, nil)
	want := []string{"hi"}
	for process := 1; ; process++ {
		want = append(want, fmt.Sprint("step ", process))
		f.untilMany(r, graph.EventUpdates, process)
		if process == processes {
			break
		}
		f.cutOff(f.engine)
		left, err := f.runs.Get(t.Context(), r.Ref)
		f.must(err)
		if left.Status != run.Running || left.LastHandover != left.Attempt {
			t.Errorf("process %d leaves the run %s, and attempt %d handed over of %d", process, left.Status, left.LastHandover, left.Attempt)
		}
		f.startEngine() // with a clock at which no lease is over
	}
	got := f.join(r)
	if got.Status != run.Success || got.Attempt != processes || got.Failures != 0 {
		t.Errorf("got status %s of attempt %d after %d failures: %v", got.Status, got.Attempt, got.Failures, got.Failure)
	}
	if diff := cmp.Diff(want, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	shown := strings.Count(names(f.events(r)), graph.EventMessages)
	if shown != processes {
		t.Errorf("%d chunks were shown of %d steps", shown, processes)
	}
}

// TestTheEndOfARunOutlivesItsProcess ends the process at the moment when the agent's answer is
// complete.
func TestTheEndOfARunOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event string
		want  run.Status
	}{
		"an answer":           {graph.EventCustom, run.Success},
		"an answer of no use": {graph.EventUpdates, run.Error},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, graphtest.Start(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
				emit(c.event, 7)
				return nil
			}), nil)
			ended := make(chan struct{})
			end := func(writes []table.Write) {
				if change, ok := writes[0].(table.Update); !ok || change.Set["status"] != string(c.want) {
					return
				}
				select {
				case <-ended: // the write is tried again
				default:
					gone, cancel := context.WithCancel(context.Background())
					cancel()
					f.engine.Close(gone)
					close(ended)
				}
			}
			f.table.before.Store(&end)
			r := f.create(f.newThread(), "hi", run.Enqueue)
			<-ended
			f.engine.awaitTasks()
			got, err := f.runs.Get(t.Context(), r.Ref)
			f.must(err)
			if got.Status != c.want {
				t.Errorf("the run is %s", got.Status)
			}
		})
	}
}

// TestTheEndOfAnEngineShowsNothing checks that a run shows no output that the agent has not
// sent. When the workers go on after a write, both their streams and their time are over.
func TestTheEndOfAnEngineShowsNothing(t *testing.T) {
	t.Parallel()
	const n = 20
	speak, held := make(chan struct{}), make(chan struct{})
	entered, closed := make(chan struct{}, n), make(chan struct{}, n)
	f := newFixture(t, graphtest.Start(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
		entered <- struct{}{}
		<-speak
		emit(graph.EventCustom, "x")
		<-ctx.Done()
		closed <- struct{}{}
		return ctx.Err()
	}), nil)
	var runs []run.Run
	for range n {
		runs = append(runs, f.create(f.newThread(), "hi", run.Enqueue))
	}
	for range n {
		<-entered
	}
	f.table.held.Store(&held)
	close(speak)
	for _, r := range runs {
		f.until(r, graph.EventCustom)
	}
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		f.cutOff(f.engine)
	}()
	for range n {
		<-closed
	}
	close(held)
	<-cut
	for _, r := range runs {
		f.must(f.runs.Fail(t.Context(), r.Ref, run.Failure{Name: "E"}))
		if got, want := names(f.events(r)), "metadata values custom error"; got != want {
			t.Errorf("got events %s, want %s", got, want)
		}
	}
}

// TestAWorkerWithoutARun checks that the worker has nothing to do, and that it reports
// nothing.
func TestAWorkerWithoutARun(t *testing.T) {
	t.Parallel()
	f, r := talk(t, nil, nil)
	<-f.engine.ended
	task := runner.New(f.config).Task
	input := func(step string, r run.Ref) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"step":%q,"workspace_id":"w","deployment_id":"d","thread_id":%q,"run_id":%q}`, step, r.Thread, r.Run))
	}
	before := f.table.transactions.Load()
	removed := run.Ref{Ref: r.Ref.Ref, Run: id.New(clock.System())}
	for _, step := range []string{"Work", "GiveUp"} {
		for _, of := range []run.Ref{r.Ref, removed} {
			output, err := task(t.Context(), input(step, of))
			if err != nil || string(output) != `{"due":""}` {
				t.Errorf("%s: got %s, %v", step, output, err)
			}
		}
	}
	if after := f.table.transactions.Load(); after != before {
		t.Errorf("a run that is over was written to %d times", after-before)
	}
	for name, wrong := range map[string]json.RawMessage{
		"unknown step": input("Dance", r.Ref), "no JSON": json.RawMessage(`{`),
	} {
		var named *workflow.TaskError
		if _, err := task(t.Context(), wrong); err == nil || errors.As(err, &named) {
			t.Errorf("%s: got %v, want an error that is no agent's fault", name, err)
		}
	}
}

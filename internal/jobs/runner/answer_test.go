package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

func names(events []run.Event) string {
	var out []string
	for _, event := range events {
		out = append(out, event.Name)
	}
	return strings.Join(out, " ")
}

func TestAnAgentsAnswerBecomesTheRun(t *testing.T) {
	t.Parallel()
	f, r := talk(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventMessages, chunk("m", "Hel"))
		emit(graph.EventMessages, chunk("m", "lo"))
		emit(graph.EventCustom, "anything")
		emit("updates|sub:1", update("inner", ""))
		emit(graph.EventUpdates, update("m", "Hello"))
		return nil
	}, nil)
	if got := f.join(r); got.Status != run.Success || got.Attempt != 1 {
		t.Errorf("got status %s of attempt %d", got.Status, got.Attempt)
	}
	if diff := cmp.Diff([]string{"hi", "Hello"}, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	want := "metadata values messages messages custom updates|sub:1 updates values"
	if got := names(f.events(r)); got != want {
		t.Errorf("got events %s\nwant %s", got, want)
	}
	if got, want := <-f.engine.ended, "ExecutionSucceeded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := f.target.callers.Load(); got != 0 {
		t.Errorf("%d callers were not counted out", got)
	}
}

// TestNothingToWriteShowsNoInput has an agent say things that are written with its next event only,
// and then keep a checkpoint. Readers see the values of this checkpoint only.
func TestNothingToWriteShowsNoInput(t *testing.T) {
	t.Parallel()
	f, r := talk(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		for range 1000 {
			emit(graph.EventUnfinished, []any{})
		}
		emit(graph.EventCheckpoint, graph.Checkpoint{ID: "c", Values: json.RawMessage(`{"n":1}`)})
		return nil
	}, func(c *runner.Config) { c.FlushDelay = time.Nanosecond })
	f.join(r)
	if got, want := names(f.events(r)), "metadata values"; got != want {
		t.Errorf("got events %s, want %s", got, want)
	}
}

// TestAttackAnAgentSpeaksForAnotherRun forges events that say which run they belong to, and that
// another run is done or has failed. Readers see only what the server says about runs.
func TestAttackAnAgentSpeaksForAnotherRun(t *testing.T) {
	t.Parallel()
	victims, forged := make(chan string, 1), make(chan struct{})
	f := newFixture(t, graphtest.Start(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
		if bytes.Contains(invocation.Input, []byte("victim")) {
			victims <- invocation.RunID
			<-forged
			emit(graph.EventUpdates, update("m", "Hello"))
			return nil
		}
		other := map[string]any{"run_id": <-victims, "thread_id": "any", "attempt": 7, "status": "run_done"}
		for _, name := range []string{"metadata", "metadata|sub:1", "end"} {
			emit(name, other)
		}
		emit(graph.EventError, map[string]any{"run_id": other["run_id"], "error": "Error", "message": "it has failed"})
		close(forged)
		return nil
	}), nil)
	victim := f.create(f.newThread(), "victim", run.Enqueue)
	forger, err := f.runs.Create(t.Context(), f.newThread(), run.Request{
		Graph: "weather", Strategy: run.Enqueue, StreamModes: []string{"values"}, StreamSubgraphs: true,
		Payload: run.Payload{Input: input(`{"messages":[{"type":"human","id":"a","content":"forger"}]}`)},
	})
	f.must(err)
	if got := f.join(forger); got.Status != run.Error {
		t.Errorf("the run that forges is %s", got.Status)
	}
	if got := f.join(victim); got.Status != run.Success || got.Attempt != 1 {
		t.Errorf("the other run is %s in attempt %d", got.Status, got.Attempt)
	}
	for _, r := range []run.Run{forger, victim} {
		begun := 0
		for _, event := range f.events(r) {
			if strings.HasPrefix(event.Name, run.EventMetadata) {
				begun++
				if want := fmt.Sprintf(`{"attempt":1,"run_id":%q}`, r.Run); string(event.Data) != want {
					t.Errorf("a reader is told %s, want %s", event.Data, want)
				}
			}
		}
		if begun != 1 {
			t.Errorf("a reader is told %d times that the run begins", begun)
		}
	}
}

// TestTheAgentIsAskedForTheRun compares the whole invocation.
func TestTheAgentIsAskedForTheRun(t *testing.T) {
	t.Parallel()
	asked := make(chan graph.Invocation, 1)
	f := newFixture(t, graphtest.Start(t, func(_ context.Context, invocation graph.Invocation, _ func(string, any)) error {
		asked <- invocation
		return nil
	}), nil)
	ref := f.newThread()
	r, err := f.runs.Create(t.Context(), ref, run.Request{
		Graph: "weather", Strategy: run.Enqueue, Payload: run.Payload{
			Input:  input(`{"messages":[{"type":"human","id":"a","content":"<hi>"}],"n":1}`),
			Config: json.RawMessage(`{"configurable":{"k":1}}`), Context: json.RawMessage(`{"c":1}`), Command: json.RawMessage(`{"resume":null}`),
			InterruptBefore: json.RawMessage(`"*"`),
		},
		StreamModes:     []string{"values", "messages-tuple", "messages", "custom", "updates"},
		StreamSubgraphs: true, Durability: "exit",
	})
	f.must(err)
	got := <-asked
	want := graph.Invocation{
		Operation: graph.OperationRun, Graph: "weather", ThreadID: ref.Thread, RunID: r.Run, Attempt: 1,
		Input: json.RawMessage(`{"messages":[{"type":"human","id":"a","content":"\u003chi\u003e"}],"n":1}`), Command: json.RawMessage(`{"resume":null}`),
		State: graph.State{
			Values:  json.RawMessage(`{"messages":[{"type":"human","id":"a","content":"\u003chi\u003e"}],"n":1}`),
			Pending: []graph.StateUpdate{},
		},
		Config: json.RawMessage(`{"configurable":{"k":1}}`), Context: json.RawMessage(`{"c":1}`),
		StreamMode: []string{"updates", "values", "messages", "custom"}, InterruptBefore: json.RawMessage(`"*"`),
		StreamSubgraphs: true, Durability: "async",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("invocation (-want +got):\n%s", diff)
	}
	f.join(r)
	f.join(f.create(ref, "more", run.Enqueue))
	var absent = json.RawMessage(`null`)
	if got = <-asked; !cmp.Equal([]json.RawMessage{absent, absent, absent}, []json.RawMessage{got.Config, got.Context, got.Command}) {
		t.Errorf("what the client left out is %s, %s, %s, want null", got.Config, got.Context, got.Command)
	}
	r, err = f.runs.Create(t.Context(), ref, run.Request{Graph: "weather", Strategy: run.Enqueue, Payload: run.Payload{Input: input(`{"n":2}`), Command: json.RawMessage(`{"resume":1}`)}})
	f.must(err)
	if got = <-asked; string(got.Input) != "null" || string(got.Command) != `{"resume":1}` {
		t.Errorf("a run with a command has the input %s and the command %s", got.Input, got.Command)
	}
	f.join(r)
}

// TestAJSONAnswerIsOneUpdate checks the answer of an agent that does not stream.
func TestAJSONAnswerIsOneUpdate(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"messages":[{"role":"assistant","content":"Hello"}],"mood":"good"}`)
	}))
	t.Cleanup(server.Close)
	f := newFixture(t, compute.Endpoint{URL: server.URL}, nil)
	r := f.create(f.newThread(), "hi", run.Enqueue)
	if diff := cmp.Diff([]string{"hi", "Hello"}, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got, want := names(f.events(r)), "metadata values updates values"; got != want {
		t.Errorf("got events %s, want %s", got, want)
	}
}

// TestAnAgentThatReportsValues checks that such an agent decides the content of the state.
func TestAnAgentThatReportsValues(t *testing.T) {
	t.Parallel()
	f, r := talk(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventValues, map[string]any{"messages": []any{map[string]any{"type": "ai", "id": "m", "content": "only this"}}})
		return nil
	}, nil)
	if diff := cmp.Diff([]string{"only this"}, f.messages(r)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestAPausedGraphAsksItsQuestions checks that it also leaves a thread that waits for the
// answer.
func TestAPausedGraphAsksItsQuestions(t *testing.T) {
	t.Parallel()
	f, r := talk(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventUpdates, update("m", "May I?"))
		emit(graph.EventInterrupt, []any{map[string]any{"id": "task", "value": "sure?"}})
		return nil
	}, nil)
	const want = `{"task":[{"id":"task","value":"sure?"}]}`
	if got := f.join(r); got.Status != run.Success || string(got.Interrupts) != want {
		t.Errorf("got status %s with %s", got.Status, got.Interrupts)
	}
	got, err := f.threads.Get(t.Context(), r.Ref.Ref)
	f.must(err)
	if got.Status != thread.StatusInterrupted || string(got.Interrupts) != want {
		t.Errorf("the thread is %s with %s", got.Status, got.Interrupts)
	}
	events := f.events(r)
	for i, name := range []string{"updates", "values"} {
		if e := events[len(events)-2+i]; e.Name != name || string(e.Data) != `{"__interrupt__":[{"id":"task","value":"sure?"}]}` {
			t.Errorf("instead of %s there is the event %s %s", name, e.Name, e.Data)
		}
	}
}

// TestAnAnswerThatFails checks that the run ends with an error at once, and that shown output
// is kept.
func TestAnAnswerThatFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer func(emit func(string, any)) error
		want   run.Failure
	}{
		"an error event": {
			func(func(string, any)) error { return errors.New("no key") },
			run.Failure{Name: "GraphError", Message: "no key"},
		},
		"an error event of another shape": {
			func(emit func(string, any)) error { emit(graph.EventError, "oops"); return nil },
			run.Failure{Name: "Error", Message: `"oops"`},
		},
		"an error event that is a book": {
			func(func(string, any)) error { return errors.New(strings.Repeat("é", 1<<20)) },
			run.Failure{Name: "GraphError", Message: strings.Repeat("é", 8<<10) + " ..."},
		},
		"questions that are a book": {
			func(emit func(string, any)) error {
				question := []map[string]any{{"id": "q", "value": strings.Repeat("x", 70<<10)}}
				emit(graph.EventInterrupt, question)
				emit(graph.EventInterrupt, question)
				return nil
			},
			run.Failure{
				Name:    "InvalidUpdate",
				Message: "The agent's update cannot be applied: the questions of a pause hold 143404 bytes: the limit is 131072",
			},
		},
		"questions that are none": {
			func(emit func(string, any)) error { emit(graph.EventInterrupt, []string{"sure?"}); return nil },
			run.Failure{Name: "InvalidUpdate", Message: `The agent's update cannot be applied: a question is no object whose id is a text: "sure?"`},
		},
		"a checkpoint with questions that are none": {
			func(emit func(string, any)) error { emit(graph.EventCheckpoint, asking("sure?")); return nil },
			run.Failure{Name: "InvalidUpdate", Message: `The agent's update cannot be applied: a question is no object whose id is a text: "sure?"`},
		},
		"a checkpoint with questions that are a book": {
			func(emit func(string, any)) error {
				emit(graph.EventCheckpoint, asking(map[string]any{"id": "q", "value": strings.Repeat("x", 500<<10)}))
				return nil
			},
			run.Failure{
				Name:    "InvalidUpdate",
				Message: "The agent's update cannot be applied: the questions of a pause hold 512022 bytes: the limit is 131072",
			},
		},
		"updates that are no object": {
			func(emit func(string, any)) error { emit(graph.EventUpdates, []int{1}); return nil },
			run.Failure{Name: "InvalidUpdate", Message: "The agent's update cannot be applied: updates are not an object by node: [1]"},
		},
		"a message of nobody": {
			func(emit func(string, any)) error {
				emit(graph.EventUpdates, json.RawMessage(`{"n":{"messages":[{"content":"x"}]}}`))
				return nil
			},
			run.Failure{Name: "InvalidUpdate", Message: `The agent's update cannot be applied: message has neither a type nor a known role ("")`},
		},
		"values that are no object": {
			func(emit func(string, any)) error { emit(graph.EventValues, 7); return nil },
			run.Failure{Name: "InvalidUpdate", Message: "The agent's update cannot be applied: state is not a JSON object: json: cannot unmarshal number into Go value of type map[string]json.RawMessage"},
		},
		"questions that are no list": {
			func(emit func(string, any)) error { emit(graph.EventInterrupt, "sure?"); return nil },
			run.Failure{Name: "InvalidUpdate", Message: "The agent's update cannot be applied: interrupt is not a list: json: cannot unmarshal string into Go value of type []json.RawMessage"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, r := talk(t, func(_ context.Context, _ graph.Invocation, emit func(string, any)) error {
				emit(graph.EventMessages, chunk("m", "I was say"))
				return test.answer(emit)
			}, nil)
			kept := []string{"hi"}
			if test.want.Name == "InvalidUpdate" {
				// The platform ends the run; nothing is kept of an agent's own error.
				kept = append(kept, "I was say...")
			}
			checkFailed(f, r, test.want, kept...)
		})
	}
}

// asking returns a checkpoint with a task that asks a question.
func asking(question any) map[string]any {
	return map[string]any{"id": "c", "values": map[string]any{}, "next": []string{"n"}, "tasks": []any{map[string]any{"id": "t", "interrupts": []any{question}}}}
}

// checkFailed checks that a run failed at its first attempt and left these messages.
func checkFailed(f *fixture, r run.Run, failure run.Failure, messages ...string) {
	f.t.Helper()
	ended := f.join(r)
	if ended.Status != run.Error || ended.Attempt != 1 {
		f.t.Errorf("got status %s of attempt %d", ended.Status, ended.Attempt)
	}
	if diff := cmp.Diff(&failure, ended.Failure); diff != "" {
		f.t.Errorf("failure (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(messages, f.messages(r)); diff != "" {
		f.t.Errorf("messages (-want +got):\n%s", diff)
	}
	events := f.events(r)
	var shown run.Failure
	if last := events[len(events)-1]; last.Name != run.EventError || json.Unmarshal(last.Data, &shown) != nil || shown != failure {
		f.t.Errorf("the last event is %s %s", last.Name, last.Data)
	}
}

// TestAnAgentThatBreaksTheContract checks that the run fails without another attempt.
func TestAnAgentThatBreaksTheContract(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler http.HandlerFunc
		name    string
		message string
		kept    []string
	}{
		"refuses":         {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such graph", http.StatusBadRequest) }, "AgentRefused", "status 400: no such graph", nil},
		"fails":           {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "boom", http.StatusInternalServerError) }, "AgentRefused", "status 500: boom", []string{"hi"}},
		"answers in HTML": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }, "ContractViolation", `"text/html"`, []string{"hi"}},
		"sends no JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: updates\ndata: oops\n\n")
		}, "ContractViolation", "not JSON: oops", []string{"hi"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.handler)
			t.Cleanup(server.Close)
			f := newFixture(t, compute.Endpoint{URL: server.URL}, nil)
			r := f.create(f.newThread(), "hi", run.Enqueue)
			ended := f.join(r)
			if ended.Failure == nil || !strings.Contains(ended.Failure.Message, test.message) {
				t.Fatalf("got failure %v, want one with %q", ended.Failure, test.message)
			}
			checkFailed(f, r, run.Failure{Name: test.name, Message: ended.Failure.Message}, test.kept...)
		})
	}
}

// TestAStateBeyondWhatCanBeKept checks that the run ends with a message, that changes written
// before are kept, and that the thread goes on.
func TestAStateBeyondWhatCanBeKept(t *testing.T) {
	t.Parallel()
	f, r := talk(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
		if strings.Contains(string(invocation.Input), "again") {
			emit(graph.EventUpdates, update("small", ""))
			return nil
		}
		for i := range 4 {
			emit(graph.EventUpdates, update(fmt.Sprint("large ", i), strings.Repeat("x", maxBody/3)))
		}
		return nil
	}, nil)
	got := f.join(r)
	if got.Status != run.Error || got.Attempt != 1 || got.Failure.Name != "StateTooLarge" {
		t.Errorf("got status %s of attempt %d: %v", got.Status, got.Attempt, got.Failure)
	}
	left := f.messages(r)
	if len(left) < 2 || left[0] != "hi" {
		t.Errorf("%d messages are left", len(left))
	}
	next := f.create(r.Ref.Ref, "again", run.Enqueue)
	if got := f.messages(next); f.join(next).Status != run.Success || len(got) != len(left)+2 {
		t.Errorf("the next run leaves %d messages after %d, and is %s: %v", len(got), len(left), f.join(next).Status, f.join(next).Failure)
	}
}

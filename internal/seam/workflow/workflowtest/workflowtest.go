// Package workflowtest is the conformance suite of package workflow. Code above the seam may
// rely on everything that it proves, so every engine runs all of it.
//
// Run makes an engine for each case, and lets the cases run in parallel and in real time: a
// case takes two seconds at most. It does not judge where the seam leaves room (the context of
// a stopped Task, the texts of causes).
package workflowtest

import (
	"context"
	"encoding/json"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// Factory makes an engine for the machines of the definitions, each in a file
// <machine>.asl.json. Tasks name a key of functions. The engine must be gone at the end of the
// test.
type Factory func(t *testing.T, definitions fs.FS, functions map[string]workflow.TaskFunc) workflow.Engine

// Run proves that the engines that factory makes keep the promises of package workflow.
func Run(t *testing.T, factory Factory) {
	for _, subject := range []struct {
		name  string
		cases []testCase
	}{
		{"start", startCases},
		{"stop", stopCases},
		{"describe", describeCases},
		{"task", taskCases},
	} {
		t.Run(subject.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range subject.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newFixture(t, factory, c.states))
				})
			}
		})
	}
}

// testCase is one promise. Its name says which promise.
type testCase struct {
	name string
	// states is the definition of both machines.
	states string
	run    func(f *fixture)
}

// machine and sibling are the machines of each case.
const machine, sibling = workflow.Machine("m"), workflow.Machine("n")

// Definitions that several cases use.
const (
	call   = `"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload.$": "$"}`
	calls  = `{"StartAt": "A", "States": {"A": {` + call + `, "ResultSelector": {"got.$": "$.Payload"}, "End": true}}}`
	waits  = `{"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 3600, "End": true}}}`
	passes = `{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}`
)

// patience is how long a case waits for a result that must come.
const patience = 30 * time.Second

// fixture is a case's own engine, with a function whose behaviour is set call by call.
type fixture struct {
	*testing.T
	workflow.Engine

	mu       sync.Mutex
	answers  []workflow.TaskFunc
	payloads []string
	// called gets a value at each call.
	called chan struct{}
}

func newFixture(t *testing.T, factory Factory, states string) *fixture {
	t.Helper()
	f := &fixture{T: t, called: make(chan struct{}, 1000)}
	definitions := fstest.MapFS{}
	for _, name := range []workflow.Machine{machine, sibling} {
		definitions[string(name)+".asl.json"] = &fstest.MapFile{Data: []byte(states)}
	}
	f.Engine = factory(t, definitions, map[string]workflow.TaskFunc{"work": f.work})
	return f
}

// answer says what the next calls do. After the last answer, a call returns its payload.
func (f *fixture) answer(answers ...workflow.TaskFunc) { f.answers = append(f.answers, answers...) }

func (f *fixture) work(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	f.mu.Lock()
	f.payloads = append(f.payloads, string(payload))
	answer := func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) { return payload, nil }
	if len(f.answers) > 0 {
		answer, f.answers = f.answers[0], f.answers[1:]
	}
	f.mu.Unlock()
	f.called <- struct{}{}
	return answer(ctx, payload)
}

// fails is an answer that is an error with a name.
func fails(name string) workflow.TaskFunc {
	return func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, &workflow.TaskError{Name: name, Cause: "because"}
	}
}

// hangs is an answer that does not come.
func hangs(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// start begins an execution that must be accepted.
func (f *fixture) start(name, input string) {
	f.Helper()
	if err := f.Start(f.Context(), machine, name, []byte(input)); err != nil {
		f.Fatal(err)
	}
}

// stop ends an execution that must be known.
func (f *fixture) stop(name, cause string) {
	f.Helper()
	if err := f.Stop(f.Context(), machine, name, cause); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) describe(name string) workflow.Execution {
	f.Helper()
	e, err := f.Describe(f.Context(), machine, name)
	if err != nil {
		f.Fatal(err)
	}
	return e
}

// ended waits for the end of an execution.
func (f *fixture) ended(name string) workflow.Execution {
	f.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	late := time.After(patience)
	for {
		e := f.describe(name)
		if e.Status != workflow.Running {
			return e
		}
		select {
		case <-again.C:
		case <-late:
			f.Fatalf("%s still runs after %v", name, patience)
		}
	}
}

// await waits until the function is called.
func (f *fixture) await() {
	f.Helper()
	select {
	case <-f.called:
	case <-time.After(patience):
		f.Fatal("the function was not called")
	}
}

func (f *fixture) wantCalls(want int) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.payloads) != want {
		f.Errorf("got %d calls, want %d", len(f.payloads), want)
	}
}

// want compares the predictable parts of an execution that has ended.
func (f *fixture) want(e workflow.Execution, status workflow.Status, output, name string) {
	f.Helper()
	if e.Status != status || string(e.Output) != output || e.Error != name {
		f.Errorf("got status %s, output %s, error %q (%s), want %s, %s, %q", e.Status, e.Output, e.Error, e.Cause, status, output, name)
	}
}

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
	"github.com/slipway-run/slipway/internal/test/check"
)

// executionCase is one case of testdata/*.json: a machine, the behaviour of its function
// "work" at each call, and the expected outcome.
type executionCase struct {
	Name       string
	Definition json.RawMessage
	Input      any
	Work       []behaviour
	Want       outcome
}

// outcome is everything that can be observed of an execution.
type outcome struct {
	Status workflow.Status
	Output any
	Error  string
	Cause  string
	// Calls are the payloads with which the function was called.
	Calls []any
	// Took is the time from the start to the end, as "1m2s".
	Took string
	// Writes counts the transactions.
	Writes int64
	// Events are the types of the history, without ExecutionStarted.
	Events string
}

// behaviour says how a function behaves when it is called. Exactly one field is set.
type behaviour struct {
	Return json.RawMessage
	// Text is returned unchanged, for an answer that is not JSON.
	Text *string
	// Fail is the text of an error without a name.
	Fail  string
	Error *workflow.TaskError
	Panic string
	// Hang ends with the context.
	Hang bool
	// Deaf ignores the context until the execution is over.
	Deaf bool
	// Exit ends the goroutine.
	Exit bool
}

func TestExecution(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v and error %v", files, err)
	}
	for _, file := range files {
		for _, c := range readCases(t, file) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, tb *outsideTable) {
					if diff := cmp.Diff(c.Want, execute(t, tb, c)); diff != "" {
						t.Errorf("outcome (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// execute runs the case's machine to its end.
func execute(t *testing.T, tb *outsideTable, c executionCase) outcome {
	t.Helper()
	function := &script{t: t, behaviours: c.Work, over: make(chan struct{})}
	defer close(function.over)
	s := setup{table: tb, definition: string(c.Definition), functions: map[string]workflow.TaskFunc{"work": function.call}}
	e, h := s.engine(t)
	input, err := json.Marshal(c.Input)
	check.Must(t, err)
	start(t, e, "e1", string(input))
	h.await("e1")
	execution := describe(t, e, "e1")
	return outcome{
		Status: execution.Status,
		Output: decode(t, execution.Output),
		Error:  execution.Error,
		Cause:  execution.Cause,
		Calls:  function.calls(),
		Took:   execution.Stopped.Sub(execution.Started).String(),
		Writes: tb.writes.Load(),
		Events: strings.Join(h.types("e1")[1:], " "),
	}
}

// script is a function that behaves as its list says, call by call.
type script struct {
	t          *testing.T
	over       chan struct{}
	mu         sync.Mutex
	behaviours []behaviour
	payloads   []any
}

func (s *script) call(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	b := s.next(payload)
	switch {
	case b.Text != nil:
		return []byte(*b.Text), nil
	case b.Fail != "":
		return nil, errors.New(b.Fail)
	case b.Error != nil:
		return nil, b.Error
	case b.Panic != "":
		panic(b.Panic)
	case b.Hang:
		<-ctx.Done()
		return nil, ctx.Err()
	case b.Deaf:
		<-s.over
		return b.Return, nil
	case b.Exit:
		runtime.Goexit()
	}
	return b.Return, nil
}

func (s *script) next(payload json.RawMessage) behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payloads = append(s.payloads, decode(s.t, payload))
	if len(s.payloads) > len(s.behaviours) {
		return behaviour{Fail: "one call too many"}
	}
	return s.behaviours[len(s.payloads)-1]
}

func (s *script) calls() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payloads
}

func decode(t *testing.T, text json.RawMessage) any {
	if text == nil {
		return nil
	}
	value, err := asl.Decode(text)
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return value
}

func readCases(t *testing.T, file string) []executionCase {
	t.Helper()
	text, err := os.ReadFile(file)
	check.Must(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	var cases []executionCase
	if err := decoder.Decode(&cases); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return cases
}

// TestAttackAnEngineThatPanics checks that the execution at which the engine panics fails, and
// that another one reaches its end.
func TestAttackAnEngineThatPanics(t *testing.T) {
	t.Parallel()
	history := newHistory()
	engine, err := local.New(local.Config{
		Table:       fileTable(t),
		Definitions: fstest.MapFS{"m.asl.json": {Data: []byte(`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}`)}},
		Observer: func(event local.Event) {
			if event.Name == "poison" && event.Type == "SucceedStateEntered" {
				panic("poison")
			}
			history.observe(event)
		},
	})
	check.Must(t, err)
	t.Cleanup(func() { cutOff(engine) })
	start(t, engine, "poison", `{}`)
	history.await("poison")
	start(t, engine, "other", `{}`)
	history.await("other")
	if got := describe(t, engine, "poison"); got.Status != workflow.Failed || strings.Contains(got.Cause, "poison") {
		t.Errorf("the execution is %s with %q, want it FAILED without what the panic says", got.Status, got.Cause)
	}
	if got := describe(t, engine, "other"); got.Status != workflow.Succeeded {
		t.Errorf("the other execution is %s, want SUCCEEDED", got.Status)
	}
}

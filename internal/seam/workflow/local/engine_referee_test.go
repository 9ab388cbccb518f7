//go:build referee

package local_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
	"github.com/slipway-run/slipway/internal/test/check"
)

// deviations are the cases in which the two interpreters differ, in the named parts, each with
// the reason why this interpreter's behaviour is kept.
var deviations = map[string]struct{ parts, why string }{
	"data/numbers stay as they are written":                       {"output calls events", "Python writes 1.10 as 1.1"},
	"data/payload selects nothing":                                {"events", notCalled},
	"data/payload selects from a value that has no members":       {"events", notCalled},
	"data/result path through an array":                           {"error events", resultPath},
	"data/result path into an input that is not an object":        {"error events", resultPath},
	"data/result path through a value that has no members":        {"error events", resultPath},
	"catch/the result path does not fit":                          {"error events", resultPath},
	"catch/a result that does not fit is caught":                  {"output events", resultPath},
	"retry/a result that does not fit is retried":                 {"error calls events", resultPath},
	"catch/back to the state itself":                              {"output calls events", endWins},
	"run: three slices":                                           {"calls events", endWins},
	"run: failures then a slice":                                  {"calls events", endWins},
	"task/payload selects nothing, which nothing catches":         {"status output error events", notCaught},
	"task/result selector selects nothing, which nothing catches": {"status output error calls events", notCaught},
	"task/output that is not JSON":                                {"status output error events", "Lambda refuses it before Step Functions sees it"},
	"task/timeout of the machine":                                 {"error events", timedOut},
	"task/timeout of the machine in a wait":                       {"error events", timedOut},
	"task/timeout of the machine in a retry delay":                {"error events", timedOut},
	"wait/timestamp path selects a time of another zone":          {"status output error events", "moto takes timestamps in UTC alone"},
}

// Reasons for several deviations.
const (
	resultPath = "moto fails with its own Python error as States.Runtime; the language names it States.ResultPathMatchFailure"
	notCaught  = "moto lets States.ALL catch States.Runtime; the service documents that it does not"
	notCalled  = "moto reports a failed Task, which was never scheduled"
	endWins    = "moto's End wins over the Next of a Catch"
	timedOut   = "moto gives no error; the language names it States.Timeout"
)

// refereeCase is a case in the form that the other interpreter gets.
type refereeCase struct {
	Definition json.RawMessage   `json:"definition"`
	Input      any               `json:"input"`
	Work       []does            `json:"work,omitempty"`
	Answers    map[string][]does `json:"answers,omitempty"`
	// function makes the function that this interpreter calls.
	function func(t *testing.T) (workflow.TaskFunc, func())
}

// does is the behaviour of a function at one call.
type does struct {
	Return json.RawMessage `json:"return,omitempty"`
	Error  string          `json:"error,omitempty"`
	Cause  string          `json:"cause,omitempty"`
	Hang   bool            `json:"hang,omitempty"`
}

// shown is the observable result of an execution. The texts of causes are not promised and are
// not compared.
type shown struct {
	Status string       `json:"status"`
	Output any          `json:"output"`
	Error  string       `json:"error"`
	Calls  []any        `json:"calls"`
	Events []shownEvent `json:"events"`
}

type shownEvent struct {
	Type  string `json:"type"`
	State string `json:"state"`
	Error string `json:"error"`
	Data  any    `json:"data"`
}

// TestReferee executes the cases of the language and the drives through the real machines here and
// with moto.
func TestReferee(t *testing.T) {
	t.Parallel()
	cases := map[string]*refereeCase{}
	addLanguage(t, cases)
	addDrives(t, cases)
	names := slices.Sorted(maps.Keys(cases))
	var list []*refereeCase
	for _, name := range names {
		list = append(list, cases[name])
	}
	verdicts := askReferee(t, list)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, tb *outsideTable) {
				judge(t, name, play(t, tb, cases[name]), verdicts[i])
			})
		})
	}
	for name := range deviations {
		if cases[name] == nil {
			t.Errorf("%s is a deviation, but there is no such case", name)
		}
	}
}

// judge compares the results of the two interpreters, part by part.
func judge(t *testing.T, name string, ours, theirs shown) {
	t.Helper()
	var parts []string
	var report strings.Builder
	for _, part := range []struct {
		name         string
		ours, theirs any
	}{
		{"status", ours.Status, theirs.Status},
		{"output", ours.Output, theirs.Output},
		{"error", ours.Error, theirs.Error},
		{"calls", ours.Calls, theirs.Calls},
		{"events", ours.Events, theirs.Events},
	} {
		if diff := cmp.Diff(part.theirs, part.ours, cmpopts.EquateEmpty()); diff != "" {
			parts = append(parts, part.name)
			fmt.Fprintf(&report, "%s (-moto +ours):\n%s", part.name, diff)
		}
	}
	if got, want := strings.Join(parts, " "), deviations[name].parts; got != want {
		t.Errorf("they differ in %q, known is %q (%s)\n%s", got, want, deviations[name].why, report.String())
	}
}

// askReferee runs the other interpreter.
func askReferee(t *testing.T, cases []*refereeCase) []shown {
	t.Helper()
	python, err := filepath.Abs("../../../../.tools/referee/bin/python")
	check.Must(t, err)
	input, err := json.Marshal(cases)
	check.Must(t, err)
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), python, "testdata/referee/referee.py")
	command.Stdin, command.Stderr = bytes.NewReader(input), &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("run the referee (testdata/referee/setup.sh installs it): %v\n%s", err, stderr.String())
	}
	var verdicts []shown
	decoder := json.NewDecoder(bytes.NewReader(output))
	decoder.UseNumber()
	if err := decoder.Decode(&verdicts); err != nil || len(verdicts) != len(cases) {
		t.Fatalf("got %d verdicts on %d cases and error %v", len(verdicts), len(cases), err)
	}
	return verdicts
}

// play executes a case with this interpreter.
func play(t *testing.T, tb *outsideTable, c *refereeCase) shown {
	t.Helper()
	function, over := c.function(t)
	defer over()
	var mu sync.Mutex
	var calls []any
	counted := func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		calls = append(calls, decode(t, payload))
		mu.Unlock()
		return function(ctx, payload)
	}
	s := setup{table: tb, definition: string(c.Definition), functions: map[string]workflow.TaskFunc{
		"work": counted, "rollout": counted, "runner": counted, "webhook": counted,
	}}
	e, h := s.engine(t)
	input, err := json.Marshal(c.Input)
	check.Must(t, err)
	start(t, e, "e1", string(input))
	h.await("e1")
	end := describe(t, e, "e1")
	mu.Lock()
	defer mu.Unlock()
	got := shown{Status: string(end.Status), Output: decode(t, end.Output), Error: end.Error, Calls: calls}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		got.Events = append(got.Events, shownEvent{string(event.Type), stateOf(event), event.Error, decode(t, event.Data)})
	}
	return got
}

// stateOf is the state of an event, for the events in which the service names it.
func stateOf(event local.Event) string {
	if strings.HasSuffix(string(event.Type), "StateEntered") || strings.HasSuffix(string(event.Type), "StateExited") {
		return event.State
	}
	return ""
}

// addLanguage adds the cases of testdata.
func addLanguage(t *testing.T, cases map[string]*refereeCase) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	check.Must(t, err)
	for _, file := range files {
		for _, c := range readCases(t, file) {
			added := &refereeCase{Definition: c.Definition, Input: c.Input, function: func(t *testing.T) (workflow.TaskFunc, func()) {
				t.Helper()
				s := &script{t: t, behaviours: c.Work, over: make(chan struct{})}
				return s.call, func() { close(s.over) }
			}}
			for _, b := range c.Work {
				added.Work = append(added.Work, b.does())
			}
			cases[strings.TrimSuffix(filepath.Base(file), ".json")+"/"+c.Name] = added
		}
	}
}

// does returns a behaviour in the form in which Lambda would report it.
func (b behaviour) does() does {
	switch {
	case b.Text != nil && *b.Text == "":
		return does{Return: json.RawMessage(`null`)}
	case b.Text != nil: // Lambda refuses an answer that is not JSON
		return does{Return: json.RawMessage(`"not JSON"`)}
	case b.Fail != "":
		return does{Error: asl.ErrorTaskFailed, Cause: b.Fail}
	case b.Error != nil:
		return does{Error: stdcmp.Or(b.Error.Name, asl.ErrorTaskFailed), Cause: b.Error.Cause}
	case b.Panic != "":
		return does{Error: local.PanicError, Cause: b.Panic}
	case b.Exit:
		return does{Error: asl.ErrorTaskFailed, Cause: "the function ended its goroutine"}
	case b.Hang, b.Deaf:
		return does{Hang: true}
	}
	return does{Return: b.Return}
}

// mostCalls is how many calls a drive may make that the referee repeats, because it compares
// each event.
const mostCalls = 250

// addDrives adds the drives through the real machines, except the drives with thousands of
// retries.
func addDrives(t *testing.T, cases map[string]*refereeCase) {
	t.Helper()
	for name, d := range drives {
		if d.calls > mostCalls {
			continue
		}
		text, err := fs.ReadFile(statemachines.Files, string(d.machine)+".asl.json")
		check.Must(t, err)
		functions := map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner", "WebhookFunctionArn": "webhook"}
		added := &refereeCase{
			Definition: []byte(os.Expand(string(text), func(name string) string { return functions[name] })),
			Input:      decode(t, []byte(ids)),
			Answers:    map[string][]does{},
			function: func(t *testing.T) (workflow.TaskFunc, func()) {
				t.Helper()
				return d.functions(t).call, func() {}
			},
		}
		for step, list := range d.answers {
			for answer := range strings.FieldsSeq(list) {
				added.Answers[step] = append(added.Answers[step], answerDoes(answer))
			}
		}
		cases[name] = added
	}
}

// answerDoes returns a drive's answer in the form in which Lambda would report it.
func answerDoes(answer string) does {
	if answer == "..." {
		return does{Hang: true}
	}
	if answer == "!" {
		return does{Error: asl.ErrorTaskFailed, Cause: "broken"}
	}
	if name, failed := strings.CutPrefix(answer, "!"); failed {
		return does{Error: name}
	}
	return does{Return: answerJSON(answer)}
}

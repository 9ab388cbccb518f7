package asl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
	"github.com/slipway-run/slipway/internal/test/check"
)

// links resolve the names to which the definitions in testdata refer.
var links = asl.Links{
	Substitutions: map[string]string{"Function": "work", "Missing": "missing"},
	Function:      func(name string) bool { return name == "work" },
}

// TestParseRefuses checks that each wrong or unsupported construct is reported at its place, and
// no other construct is.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name       string
		Definition json.RawMessage
		Want       []string
	}
	readCases(t, "refused.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			_, err := asl.Parse("m", c.Definition, links)
			if err == nil {
				t.Fatal("got no error")
			}
			if diff := cmp.Diff(c.Want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseRefusesText checks definitions that are not even JSON objects, or that JSON readers
// accept only because they drop something.
func TestParseRefusesText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ definition, want string }{
		"empty":            {``, "machine m: decode JSON: EOF"},
		"array":            {`[]`, "machine m: decode JSON: json: cannot unmarshal array into Go value of type asl.definition"},
		"cut off":          {`{"StartAt":"A"`, "machine m: decode JSON: unexpected EOF"},
		"text after it":    {`{"StartAt":"A"} {}`, "machine m: decode JSON: there is text after the value"},
		"field twice":      {`{"StartAt":"A","StartAt":"B"}`, `machine m: decode JSON: "StartAt" stands twice`},
		"other case":       {`{"StartAt":"A","states":{},"States":{"A":{"Type":"Succeed"}}}`, `machine m: decode JSON: "States" stands twice`},
		"state twice":      {`{"StartAt":"A","States":{"A":{"Type":"Succeed"},"A":{"Type":"Fail"}}}`, `machine m: decode JSON: "A" stands twice`},
		"member twice":     {`{"States":{"A":{"Retry":[{"Comment":"","Comment":""}]}}}`, `machine m: decode JSON: "Comment" stands twice`},
		"broken state":     {`{"StartAt":"A","States":{"A":{]}}`, "machine m: decode JSON: invalid character ']' looking for beginning of object key string"},
		"state not object": {`{"StartAt":"A","States":{"A":1}}`, "machine m, state A: json: cannot unmarshal number into Go value of type asl.State"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := asl.Parse("m", []byte(c.definition), links)
			if err == nil || !strings.Contains(err.Error()+"\n", c.want+"\n") {
				t.Errorf("got error %v, want a line %q", err, c.want)
			}
		})
	}
}

// TestChoose decides rules on inputs for which they hold, do not hold, and cannot be decided.
func TestChoose(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Rule  map[string]any
		Holds []any
		Not   []any
		Fails []any
	}
	readCases(t, "choices.json", &cases)
	for _, c := range cases {
		t.Run(string(asl.Encode(c.Rule)), func(t *testing.T) {
			t.Parallel()
			state := choice(t, c.Rule)
			for want, inputs := range map[string][]any{"Yes": c.Holds, "No": c.Not, asl.ErrorRuntime: c.Fails} {
				for _, input := range inputs {
					if got := choose(t, state, input); got != want {
						t.Errorf("input %v: got %s, want %s", input, got, want)
					}
				}
			}
		})
	}
}

// choice is a state with one rule.
func choice(t *testing.T, rule map[string]any) *asl.State {
	t.Helper()
	rule["Next"] = "Yes"
	definition := asl.Encode(map[string]any{"StartAt": "C", "States": map[string]any{
		"C":   map[string]any{"Type": "Choice", "Choices": []any{rule}, "Default": "No"},
		"Yes": map[string]any{"Type": "Succeed"},
		"No":  map[string]any{"Type": "Succeed"},
	}})
	machine, err := asl.Parse("m", definition, links)
	check.Must(t, err)
	return machine.States["C"]
}

// choose returns the chosen state, or the error's name.
func choose(t *testing.T, state *asl.State, input any) string {
	t.Helper()
	data, err := asl.Decode(asl.Encode(input))
	check.Must(t, err)
	next, err := state.Choose(data)
	if failure, ok := err.(*asl.Error); ok {
		return failure.Name
	}
	return next
}

func readCases(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	check.Must(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestJitter checks that delays spread over the whole time up to the computed one.
func TestJitter(t *testing.T) {
	t.Parallel()
	machine, err := asl.Parse("m", []byte(`{"StartAt": "A", "States": {"A": {"Type": "Task", "End": true,
		"Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload": {}},
		"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 3, "MaxDelaySeconds": 10, "JitterStrategy": "FULL"}]}}}`), links)
	check.Must(t, err)
	retrier := &machine.States["A"].Retriers[0]
	for done, most := range []time.Duration{3 * time.Second, 6 * time.Second, 10 * time.Second} {
		least, longest := most, time.Duration(0)
		for range 1000 {
			delay := retrier.Delay(done)
			least, longest = min(least, delay), max(longest, delay)
		}
		if least < 0 || least > most/4 || longest > most || longest < most*3/4 {
			t.Errorf("after %d retries: got delays from %v to %v, want them spread from 0 to %v", done, least, longest, most)
		}
	}
}

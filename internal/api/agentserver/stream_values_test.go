package agentserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// shownValues returns the values that a stream shows, each as its messages and their ids.
func shownValues(t *testing.T, events []event) []string {
	t.Helper()
	all := []string{}
	for _, e := range events {
		if e.Name != "values" {
			continue
		}
		var values struct {
			Messages  []struct{ ID, Content string }
			Interrupt []any `json:"__interrupt__"`
		}
		check.Must(t, json.Unmarshal([]byte(e.Data), &values))
		texts := []string{}
		for _, m := range values.Messages {
			texts = append(texts, m.ID+":"+m.Content)
		}
		if values.Interrupt != nil {
			texts = append(texts, "?")
		}
		all = append(all, strings.Join(texts, " "))
	}
	return all
}

// TestAResumedRunBeginsWithTheValues checks that the run shows first the values that it
// continues from, with the ids that the messages have in the state.
func TestAResumedRunBeginsWithTheValues(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	// The message has no id.
	question := with(plan("one", graphtest.Node{Name: "ask", Ask: "May I?"}), "input", object{"messages": []any{object{"role": "user", "content": "one"}}})
	f.stream(t, thread, question)
	_, events := f.stream(t, thread, object{"assistant_id": "agent", "command": object{"resume": "yes"}, "stream_mode": []any{"values"}})
	if diff := cmp.Diff([]string{"own--1:one", "own--1:one ask-0:yes"}, shownValues(t, events)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if names(events)[0] != "metadata" {
		t.Errorf("the stream begins with %s", names(events)[0])
	}
}

// TestTheValuesHaveTheAgentsIDs checks this from the first values on. The graph gives messages
// other ids than this server would; so readers do not get the same message twice.
func TestTheValuesHaveTheAgentsIDs(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	for i, want := range [][]string{
		{"own--1:hi", "own--1:hi model-0:yes"},
		{"own--1:hi model-0:yes own-2:hi", "own--1:hi model-0:yes own-2:hi model-3:yes"},
	} {
		// The message has no id.
		asked := with(plan("hi", says("model", "yes")), "input", object{"messages": []any{object{"role": "user", "content": "hi"}}})
		_, events := f.stream(t, thread, with(asked, "stream_mode", []any{"values"}))
		if diff := cmp.Diff(want, shownValues(t, events)); diff != "" {
			t.Errorf("values of run %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestTheValuesOfAnInputAreShown has an agent that keeps no checkpoints: the values are shown
// before everything that the agent does, and also if it does nothing.
func TestTheValuesOfAnInputAreShown(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for what, c := range map[string]struct {
		steps []graphtest.Step
		want  string
	}{
		"that shows something": {[]graphtest.Step{say("m", "Hel"), add("model", "m", "Hello")}, "metadata values messages values"},
		"that does nothing":    {[]graphtest.Step{}, "metadata values"},
		"that fails":           {[]graphtest.Step{{Error: "no"}}, "metadata values error"},
	} {
		_, events := f.stream(t, f.newThread(t), with(script(c.steps...), "stream_mode", []any{"values", "messages-tuple"}))
		if got := strings.Join(names(events), " "); got != c.want {
			t.Errorf("an agent %s: got events %s, want %s", what, got, c.want)
		}
	}
}

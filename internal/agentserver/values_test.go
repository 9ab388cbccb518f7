package agentserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/graph/graphtest"
)

// shownValues are the values that a stream shows, each as its messages and their ids.
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
		must(t, json.Unmarshal([]byte(e.Data), &values))
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

// TestAStreamBeginsWithTheValuesOfItsInput once, with the ids that the messages keep, from a thread's second run on, when it is known that the agent has reducers of its
// own; a run that resumes another begins with the values that it goes on from.
func TestAStreamBeginsWithTheValuesOfItsInput(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	asks := func(text string, nodes ...graphtest.Node) object {
		return with(plan(text, nodes...), "input", object{"messages": []any{object{"role": "user", "content": text}}}) // without an id
	}
	wantValues := func(body object, want ...string) {
		t.Helper()
		_, events := f.stream(t, thread, with(body, "stream_mode", []any{"values"}))
		if diff := cmp.Diff(want, shownValues(t, events)); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
		if names(events)[0] != "metadata" {
			t.Errorf("the stream begins with %s", names(events)[0])
		}
	}
	one := "own--1:one"
	f.stream(t, thread, asks("one", says("model", "A")))
	before := one + " model-0:A"
	two := before + " own-2:two"
	wantValues(asks("two", graphtest.Node{Name: "ask", Ask: "May I?"}), two, two+" ?")
	wantValues(object{"assistant_id": "agent", "command": object{"resume": "yes"}}, two, two+" ask-3:yes")
	state := f.call(t, "GET", thread+"/state", nil)
	if got := fmt.Sprint(state.member("values", "messages").([]any)[2].(map[string]any)["id"]); got != "own-2" {
		t.Errorf("the message was shown as own-2 and is %s", got)
	}
}

// TestTheValuesOfAnInputAreShown to readers of an agent that keeps no checkpoints: before all that it does, and when it does nothing.
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

package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// explained returns the explanation of a run and its moments as "kind nodes", in their order.
func (f *fixture) explained(t *testing.T, run string) (explanation response, moments []string) {
	t.Helper()
	explanation = f.call(t, "GET", run+"/explanation", nil)
	wantStatus(t, explanation, http.StatusOK)
	before := explanation.string("created_at")
	for _, one := range explanation.member("timeline").([]any) {
		moment := one.(object)
		text := moment["kind"].(string)
		for _, node := range moment["nodes"].([]any) {
			text += " " + node.(string)
		}
		moments = append(moments, text)
		at := moment["at"].(string)
		if at < before {
			t.Errorf("%s was at %s, and what is before it at %s", text, at, before)
		}
		before = at
	}
	return explanation, moments
}

func TestARunIsExplained(t *testing.T) {
	t.Parallel()
	const answerIt = "Answer its question by a run with command.resume."
	tests := map[string]struct {
		body    object
		status  string
		cause   any
		remedy  any
		moments []string
	}{
		"that succeeded": {script(say("m", "Hel"), say("m", "lo"), add("model", "m", "Hello"), add("other", "n", "Bye")), "success", nil, nil, []string{"attempt", "output", "step model", "step other"}},
		"that failed": {
			script(add("model", "m", "Hello"), failing("no key\n  agent.py, line 3")), "error", "GraphError: no key",
			"Correct the agent, deploy it again, and start the run again. The agent's log at that time may say more.",
			[]string{"attempt", "step model", "failure"},
		},
		"that broke a rule": {
			script(emit("values", 7)), "error", "The agent's update cannot be applied: state is not a JSON object: json: cannot unmarshal number into Go value of type map[string]json.RawMessage",
			"Correct what the node returns, and deploy the agent again.",
			[]string{"attempt", "failure"},
		},
		"that paused": {
			script(add("model", "m", "Hello"), pausing("a")), "success", "The graph has paused and waits for the answer of a person.", answerIt,
			[]string{"attempt", "step model", "pause"},
		},
	}
	f := setUp(t, nil)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := strings.TrimSuffix(f.call(t, "POST", f.newThread(t)+"/runs/wait", test.body).Header.Get("Location"), "/join")
			got, moments := f.explained(t, run)
			if diff := cmp.Diff(test.moments, moments); diff != "" {
				t.Errorf("the moments (-want +got):\n%s", diff)
			}
			if cause := got.member("cause"); cause != test.cause {
				t.Errorf("the cause is %v", cause)
			}
			if got.member("status") != test.status || got.member("remedy") != test.remedy || got.member("has_more") != false {
				t.Errorf("got %s", got.text)
			}
			if got.string("started_at") < got.string("created_at") || got.string("ended_at") < got.string("started_at") {
				t.Errorf("the times are not in order: %s", got.text)
			}
		})
	}
	t.Run("with the lines that show the cause", func(t *testing.T) {
		t.Parallel()
		run := strings.TrimSuffix(f.call(t, "POST", f.newThread(t)+"/runs/wait", script(failing("no key\n  agent.py, line 3\n\n"))).Header.Get("Location"), "/join")
		got, _ := f.explained(t, run)
		if diff := cmp.Diff([]any{"  agent.py, line 3"}, got.member("evidence")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("but not one that does not exist", func(t *testing.T) {
		t.Parallel()
		wantStatus(t, f.call(t, "GET", f.newThread(t)+"/runs/"+unknownID+"/explanation", nil), http.StatusNotFound)
	})
}

// TestARunIsExplainedWhileItGoesOn explains a run at work and a run that waits behind it, and both
// again when they are superseded.
func TestARunIsExplainedWhileItGoesOn(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	running, waiting := f.start(t, thread, saying("one")), f.start(t, thread, saying("two"))
	receiveOr(t, agent.reached, "the run's start")
	got, moments := f.explained(t, running)
	if len(moments) == 0 || moments[0] != "attempt" || got.member("status") != "running" || got.member("ended_at") != nil || got.member("cause") != nil {
		t.Errorf("the run at work: %s", got.text)
	}
	got, moments = f.explained(t, waiting)
	if len(moments) > 0 || got.member("status") != "pending" || got.member("started_at") != nil || got.member("ended_at") != nil {
		t.Errorf("the run that waits: %s", got.text)
	}
	by := f.start(t, thread, with(saying("quick"), "multitask_strategy", "interrupt"))
	superseded := f.call(t, "GET", by, nil).string("created_at")
	why := "The run was superseded by run " + by[strings.LastIndexByte(by, '/')+1:] + ", whose multitask_strategy is interrupt."
	for _, run := range []string{running, waiting} {
		got, _ := f.explained(t, run)
		if got.member("status") != "interrupted" || got.member("cause") != why || got.member("remedy") != nil || got.member("ended_at") == nil {
			t.Errorf("a superseded run: %s", got.text)
		} else if got.string("ended_at") < superseded {
			t.Errorf("the run ended at %s, before it was superseded at %s", got.string("ended_at"), superseded)
		}
	}
}

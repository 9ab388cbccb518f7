package agentserver_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// plan is a request to run the graph of an agent that keeps checkpoints through nodes.
func plan(text string, nodes ...graphtest.Node) object {
	return object{
		"assistant_id": "agent", "input": object{"messages": []any{object{"role": "user", "id": text, "content": text}}},
		"config": object{"configurable": object{"plan": nodes}}, "stream_mode": []any{"values", "updates", "messages-tuple"},
	}
}

// says is a node that adds a message.
func says(name, text string) graphtest.Node { return graphtest.Node{Name: name, Say: text} }

// told returns a state's messages, with "..." after an incomplete message, and its trail.
func told(state any) string {
	o, _ := state.(map[string]any)
	values, _ := o["values"].(map[string]any)
	var out []string
	messages, _ := values["messages"].([]any)
	for _, m := range messages {
		message := m.(map[string]any)
		text := fmt.Sprint(message["content"])
		if metadata, _ := message["response_metadata"].(map[string]any); metadata["incomplete"] == true {
			text += "..."
		}
		out = append(out, text)
	}
	return strings.Join(out, " ") + fmt.Sprint(" ", values["trail"])
}

func (f *fixture) wantState(t *testing.T, thread, want string, next ...any) response {
	t.Helper()
	state := f.call(t, "GET", thread+"/state", nil)
	wantStatus(t, state, http.StatusOK)
	if got := told(state.body); got != want {
		t.Errorf("the state is\n%s\nwant\n%s", got, want)
	}
	if diff := cmp.Diff(append([]any{}, next...), state.member("next")); diff != "" {
		t.Errorf("next (-want +got):\n%s", diff)
	}
	return state
}

// history lists a thread's states, newest first.
func (f *fixture) history(t *testing.T, thread string) []map[string]any {
	t.Helper()
	return statesOf(t, f.call(t, "POST", thread+"/history", object{"limit": 1000}))
}

func statesOf(t *testing.T, answer response) []map[string]any {
	t.Helper()
	wantStatus(t, answer, http.StatusOK)
	states := []map[string]any{}
	for _, one := range answer.body.([]any) {
		states = append(states, one.(map[string]any))
	}
	return states
}

// lines shows states as "step source messages [trail]".
func lines(states []map[string]any) []string {
	out := []string{}
	for _, s := range states {
		metadata := s["metadata"].(map[string]any)
		out = append(out, fmt.Sprint(metadata["step"], " ", metadata["source"], " ", told(s)))
	}
	return out
}

func idOf(state map[string]any, of string) string {
	c, _ := state[of].(map[string]any)
	id, _ := c["checkpoint_id"].(string)
	return id
}

// wantParents checks that each state follows the one that was made before it.
func wantParents(t *testing.T, states []map[string]any) {
	t.Helper()
	for i, s := range states {
		parent := ""
		if i+1 < len(states) {
			parent = idOf(states[i+1], "checkpoint")
		}
		if got := idOf(s, "parent_checkpoint"); got != parent {
			t.Errorf("state %d has the parent %q, want %q", i, got, parent)
		}
	}
}

func TestTheCheckpointsOfAnAgentAreTheHistory(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A"), says("tools", "B")))
	f.wantState(t, thread, "one A B [model tools]")
	f.finish(t, thread, plan("two", says("model", "C")))
	f.wantState(t, thread, "one A B two C [model tools model]")
	states := f.history(t, thread)
	want := []string{
		"5 loop one A B two C [model tools model]", "4 loop one A B two [model tools]", "3 input one A B [model tools]",
		"2 loop one A B [model tools]", "1 loop one A [model]", "0 loop one []", "-1 input  []",
	}
	if diff := cmp.Diff(want, lines(states)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	wantParents(t, states)
	for _, s := range states {
		got := f.call(t, "GET", thread+"/state/"+idOf(s, "checkpoint"), nil)
		if diff := cmp.Diff(any(s), got.body); diff != "" {
			t.Errorf("one state by its id (-in the history +got):\n%s", diff)
		}
		got = f.call(t, "POST", thread+"/state/checkpoint", object{"checkpoint": s["checkpoint"]})
		if diff := cmp.Diff(any(s), got.body); diff != "" {
			t.Errorf("one state by its checkpoint (-in the history +got):\n%s", diff)
		}
	}
}

// TestPagesOfTheHistory reads pages in each of the forms in which clients ask for them.
func TestPagesOfTheHistory(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*fixture{"of an agent's checkpoints": setUpKeeper(t), "of the server's": setUp(t, nil)} {
		thread := f.newThread(t)
		for i := range 4 {
			f.finish(t, thread, plan(fmt.Sprint(i), says("model", "A")))
		}
		all := f.history(t, thread)
		before := all[2]
		id := idOf(before, "checkpoint")
		for form, value := range map[string]any{"an id": id, "a checkpoint": before["checkpoint"], "a configuration": object{"configurable": before["checkpoint"]}} {
			page := statesOf(t, f.call(t, "POST", thread+"/history", object{"limit": 2, "before": value}))
			if diff := cmp.Diff(all[3:5], page); diff != "" {
				t.Errorf("%s, before %s (-want +got):\n%s", name, form, diff)
			}
		}
		for _, query := range []string{id, `{"configurable":{"checkpoint_id":"` + id + `"}}`} {
			page := statesOf(t, f.call(t, "GET", thread+"/history?limit=2&before="+url.QueryEscape(query), nil))
			if diff := cmp.Diff(all[3:5], page); diff != "" {
				t.Errorf("%s, before %s (-want +got):\n%s", name, query, diff)
			}
		}
		inputs := statesOf(t, f.call(t, "POST", thread+"/history", object{"limit": 3, "metadata": object{"source": "input"}}))
		if len(inputs) != 3 || inputs[0]["metadata"].(map[string]any)["source"] != "input" {
			t.Errorf("%s: got %v for inputs", name, lines(inputs))
		}
		wantStatus(t, f.call(t, "POST", thread+"/history", object{"before": object{"x": 1}}), http.StatusUnprocessableEntity)
		wantDetail(t, f.call(t, "GET", thread+"/history?before="+unknownID, nil), http.StatusNotFound, "Checkpoint with ID "+unknownID+" not found.")
	}
}

// TestWhatAnInterruptedKeeperHasShownIsKept checks that the shown output is in the state at
// once, and goes through the graph's own reducers when its next run begins.
func TestWhatAnInterruptedKeeperHasShownIsKept(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	for name, test := range map[string]struct {
		node      graphtest.Node
		until     string
		then, end string
	}{
		"a message in the midst": {
			graphtest.Node{Name: "model", Say: "A", Show: "Hel", HoldAfter: "show"}, "messages",
			"one Hel... [] [model]", "one Hel... two B [tools]",
		},
		"a node that has returned": {
			graphtest.Node{Name: "model", Say: "A", HoldAfter: "update"}, "updates",
			"one A [] [model]", "one A two B [model tools]",
		},
		"a node whose result is kept": {
			graphtest.Node{Name: "model", Say: "A", HoldAfter: "update", Stored: true}, "updates",
			"one A [] [model]", "one A two B [model tools]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			thread := f.newThread(t)
			first := f.start(t, thread, plan("one", test.node))
			f.await(t, first, test.until)
			second := f.start(t, thread, with(plan("two", says("tools", "B")), "multitask_strategy", "interrupt"))
			wantStatus(t, f.call(t, "GET", second+"/join", nil), http.StatusOK)
			if got := f.call(t, "GET", first+"/join", nil); told(map[string]any{"values": got.body})+" [model]" != test.then {
				t.Errorf("the first run left %s, want %s", told(map[string]any{"values": got.body}), test.then)
			}
			if got := f.call(t, "GET", first, nil).string("status"); got != "interrupted" {
				t.Errorf("the first run is %s", got)
			}
			f.wantState(t, thread, test.end)
			wantParents(t, f.history(t, thread))
		})
	}
}

// await reads a run's stream until an event.
func (f *fixture) await(t *testing.T, run, name string) {
	t.Helper()
	answer := f.open(t.Context(), t, "GET", f.path(run+"/stream"), nil, map[string]string{auth.HeaderKey: f.key})
	defer answer.Body.Close()
	for reader := bufio.NewReader(answer.Body); ; {
		e, err := nextEvent(reader)
		check.Must(t, err)
		if e.Name == name {
			return
		}
	}
}

// TestAnInputThatNeverStartedReachesTheGraph checks that the input arrives when the next run
// begins.
func TestAnInputThatNeverStartedReachesTheGraph(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	first := f.start(t, thread, plan("one", graphtest.Node{Name: "model", Say: "A", Show: "Hel", HoldAfter: "show"}))
	f.await(t, first, "messages")
	f.start(t, thread, plan("two", says("model", "X")))
	f.start(t, thread, plan("three", says("model", "Y")))
	f.finish(t, thread, with(plan("four", says("tools", "B")), "multitask_strategy", "interrupt"))
	f.wantState(t, thread, "one Hel... two three four B [tools]")
}

// TestAnInputThatWasTakenAndNotSpread checks that such an input is in the state once, also
// after an interrupt or a failure.
func TestAnInputThatWasTakenAndNotSpread(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)

	interrupted := f.newThread(t)
	first := f.start(t, interrupted, with(plan("one", graphtest.Node{Name: "model", HoldAtStart: true}), "stream_mode", []any{"custom"}))
	f.await(t, first, "custom")
	f.finish(t, interrupted, with(plan("two", says("tools", "B")), "multitask_strategy", "interrupt"))
	f.wantState(t, interrupted, "one two B [tools]")

	failed := f.newThread(t)
	second := f.start(t, failed, plan("one", graphtest.Node{Name: "model", Say: "A", FailAtStart: true}))
	wantStatus(t, f.call(t, "GET", second+"/join", nil), http.StatusOK)
	state := f.call(t, "GET", failed+"/state", nil)
	if got := contents(state.member("values"), "one"); len(got) != 1 {
		t.Errorf("the state after the failure is %s", state.text)
	}
	f.finish(t, failed, plan("two", says("tools", "B")))
	f.wantState(t, failed, "one two B [tools]")
}

// TestAnotherAttemptGoesOnFromTheCheckpoint checks that the graph takes the input only once.
func TestAnotherAttemptGoesOnFromTheCheckpoint(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", graphtest.Node{Name: "model", Say: "A", BreakOnce: true}, says("tools", "B")))
	f.wantState(t, thread, "one A B [model tools]")
}

func TestAKeeperThatPausesIsResumed(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	asks := graphtest.Node{Name: "ask", Ask: "May I?"}
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A"), asks, says("tools", "B")))
	question := object{"id": "q-ask", "value": "May I?"}
	state := f.wantState(t, thread, "one A [model]", "ask")
	wantTask := object{"id": "task-1", "name": "ask", "error": nil, "interrupts": []any{question}, "checkpoint": nil, "state": nil, "result": nil}
	if diff := cmp.Diff(any([]any{wantTask}), state.member("tasks")); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	wantThread(t, f, thread, "interrupted", nil, object{"task-1": []any{question}})
	resumed := f.finish(t, thread, object{"assistant_id": "agent", "command": object{"resume": "yes"}})
	f.wantState(t, thread, "one A yes B [model ask tools]")
	wantThread(t, f, thread, "idle", nil, object{})
	if got := f.call(t, "GET", resumed, nil).member("kwargs", "command"); !cmp.Equal(got, any(object{"resume": "yes"})) {
		t.Errorf("the run was asked %v", got)
	}

	thread = f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A"), asks))
	f.finish(t, thread, plan("two", says("tools", "B")))
	f.wantState(t, thread, "one A two B [model tools]")
	wantThread(t, f, thread, "idle", nil, object{})
}

// TestARunGoesOnFromAnEarlierCheckpoint checks agents with and without checkpoints of their own.
func TestARunGoesOnFromAnEarlierCheckpoint(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		f         *fixture
		nodes     []graphtest.Node
		from      int
		want      string
		ancestors []int
	}{
		"of the agent's":  {setUpKeeper(t), []graphtest.Node{says("model", "A")}, 3, "one A three A [model model]", nil},
		"of the server's": {setUp(t, nil), nil, 2, "one ok three ok <nil>", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, thread := test.f, test.f.newThread(t)
			f.finish(t, thread, plan("one", test.nodes...))
			f.finish(t, thread, plan("two", test.nodes...))
			before := f.history(t, thread)
			to := before[test.from]
			for form, request := range map[string]object{
				"checkpoint":    {"checkpoint": to["checkpoint"]},
				"checkpoint_id": {"checkpoint_id": idOf(to, "checkpoint")},
				"configurable":  {},
			} {
				body := plan("three", test.nodes...)
				for name, value := range request {
					body = with(body, name, value)
				}
				if form == "configurable" {
					body["config"] = object{"configurable": object{"plan": test.nodes, "checkpoint_id": idOf(to, "checkpoint")}}
				}
				known := len(f.history(t, thread))
				f.finish(t, thread, body)
				f.wantState(t, thread, test.want)
				after := f.history(t, thread)
				if first := after[len(after)-known-1]; idOf(first, "parent_checkpoint") != idOf(to, "checkpoint") {
					t.Errorf("%s: the branch begins with %v, which follows %s, want %s", form, lines([]map[string]any{first}), idOf(first, "parent_checkpoint"), idOf(to, "checkpoint"))
				}
				if diff := cmp.Diff(lines(before), lines(after[len(after)-len(before):])); diff != "" {
					t.Errorf("%s: the branch before (-want +got):\n%s", form, diff)
				}
			}
			wantDetail(t, f.call(t, "POST", thread+"/runs", with(hi(), "checkpoint_id", unknownID)), http.StatusNotFound, "Checkpoint with ID "+unknownID+" not found.")
		})
	}
}

// TestAGraphChangesItsStateItself checks that the graph uses its own reducers, as the node
// that the request names.
func TestAGraphChangesItsStateItself(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A"), says("tools", "B")))
	before := f.history(t, thread)
	made := f.call(t, "POST", thread+"/state", object{"values": object{"messages": []any{message("ai", "m", "C")}, "trail": []any{"me"}}, "as_node": "model"})
	wantStatus(t, made, http.StatusOK)
	state := f.wantState(t, thread, "one A B C [model tools me]", "tools")
	if got, want := state.string("checkpoint", "checkpoint_id"), made.string("checkpoint", "checkpoint_id"); got != want {
		t.Errorf("the newest checkpoint is %s, want %s", got, want)
	}
	if state.string("metadata", "source") != "update" || state.string("parent_checkpoint", "checkpoint_id") != idOf(before[0], "checkpoint") {
		t.Errorf("the change is %s", state.text)
	}
	wantThread(t, f, thread, "interrupted", nil, object{})
	f.finish(t, thread, object{"assistant_id": "agent"}) // without an input, the run continues
	f.wantState(t, thread, "one A B C B [model tools me tools]")

	// At an earlier checkpoint, a change begins a branch.
	f.finishUpdate(t, thread, object{"values": object{"trail": []any{"other"}}, "checkpoint": before[1]["checkpoint"]})
	f.wantState(t, thread, "one A [model other]", "tools")
	wantDetail(t, f.call(t, "POST", thread+"/state", object{"values": object{}, "as_node": "refuses"}), http.StatusBadRequest,
		"The graph refused the change: GraphError: the node refuses")
}

func (f *fixture) finishUpdate(t *testing.T, thread string, body object) {
	t.Helper()
	wantStatus(t, f.call(t, "POST", thread+"/state", body), http.StatusOK)
}

// TestAThreadBeginsWithSupersteps checks supersteps that the graph makes itself.
func TestAThreadBeginsWithSupersteps(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	step := func(node, text string) object {
		return object{"updates": []any{object{"values": object{"messages": []any{message("ai", text, text)}, "trail": []any{node}}, "as_node": node}}}
	}
	created := f.call(t, "POST", "/threads", object{"metadata": object{"graph_id": "agent"}, "supersteps": []any{step("a", "A"), step("b", "B")}})
	wantStatus(t, created, http.StatusOK)
	thread := "/threads/" + created.string("thread_id")
	f.wantState(t, thread, "A B [a b]")
	if got := len(f.history(t, thread)); got != 2 {
		t.Errorf("there are %d states, want one for each step", got)
	}
	f.finish(t, thread, plan("one", says("model", "C")))
	f.wantState(t, thread, "A B one C [a b model]")
}

// TestHistoryShowsWhatTasksReturned checks the tasks of finished steps, also after a pause.
func TestHistoryShowsWhatTasksReturned(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A"), graphtest.Node{Name: "person", Ask: "ok?"}))
	f.finish(t, thread, object{"assistant_id": "agent", "command": object{"resume": "B"}})
	var got []string
	for _, state := range f.history(t, thread) {
		at := f.call(t, "GET", thread+"/state/"+idOf(state, "checkpoint"), nil)
		wantStatus(t, at, http.StatusOK)
		if diff := cmp.Diff(state["tasks"], at.member("tasks")); diff != "" {
			t.Errorf("tasks (-in history +at the checkpoint):\n%s", diff)
		}
		for _, task := range state["tasks"].([]any) {
			result, _ := task.(map[string]any)["result"].(map[string]any)
			got = append(got, fmt.Sprint(task.(map[string]any)["name"], " ", told(map[string]any{"values": result})))
		}
	}
	if diff := cmp.Diff([]string{"person B [person]", "model A [model]", "__start__  <nil>"}, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// TestACopyGoesItsOwnWay checks that a copy starts from the same state, with the same history.
func TestACopyGoesItsOwnWay(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A")))
	copied := f.call(t, "POST", thread+"/copy", nil)
	wantStatus(t, copied, http.StatusOK)
	other := "/threads/" + copied.string("thread_id")
	if diff := cmp.Diff(lines(f.history(t, thread)), lines(f.history(t, other))); diff != "" {
		t.Errorf("history (-of the thread +of its copy):\n%s", diff)
	}
	f.finish(t, other, plan("two", says("model", "B")))
	f.wantState(t, other, "one A two B [model model]")
	f.wantState(t, thread, "one A [model]")
}

// TestACopyOfABusyThread checks that the copy has the steps that are finished, and that both
// threads go on from there.
func TestACopyOfABusyThread(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A")))
	run := f.start(t, thread, plan("two", says("tools", "B"), graphtest.Node{Name: "model", Say: "C", Show: "Hel", HoldAfter: "show"}))
	f.await(t, run, "messages")
	copied := f.call(t, "POST", thread+"/copy", nil)
	wantStatus(t, copied, http.StatusOK)
	if got := copied.string("status"); got != "idle" {
		t.Errorf("the copy is %s", got)
	}
	other := "/threads/" + copied.string("thread_id")
	f.wantState(t, other, "one A two B [model tools]", "model")
	if diff := cmp.Diff(lines(f.history(t, thread)), lines(f.history(t, other))); diff != "" {
		t.Errorf("history (-of the thread +of its copy):\n%s", diff)
	}
	f.finish(t, other, plan("three", says("model", "D")))
	f.wantState(t, other, "one A two B three D [model tools model]")
	f.finish(t, thread, with(plan("four", says("model", "E")), "multitask_strategy", "interrupt"))
	f.wantState(t, thread, "one A two B Hel... four E [model tools model]")
}

// TestARollbackOfAKeeper checks that the agent gets the checkpoints back that it had before,
// whether the removed run had made checkpoints of its own or was waiting.
func TestARollbackOfAKeeper(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A")))
	before := f.history(t, thread)
	gone := f.start(t, thread, plan("two", says("tools", "B"), graphtest.Node{Name: "model", Say: "C", Show: "Hel", HoldAfter: "show"}))
	f.await(t, gone, "messages")
	if during := f.history(t, thread); len(during) <= len(before) {
		t.Fatalf("the run has made no checkpoint: %v", lines(during))
	}
	waiting := f.start(t, thread, plan("three", says("model", "D")))
	last := f.start(t, thread, with(plan("four", says("model", "E")), "multitask_strategy", "rollback"))
	wantStatus(t, f.call(t, "GET", last+"/join", nil), http.StatusOK)
	f.wantState(t, thread, "one A four E [model model]")
	for _, path := range []string{gone, waiting} {
		for _, suffix := range []string{"", "/join", "/stream"} {
			wantStatus(t, f.call(t, "GET", path+suffix, nil), http.StatusNotFound)
		}
	}
	after := f.history(t, thread)
	wantParents(t, after)
	if diff := cmp.Diff(lines(before), lines(after[len(after)-len(before):])); diff != "" {
		t.Errorf("the history before (-want +got):\n%s", diff)
	}
	for _, state := range after {
		if run := state["metadata"].(map[string]any)["run_id"].(string); strings.HasSuffix(gone, run) || strings.HasSuffix(waiting, run) {
			t.Errorf("the history shows %v", state)
		}
	}
}

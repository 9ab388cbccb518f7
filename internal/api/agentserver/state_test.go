package agentserver_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheServerChangesTheStateOfAnAgentThatKeepsNone checks that the server uses its own
// reducers; each change is a checkpoint.
func TestTheServerChangesTheStateOfAnAgentThatKeepsNone(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	path := f.finish(t, thread, hi())
	run := path[len(thread)+len("/runs/"):]
	for _, c := range []struct {
		name   string
		values any
		want   object
	}{
		{"object", object{"a": 1, "messages": object{"role": "user", "id": "u", "content": "U"}}, object{"a": 1.0}},
		{"list", []any{object{"a": 2}, object{"b": 3}}, object{"a": 2.0, "b": 3.0}},
		{"null", nil, object{"a": 2.0, "b": 3.0}},
	} {
		before := f.history(t, thread)
		made := f.call(t, "POST", thread+"/state", object{"values": c.values, "as_node": "someone"})
		wantStatus(t, made, http.StatusOK)
		state := f.call(t, "GET", thread+"/state", nil)
		values := state.member("values").(map[string]any)
		if texts := told(state.body); texts != "Hi ok U <nil>" {
			t.Errorf("%s: the messages are %s", c.name, texts)
		}
		delete(values, "messages")
		if diff := cmp.Diff(any(c.want), any(values)); diff != "" {
			t.Errorf("%s: values (-want +got):\n%s", c.name, diff)
		}
		if state.string("metadata", "source") != "update" || state.member("metadata", "run_id") != nil {
			t.Errorf("%s: metadata %v", c.name, state.member("metadata"))
		}
		if got := state.string("parent_checkpoint", "checkpoint_id"); got != idOf(before[0], "checkpoint") || len(f.history(t, thread)) != len(before)+1 {
			t.Errorf("%s: the checkpoint follows %s, want %s", c.name, got, idOf(before[0], "checkpoint"))
		}
		for _, name := range []string{"checkpoint", "checkpoint_id"} {
			if diff := cmp.Diff(state.member(name), made.member(name)); diff != "" {
				t.Errorf("%s: the answer (-of the state +got):\n%s", c.name, diff)
			}
		}
	}
	if got := f.call(t, "GET", path, nil).string("run_id"); got != run {
		t.Errorf("the run is %s", got)
	}
	wantStatus(t, f.call(t, "POST", thread+"/state", object{"values": 7}), http.StatusUnprocessableEntity)
	wantStatus(t, f.call(t, "POST", thread+"/state", object{"values": object{"messages": []any{object{"content": "?"}}}}), http.StatusBadRequest)
}

// TestAStateIsNotChangedUnderARun checks that clients do not change a state during a run. The copy
// of the thread has the run's input.
func TestAStateIsNotChangedUnderARun(t *testing.T) {
	t.Parallel()
	agent := newHeld()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	run := f.start(t, thread, hi())
	<-agent.reached
	wantStatus(t, f.call(t, "POST", thread+"/state", object{"values": object{"a": 1}}), http.StatusConflict)
	copied := f.call(t, "POST", thread+"/copy", nil)
	wantStatus(t, copied, http.StatusOK)
	if diff := cmp.Diff(f.call(t, "GET", thread, nil).member("values"), copied.member("values")); diff != "" {
		t.Errorf("values (-of the thread +of its copy):\n%s", diff)
	}
	agent.release <- struct{}{}
	wantStatus(t, f.call(t, "GET", run+"/join", nil), http.StatusOK)
	if got := f.call(t, "GET", thread+"/state", nil).member("values", "a"); got != nil {
		t.Errorf("a is %v", got)
	}
}

// TestAThreadWithoutAGraphCannotBeChanged has a deployment with several graphs.
func TestAThreadWithoutAGraphCannotBeChanged(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	const detail = "The thread has no graph yet. Run it first, or name one of the deployment's graphs as graph_id in its metadata."
	wantDetail(t, f.call(t, "POST", thread+"/state", object{"values": object{}}), http.StatusBadRequest, detail)
	step := []any{object{"updates": []any{object{"values": object{"a": 1}}}}}
	wantDetail(t, f.call(t, "POST", "/threads", object{"supersteps": step}), http.StatusBadRequest, detail)
	other := object{"supersteps": step, "metadata": object{"graph_id": "other"}}
	wantDetail(t, f.call(t, "POST", "/threads", other), http.StatusBadRequest, `The thread's graph "other" is not a graph of the deployment.`)
	created := f.call(t, "POST", "/threads", object{"supersteps": step, "metadata": object{"graph_id": "weather"}})
	wantStatus(t, created, http.StatusOK)
	if got := created.member("values"); !cmp.Equal(got, any(object{"a": 1.0})) {
		t.Errorf("the thread begins with %v", got)
	}
}

// TestWhatIsNextOfAnAgentThatKeepsNone checks that the next node is the agent's graph while
// the last run is not over or did not end well.
func TestWhatIsNextOfAnAgentThatKeepsNone(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	next := func(want ...any) {
		t.Helper()
		if diff := cmp.Diff(append([]any{}, want...), f.call(t, "GET", thread+"/state", nil).member("next")); diff != "" {
			t.Errorf("next (-want +got):\n%s", diff)
		}
	}
	f.finish(t, thread, hi())
	next()
	f.finish(t, thread, script(failing("no")))
	next("agent")
	f.finish(t, thread, script(add("model", "m", "A"), pausing("b", "a")))
	next("agent")
	var got []any
	for _, task := range f.call(t, "GET", thread+"/state", nil).member("tasks").([]any) {
		got = append(got, task.(map[string]any)["interrupts"])
	}
	question := func(id string) any { return []any{object{"id": id, "value": "May I " + id + "?"}} }
	if diff := cmp.Diff([]any{question("b"), question("a")}, got); diff != "" {
		t.Errorf("the questions of the tasks (-want +got):\n%s", diff)
	}
}

// TestTheUpdateOfACommandIsFolded checks that the server folds the update, as an object or as
// pairs, for an agent that keeps no checkpoints.
func TestTheUpdateOfACommandIsFolded(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, update := range []any{object{"a": 1, "b": 2}, []any{[]any{"a", 1}, []any{"b", 2}}} {
		thread := f.newThread(t)
		f.finish(t, thread, object{"assistant_id": "agent", "command": object{"update": update}})
		values := f.call(t, "GET", thread+"/state", nil).member("values").(map[string]any)
		if values["a"] != 1.0 || values["b"] != 2.0 {
			t.Errorf("update %v: the values are %v", update, values)
		}
	}
}

// TestQuestionsAreAnsweredWhenTheNextRunStarts checks that they are not answered only when the
// run ends.
func TestQuestionsAreAnsweredWhenTheNextRunStarts(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f.finish(t, thread, script(pausing("q")))
	path := f.start(t, thread, object{
		"assistant_id": "agent", "command": object{"resume": true}, "stream_mode": "messages-tuple",
		"config": object{"configurable": object{"script": []any{say("m", "Hel"), object{"hold": true}}}},
	})
	f.await(t, path, "messages")
	wantThread(t, f, thread, "busy", nil, object{})
	f.finish(t, thread, with(hi(), "multitask_strategy", "interrupt"))
}

// TestAHistoryWithoutALimit checks that a body without a limit asks for the newest state, as on the
// framework's server.
func TestAHistoryWithoutALimit(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A")))
	all := f.history(t, thread)
	for _, body := range []object{{}, {"limit": nil}} {
		wantBody(t, f.call(t, "POST", thread+"/history", body), []any{any(all[0])})
	}
	if listed := statesOf(t, f.call(t, "GET", thread+"/history", nil)); len(listed) != len(all) {
		t.Errorf("%d of %d states are listed", len(listed), len(all))
	}
}

// TestTheHistoryOfOneCheckpointIsThatAlone checks all forms of a checkpoint's name. The
// history of a checkpoint that does not exist is an error.
func TestTheHistoryOfOneCheckpointIsThatAlone(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*fixture{"of an agent's checkpoints": setUpKeeper(t), "of the server's": setUp(t, nil)} {
		thread := f.newThread(t)
		f.finish(t, thread, plan("one", says("model", "A")))
		all := f.history(t, thread)
		for _, checkpoint := range []any{all[1]["checkpoint"], object{"checkpoint_id": idOf(all[1], "checkpoint")}} {
			found := statesOf(t, f.call(t, "POST", thread+"/history", object{"checkpoint": checkpoint, "limit": 5}))
			if diff := cmp.Diff(all[1:2], found); diff != "" {
				t.Errorf("%s, %v (-want +got):\n%s", name, checkpoint, diff)
			}
		}
		unknown := f.call(t, "POST", thread+"/history", object{"checkpoint": object{"checkpoint_id": unknownID}})
		wantDetail(t, unknown, http.StatusNotFound, "Checkpoint with ID "+unknownID+" not found.")
	}
}

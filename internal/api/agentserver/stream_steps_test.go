package agentserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// stepEvents are the events of a stream in the modes that show steps, with their data.
type stepEvents struct{ checkpoints, tasks, debug []map[string]any }

func stepsOf(t *testing.T, events []event) stepEvents {
	t.Helper()
	var s stepEvents
	for _, e := range events {
		of := map[string]*[]map[string]any{"checkpoints": &s.checkpoints, "tasks": &s.tasks, "debug": &s.debug}[e.Name]
		if of == nil {
			continue
		}
		var data map[string]any
		check.Must(t, json.Unmarshal([]byte(e.Data), &data))
		*of = append(*of, data)
	}
	return s
}

// stepped is a request to a scripted agent that sends messages and updates only: three nodes
// change the state, and one of them says that it changed nothing.
func stepped() object {
	body := script(say("m", "Hel"), add("model", "m", "Hello"), emit("updates", object{"idle": nil}), emit("updates", json.RawMessage(`{"a":{"x":1},"b":{"y":2}}`)))
	return with(body, "stream_mode", []any{"updates", "tasks", "checkpoints", "debug"})
}

// TestTheServerShowsTheStepsOfAnAgentThatDoesNot checks that the server shows steps as the
// framework shows its own steps: each checkpoint as in the history, each node with its input
// and its result, and both once more in the mode debug.
func TestTheServerShowsTheStepsOfAnAgentThatDoesNot(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	path, events := f.stream(t, thread, stepped())
	const checkpoint, model, idle = " checkpoints debug", " updates" + pair, " updates" + pair
	wantNames := "metadata" + checkpoint + model + checkpoint + idle + " updates" + pair + pair + checkpoint + checkpoint
	if diff := cmp.Diff(wantNames, strings.Join(names(events), " ")); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	steps := stepsOf(t, events)
	history := f.history(t, thread)
	slices.Reverse(history)
	wantCheckpoints(t, thread, history[1:], steps.checkpoints)

	run := path[len(thread)+len("/runs/"):]
	if metadata := steps.checkpoints[0]["metadata"].(map[string]any); metadata["run_id"] != run || metadata["source"] != "input" || metadata["step"] != -1.0 {
		t.Errorf("the first checkpoint has the metadata %v", metadata)
	}
	wantTasks(t, history[1:], steps.tasks, []wantedTask{{"model", 0, 0}, {"idle", 1, 1}, {"a", 1, 1}, {"b", 1, 1}})
	wantDebug(t, steps)
}

// pair has the events of a node that has ended.
const pair = " tasks debug tasks debug"

// wantCheckpoints checks that the events are the states of a thread, oldest first.
func wantCheckpoints(t *testing.T, thread string, history, shown []map[string]any) {
	t.Helper()
	config := func(id any) any {
		return object{"configurable": object{"thread_id": thread[len("/threads/"):], "checkpoint_ns": "", "checkpoint_id": id}}
	}
	var want []map[string]any
	before := idOf(history[0], "parent_checkpoint")
	for _, state := range history {
		state["config"], state["parent_config"] = config(idOf(state, "checkpoint")), config(before)
		before = idOf(state, "checkpoint")
		want = append(want, state)
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("checkpoints (-of the history +shown):\n%s", diff)
	}
}

// wantedTask is a node that had one of the states as its input, and ended in a step.
type wantedTask struct {
	name string
	on   int
	step float64
}

func wantTasks(t *testing.T, history, shown []map[string]any, want []wantedTask) {
	t.Helper()
	results := map[string]any{
		"model": object{"messages": []any{message("ai", "m", "Hello")}}, "idle": object{}, "a": object{"x": 1.0}, "b": object{"y": 2.0},
	}
	if len(shown) != 2*len(want) {
		t.Fatalf("there are %d events of tasks, want %d", len(shown), 2*len(want))
	}
	ids := map[any]bool{}
	for i, w := range want {
		begun, ended := shown[2*i], shown[2*i+1]
		if ids[begun["id"]] || begun["id"] == nil || begun["id"] != ended["id"] {
			t.Errorf("%s begins as %v and ends as %v", w.name, begun["id"], ended["id"])
		}
		ids[begun["id"]] = true
		wantBegun := object{"id": begun["id"], "name": w.name, "input": history[w.on]["values"], "triggers": []any{}, "interrupts": []any{}}
		if diff := cmp.Diff(wantBegun, begun); diff != "" {
			t.Errorf("task (-want +got):\n%s", diff)
		}
		wantEnded := object{"id": begun["id"], "name": w.name, "error": nil, "result": results[w.name], "interrupts": []any{}}
		if diff := cmp.Diff(wantEnded, ended); diff != "" {
			t.Errorf("task_result (-want +got):\n%s", diff)
		}
	}
}

// wantDebug checks that the mode debug has the events of the two other modes, each with its
// step.
func wantDebug(t *testing.T, steps stepEvents) {
	t.Helper()
	var checkpoints, tasks []map[string]any
	for _, e := range steps.debug {
		payload := e["payload"].(map[string]any)
		if len(e) != 4 || e["timestamp"] == nil {
			t.Errorf("an event has the members %v", e)
		}
		switch e["type"] {
		case "checkpoint":
			checkpoints = append(checkpoints, payload)
			if want := payload["metadata"].(map[string]any)["step"]; e["step"] != want {
				t.Errorf("a checkpoint of step %v is in step %v", want, e["step"])
			}
		case "task", "task_result":
			tasks = append(tasks, payload)
			if _, ended := payload["result"]; ended != (e["type"] == "task_result") {
				t.Errorf("%v: %v", e["type"], payload)
			}
			if want := float64(len(checkpoints) - 1); e["step"] != want {
				t.Errorf("%v is in step %v, want %v", payload["name"], e["step"], want)
			}
		default:
			t.Errorf("an event is of the type %v", e["type"])
		}
	}
	if diff := cmp.Diff(steps.checkpoints, checkpoints); diff != "" {
		t.Errorf("checkpoints (-of the mode checkpoints +debug):\n%s", diff)
	}
	if diff := cmp.Diff(steps.tasks, tasks); diff != "" {
		t.Errorf("tasks (-of the mode tasks +debug):\n%s", diff)
	}
}

// TestStepsAreShownAgainAsTheyWere reads the steps again from each position, and also in the
// stream of the thread. A client that asks for one of the modes gets only that mode.
func TestStepsAreShownAgainAsTheyWere(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	path, events := f.stream(t, thread, stepped())
	for i, e := range events {
		if e.ID == "" {
			continue
		}
		if diff := cmp.Diff(events[i+1:], f.follow(t, path+"/stream", e.ID)); diff != "" {
			t.Fatalf("after %s (-first +again):\n%s", e.ID, diff)
		}
	}
	ofThread := f.followThread(t, thread, "", "-").ends(t, 1)
	wantEvents(t, ofThread[:len(events)], events...)
	for _, mode := range []string{"tasks", "checkpoints", "debug", "updates"} {
		want := slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.Name != mode && e.Name != "metadata" })
		got := f.follow(t, path+"/stream?stream_mode="+mode, "")
		if diff := cmp.Diff(shown(want), shown(got)); diff != "" {
			t.Errorf("only %s (-want +got):\n%s", mode, diff)
		}
	}
}

// TestAPauseIsATaskThatAsks checks that the task has the same id as in the state.
func TestAPauseIsATaskThatAsks(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	_, events := f.stream(t, thread, with(script(pausing("q")), "stream_mode", []any{"tasks", "checkpoints"}))
	if got := strings.Join(names(events), " "); got != "metadata checkpoints tasks tasks" {
		t.Fatalf("the events are %s", got)
	}
	ended := stepsOf(t, events).tasks[1]
	asks := f.call(t, "GET", thread+"/state", nil).member("tasks").([]any)[0].(map[string]any)
	if ended["id"] != asks["id"] || ended["name"] != asks["name"] || !cmp.Equal(ended["interrupts"], asks["interrupts"]) {
		t.Errorf("the task %v ends, %v asks", ended, asks)
	}
}

// TestAnAgentThatShowsItsStepsIsLeftToIt checks that the server shows no steps after the
// agent's first event of these modes, so that no step is shown twice.
func TestAnAgentThatShowsItsStepsIsLeftToIt(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, mode := range []string{"tasks", "checkpoints", "debug"} {
		body := script(emit(mode, object{"its": "own"}), add("model", "m", "Hello"))
		path, events := f.stream(t, f.newThread(t), with(body, "stream_mode", []any{"tasks", "checkpoints", "debug"}))
		if diff := cmp.Diff([]string{metadata(path, 1), mode + ` {"its":"own"}`}, shown(events)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

// TestTheStepOfASilentAgentIsItsInput checks that the server shows the step at the end,
// because the agent did not.
func TestTheStepOfASilentAgentIsItsInput(t *testing.T) {
	t.Parallel()
	f := setUp(t, func(context.Context, graph.Invocation, func(string, any)) error { return nil })
	thread := f.newThread(t)
	_, events := f.stream(t, thread, with(hi(), "stream_mode", "checkpoints"))
	steps := stepsOf(t, events).checkpoints
	if want := f.history(t, thread); len(want) != 2 || len(steps) != 1 || idOf(steps[0], "checkpoint") != idOf(want[0], "checkpoint") {
		t.Fatalf("got %v, want %v", steps, want)
	}
	ofThread := f.followThread(t, thread, "", "-").ends(t, 1)
	if diff := cmp.Diff(shown(events), shown(ofThread[:len(ofThread)-1])); diff != "" {
		t.Errorf("events of the thread (-of the run +got):\n%s", diff)
	}
}

// TestAnAgentThatKeepsCheckpointsShowsItsSteps checks that the server shows no steps for such
// an agent.
func TestAnAgentThatKeepsCheckpointsShowsItsSteps(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	for i := range 2 {
		_, events := f.stream(t, thread, with(plan(fmt.Sprint("m", i), graphtest.Node{Name: "a"}), "stream_mode", []any{"tasks", "checkpoints", "debug", "values"}))
		for _, e := range events {
			if e.Name != "metadata" && e.Name != "values" {
				t.Errorf("run %d: there is %v", i, e)
			}
		}
	}
}

// TestASlowAgentMayStillKeepCheckpoints has an agent be silent for so long that readers are shown
// its input. Only its first step shows whether the server shows this input as a checkpoint.
func TestASlowAgentMayStillKeepCheckpoints(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	runs := run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: noRollouts{}, Now: f.clock.Now})
	for name, test := range map[string]struct {
		step func(*run.Attempt) error
		want string
	}{
		"it keeps checkpoints": {
			func(a *run.Attempt) error {
				return a.Checkpoint(graph.Checkpoint{ID: "c", Values: json.RawMessage(`{"n":2}`)})
			},
			"metadata values events values",
		},
		"it keeps none": {
			func(a *run.Attempt) error { return a.Update(run.EventUpdates, json.RawMessage(`{"model":{"n":2}}`)) },
			"metadata values events checkpoints updates values checkpoints",
		},
	} {
		path := f.newThread(t)
		input, err := run.NewInput(json.RawMessage(`{"n":1}`))
		check.Must(t, err)
		ref := thread.Ref{Workspace: f.deployment.Workspace, Deployment: f.deployment.Deployment, Thread: path[len("/threads/"):]}
		r, err := runs.Create(t.Context(), ref, run.Request{Graph: "weather", Strategy: run.Enqueue, Payload: run.Payload{Input: input}})
		check.Must(t, err)
		a, err := runs.Claim(t.Context(), r.Ref, 0)
		check.Must(t, err)
		check.Must(t, a.Flush(t.Context()))
		a.Show("events", json.RawMessage(`{}`))
		check.Must(t, test.step(a))
		check.Must(t, a.Finish(t.Context(), run.Outcome{Status: run.Success}))
		events := f.follow(t, path+"/runs/"+r.Run+"/stream?stream_mode=events&stream_mode=checkpoints&stream_mode=values&stream_mode=updates", "")
		if got := strings.Join(names(events), " "); got != test.want {
			t.Errorf("%s: the events are %s, want %s", name, got, test.want)
		}
	}
}

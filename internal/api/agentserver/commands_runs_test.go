package agentserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// newestRun returns the newest run of a thread, as the endpoint of runs shows it.
func (f *fixture) newestRun(t *testing.T, thread string) object {
	t.Helper()
	runs, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any)
	if len(runs) == 0 {
		t.Fatal("the thread has no run")
	}
	newest, _ := runs[0].(object)
	return newest
}

// TestARunOfACommandIsAnOrdinaryRun checks what a command leaves at the endpoints of runs and of
// threads. Parameters that this server does not use change nothing.
func TestARunOfACommandIsAnOrdinaryRun(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := newThreadPath(t)
	asked := script(add("model", "m1", "Hello"))
	asked["metadata"], asked["tracer"], asked["news"] = object{"a": 1.0}, object{"project_name": "p"}, []any{1}
	// Newer clients send both.
	asked["multitaskStrategy"], asked["multitask_strategy"] = "interrupt", "interrupt"
	id := f.does(t, thread, "run.start", asked).string("result", "run_id")
	f.settle(t, f.path(thread))
	run := f.newestRun(t, thread)
	metadata, _ := run["metadata"].(object)
	kwargs, _ := run["kwargs"].(object)
	if run["run_id"] != id || run["status"] != "success" || run["multitask_strategy"] != "interrupt" || run["assistant_id"] != agentID || metadata["a"] != 1.0 {
		t.Errorf("the run is %v", run)
	}
	modes := []any{"values", "updates", "messages-tuple", "custom", "tasks", "tools"}
	if diff := cmp.Diff([]any{modes, true, asked["input"]}, []any{kwargs["stream_mode"], kwargs["subgraphs"], kwargs["input"]}); diff != "" {
		t.Errorf("the run's parameters (-want +got):\n%s", diff)
	}
	of := f.call(t, "GET", thread, nil)
	if of.string("metadata", "graph_id") != "agent" || of.string("metadata", "assistant_id") != agentID || of.string("status") != "idle" {
		t.Errorf("the thread is %s", of.text)
	}
	f.does(t, thread, "run.start", script(failing("kaboom")))
	f.settle(t, f.path(thread))
	if run, thread := f.newestRun(t, thread)["status"], f.call(t, "GET", thread, nil).string("status"); run != "error" || thread != "error" {
		t.Errorf("a run that fails is %v, and its thread is %s", run, thread)
	}
}

// TestOneOfTwoQuestionsIsAnswered checks that a run which asks the other question again shows it
// again, under the same id, and that no input is no answer.
func TestOneOfTwoQuestionsIsAnswered(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": []string{"lifecycle", "input"}})
	f.does(t, thread, "run.start", script(pausing("q1", "q2")))
	present.runs(t, 1)
	again := object{"configurable": object{"script": []graphtest.Step{pausing("q2")}}}
	f.does(t, thread, "input.respond", object{"interrupt_id": "q1", "response": "yes", "config": again, "metadata": object{"by": "me"}})
	wantLines(t, "the events", eventLines(present.runs(t, 1)),
		`lifecycle {"event":"running","graph_name":"agent"}`,
		`input.answered {"interrupt_ids":["q1"]}`,
		`input.requested {"interrupt_id":"q2","payload":"May I q2?","value":"May I q2?"}`,
		`lifecycle {"event":"interrupted","graph_name":"agent"}`)
	metadata, _ := f.newestRun(t, thread)["metadata"].(object)
	if metadata["by"] != "me" {
		t.Errorf("the answer's run has the metadata %v", metadata)
	}
	wantRefusal(t, f.command(t, thread, "input.respond", object{"interrupt_id": "q1", "response": "yes"}), "no_such_interrupt")
	f.does(t, thread, "run.start", with(script(add("model", "m1", "Done")), "input", nil))
	wantLines(t, "the events", eventLines(present.runs(t, 1)),
		`lifecycle {"event":"running","graph_name":"agent"}`, `lifecycle {"event":"completed","graph_name":"agent"}`)
	kwargs, _ := f.newestRun(t, thread)["kwargs"].(object)
	if kwargs["command"] != nil {
		t.Errorf("the run has the command %v", kwargs["command"])
	}
}

// TestCheckpointsAndTasksOfARun checks that the events name the checkpoints of the history and
// where each comes from, that tasks pass as the graph tells of them, and the times of events.
func TestCheckpointsAndTasksOfARun(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	begins := object{"id": "1", "name": "model", "input": object{"n": 1.0}, "triggers": []any{"start"}, "interrupts": []any{}, "metadata": object{"k": "v"}}
	ends := object{"id": "1", "name": "model", "result": object{"n": 2.0}, "interrupts": []any{object{"id": "q", "value": "May I?"}}}
	present := f.watch(t, thread, object{"channels": []string{"checkpoints", "tasks", "lifecycle"}})
	f.does(t, thread, "run.start", script(emit("tasks", begins), add("model", "m1", "One"), emit("tasks", ends)))
	first := present.runs(t, 1)
	var tasks []any
	for _, e := range of(first, "tasks") {
		var task any
		check.Must(t, json.Unmarshal(e.Params.Data, &task))
		tasks = append(tasks, task)
	}
	if diff := cmp.Diff([]any{begins, ends}, tasks); diff != "" {
		t.Errorf("the tasks (-want +got):\n%s", diff)
	}
	fork := script(add("model", "m2", "Two"))
	config, _ := fork["config"].(object)
	configurable, _ := config["configurable"].(object)
	listed, _ := f.does(t, thread, "state.listCheckpoints", object{}).member("result", "checkpoints").([]any)
	oldest, _ := listed[len(listed)-2].(object) // after the empty state
	configurable["checkpoint_id"] = oldest["id"]
	f.does(t, thread, "run.start", fork)
	all := slices.Concat(first, present.runs(t, 1))
	type checkpoint struct {
		ID     string
		Parent string `json:"parent_id"`
		Step   int
		Source string
	}
	var shown []checkpoint
	created, err := time.Parse(time.RFC3339Nano, f.call(t, "GET", thread, nil).string("created_at"))
	check.Must(t, err)
	for _, e := range all {
		if at := time.UnixMilli(e.Params.Timestamp); at.Before(created.Truncate(time.Millisecond)) || at.After(created.Add(time.Hour)) {
			t.Errorf("%v has the time %v, and the thread was created at %v", e, at, created)
		}
		if e.Method == "checkpoints" {
			var c checkpoint
			check.Must(t, json.Unmarshal(e.Params.Data, &c))
			shown = append(shown, c)
		}
	}
	var kept []checkpoint
	history, _ := f.call(t, "GET", thread+"/history?limit=100", nil).body.([]any)
	// The oldest is the empty state.
	for _, state := range slices.Backward(history[:len(history)-1]) {
		of := response{body: state}
		step, _ := of.member("metadata", "step").(float64)
		c := checkpoint{ID: of.string("checkpoint", "checkpoint_id"), Step: int(step), Source: of.string("metadata", "source")}
		if of.member("parent_checkpoint") != nil {
			c.Parent = of.string("parent_checkpoint", "checkpoint_id")
		}
		kept = append(kept, c)
	}
	if diff := cmp.Diff(kept, shown); diff != "" {
		t.Errorf("the checkpoints (-history +shown):\n%s", diff)
	}
	if sources := []string{shown[0].Source, shown[1].Source}; !slices.Equal(sources, []string{"input", "loop"}) || shown[2].Parent != shown[0].ID {
		t.Errorf("the checkpoints are %v", shown)
	}
}

// TestAStreamOutlivesItsThread checks that a stream goes on when its thread is deleted, and that
// it is cut off, and not ended, when the server stops: clients take an end for the end of a run.
func TestAStreamOutlivesItsThread(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	f, stop := f.apart(t, budget.New(64<<20))
	thread := newThreadPath(t)
	present := f.watch(t, thread, object{"channels": []string{"lifecycle"}})
	wantStatus(t, f.call(t, "GET", thread, nil), http.StatusNotFound)
	for range 2 {
		f.does(t, thread, "run.start", script(add("model", "m1", "One")))
		wantLines(t, "the lifecycle", lifecycles(present.runs(t, 1)), "running", "completed")
		wantStatus(t, f.call(t, "DELETE", thread, nil), http.StatusNoContent)
	}
	stop(fault.New(fault.Unavailable, "The server is stopping."))
	rest, err := io.ReadAll(present)
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(string(rest), "data:") {
		t.Errorf("the stream ends with %q and the error %v", rest, err)
	}
}

// TestAThreadWithoutRunsIsAnsweredAndForked has a copy of a thread that waits, and a thread whose
// run was deleted. Both know their assistant by their metadata.
func TestAThreadWithoutRunsIsAnsweredAndForked(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	answer := object{"interrupt_id": "q1", "response": true}
	thread := f.newThread(t)
	run := f.finish(t, thread, script(pausing("q1")))
	copied := "/threads/" + f.call(t, "POST", thread+"/copy", nil).string("thread_id")
	wantStatus(t, f.call(t, "DELETE", run, nil), http.StatusNoContent)
	for _, without := range []string{copied, thread} {
		wantRefusal(t, f.command(t, without, "input.respond", object{"interrupt_id": "q9", "response": true}), "no_such_interrupt")
		oldest := f.call(t, "GET", without+"/history", nil).body.([]any)[0].(object)["checkpoint"].(object)
		f.does(t, without, "input.respond", answer)
		made := f.call(t, "GET", without+"/runs", nil).body.([]any)
		if kwargs, _ := made[0].(object)["kwargs"].(object); len(made) != 1 || made[0].(object)["assistant_id"] != agentID || strings.Contains(fmt.Sprint(kwargs), "script") {
			t.Errorf("the answer makes the runs %v", made)
		}
		answered := without + "/runs/" + made[0].(object)["run_id"].(string)
		wantStatus(t, f.call(t, "GET", answered+"/join", nil), http.StatusOK)
		wantStatus(t, f.call(t, "DELETE", answered, nil), http.StatusNoContent)
		f.does(t, without, "state.fork", object{"checkpoint_id": oldest["checkpoint_id"]})
	}
}

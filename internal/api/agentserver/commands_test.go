package agentserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// lifecycles returns the lifecycle events of the runs themselves, without the name of the
// graph.
func lifecycles(events []shownEvent) []string {
	var all []string
	for _, e := range of(events, "lifecycle") {
		if root := e.root(); root != "" {
			all = append(all, root)
		}
	}
	return all
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// heldAfter is a run that shows a part of a message and then runs until it is stopped.
func heldAfter(text string) object { return script(token("m1", text), graphtest.Step{Hold: true}) }

func shows(text string) func(shownEvent) bool {
	return func(e shownEvent) bool {
		return e.Method == "messages" && strings.Contains(string(e.Params.Data), `"text-delta"`) && strings.Contains(string(e.Params.Data), text)
	}
}

// TestStrategiesOfStartedRuns checks that strategies work as at the endpoints of runs: a
// client that watches the thread sees the first run end before the second begins.
func TestStrategiesOfStartedRuns(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		thread := f.newThread(t)
		present := f.watch(t, thread, object{"channels": allChannels})
		first := f.does(t, thread, "run.start", heldAfter("Hel")).string("result", "run_id")
		seen := present.until(t, shows("Hel"))
		waiting := f.does(t, thread, "run.start", heldAfter("never shown")).string("result", "run_id")
		second := f.does(t, thread, "run.start", with(script(add("model", "m2", "Bye")), "multitaskStrategy", "interrupt"))
		seen = append(seen, present.runs(t, 3)...)
		wantLines(t, "the lifecycles", lifecycles(seen), "running", "interrupted", "running", "interrupted", "running", "completed")
		wantLines(t, "the messages", eventLines(of(seen, "messages"))[3:5],
			`messages @model {"content":{"text":"Hel","type":"text"},"event":"content-block-finish","id":"m1","index":0,"run_id":"m1"}`,
			`messages @model {"event":"message-finish","id":"m1","run_id":"m1"}`)
		var ends []string
		for _, e := range seen {
			if root := e.root(); root != "" && root != "running" {
				ends = append(ends, e.ID)
			}
		}
		wantLines(t, "the ends", ends, "synth:"+first+":interrupted", "synth:"+waiting+":interrupted", "synth:"+second.string("result", "run_id")+":completed")
		values := of(seen, "values")
		if last := string(values[len(values)-1].Params.Data); !strings.Contains(last, `"Hel"`) || !strings.Contains(last, `"Bye"`) {
			t.Errorf("what was shown is not kept: %s", last)
		}
		if got := f.call(t, "GET", thread+"/runs/"+first, nil).string("status"); got != "interrupted" {
			t.Errorf("the first run is %s", got)
		}
		again := f.watch(t, thread, object{"channels": []string{"lifecycle"}, "since": 0})
		wantLines(t, "the lifecycles for who comes back", lifecycles(again.runs(t, 3)), lifecycles(seen)...)
		late := f.watch(t, thread, object{"channels": allChannels})
		if got := late.runs(t, 1); got[0].ID != "synth:"+second.string("result", "run_id")+":running" {
			t.Errorf("who comes late sees %v first", got[0])
		}
		after := f.watch(t, thread, object{"channels": allChannels, "since": second.member("meta", "applied_through_seq")})
		if got := after.runs(t, 1); got[0].ID != "synth:"+second.string("result", "run_id")+":running" {
			t.Errorf("who comes with the number of the command sees %v first", got[0])
		}
	})
	t.Run("reject", func(t *testing.T) {
		t.Parallel()
		thread := f.newThread(t)
		f.does(t, thread, "run.start", heldAfter("Hel"))
		wantRefusal(t, f.command(t, thread, "run.start", with(hi(), "multitask_strategy", "reject")), "invalid_argument")
		if runs, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any); len(runs) != 1 {
			t.Errorf("there are %d runs", len(runs))
		}
	})
	t.Run("enqueue", func(t *testing.T) {
		t.Parallel()
		thread := f.newThread(t)
		f.does(t, thread, "run.start", script(graphtest.Step{DelayMS: 20}, add("model", "m1", "Hello")))
		f.does(t, thread, "run.start", with(script(add("model", "m2", "Bye")), "multitaskStrategy", "panic"))
		seen := f.watch(t, thread, object{"channels": []string{"lifecycle", "updates"}, "since": 0}).runs(t, 2)
		wantLines(t, "the events", []string{seen[0].root(), seen[1].Params.Node, seen[2].root(), seen[3].root(), seen[4].Params.Node, seen[5].root()},
			"running", "model", "completed", "running", "model", "completed")
	})
	t.Run("rollback", func(t *testing.T) {
		t.Parallel()
		thread := f.newThread(t)
		present := f.watch(t, thread, object{"channels": []string{"lifecycle", "messages"}})
		f.does(t, thread, "run.start", heldAfter("Hel"))
		present.until(t, shows("Hel"))
		f.does(t, thread, "run.start", with(hi(), "multitask_strategy", "rollback"))
		wantLines(t, "the lifecycles", lifecycles(present.runs(t, 2)), "interrupted", "running", "completed")
	})
}

// TestQuestionsAreAnswered answers questions one by one and together. Only the questions that
// the thread waits on can be answered.
func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	wantRefusal(t, f.command(t, thread, "input.respond", object{"interrupt_id": "q1", "response": true}), "no_such_run")
	present := f.watch(t, thread, object{"channels": []string{"lifecycle", "input", "values"}})
	ask := script(pausing("q1", "q2"))
	f.does(t, thread, "run.start", ask)
	asked := present.runs(t, 1)
	wantLines(t, "the questions", eventLines(of(asked, "input.requested")),
		`input.requested {"interrupt_id":"q1","payload":"May I q1?","value":"May I q1?"}`,
		`input.requested {"interrupt_id":"q2","payload":"May I q2?","value":"May I q2?"}`)
	wantLines(t, "the lifecycle", lifecycles(asked), "running", "interrupted")
	if got := f.call(t, "GET", thread, nil).string("status"); got != "interrupted" {
		t.Errorf("the thread is %s", got)
	}
	wantRefusal(t, f.command(t, thread, "input.respond", object{"interrupt_id": "q3", "response": true}), "no_such_interrupt")
	wantRefusal(t, f.command(t, thread, "input.respond", object{"response": true}), "invalid_argument")
	wantRefusal(t, f.command(t, thread, "input.respond", object{"responses": []any{}}), "invalid_argument")
	done := object{"configurable": object{"script": []graphtest.Step{add("model", "m1", "Done")}}}
	both := []any{object{"namespace": []any{}, "interrupt_id": "q1", "response": true}, object{"interrupt_id": "q2", "response": object{"ok": 1}}}
	f.does(t, thread, "input.respond", object{"responses": both, "update": object{"x": "2"}, "goto": "model", "config": done})
	answered := present.runs(t, 1)
	wantLines(t, "the answers", eventLines(of(answered, "input.answered")), `input.answered {"interrupt_ids":["q1","q2"]}`)
	wantLines(t, "the lifecycle", lifecycles(answered), "running", "completed")
	wantRefusal(t, f.command(t, thread, "input.respond", object{"interrupt_id": "q1", "response": true}), "invalid_argument")
	kwargs, _ := f.newestRun(t, thread)["kwargs"].(object)
	want := object{"resume": object{"q1": true, "q2": object{"ok": 1.0}}, "update": object{"x": "2"}, "goto": "model"}
	if diff := cmp.Diff(any(want), kwargs["command"]); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
	// An input is an answer, too, while the thread waits.
	f.does(t, thread, "run.start", ask)
	present.runs(t, 1)
	f.does(t, thread, "run.start", with(script(add("model", "m2", "Fine")), "input", "yes"))
	fine := present.runs(t, 1)
	wantLines(t, "the lifecycle", lifecycles(fine), "running", "completed")
	wantLines(t, "the answers", eventLines(of(fine, "input.answered")), `input.answered {"interrupt_ids":["q1","q2"]}`)
	kwargs, _ = f.newestRun(t, thread)["kwargs"].(object)
	if diff := cmp.Diff(any(object{"resume": "yes"}), kwargs["command"]); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
}

// TestAStrictAnswer checks that a strict answer to a question that does not exist is refused
// and changes nothing.
func TestAStrictAnswer(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": []string{"lifecycle", "input"}})
	f.does(t, thread, "run.start", script(pausing("q1", "q2")))
	present.runs(t, 1)
	answering := func(resume any) response {
		run := script(add("model", "m1", "Done"))
		delete(run, "input")
		run["command"], run["strict_resume"] = object{"resume": resume}, true
		return f.call(t, "POST", thread+"/runs", run)
	}
	refused := answering(object{"q1": true, "q9": true})
	wantStatus(t, refused, http.StatusConflict)
	if !strings.Contains(string(refused.text), "q9") {
		t.Errorf("the refusal does not name the question: %s", refused.text)
	}
	if runs, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any); len(runs) != 1 {
		t.Errorf("there are %d runs", len(runs))
	}
	if got := f.call(t, "GET", thread, nil).string("status"); got != "interrupted" {
		t.Errorf("the thread is %s", got)
	}
	wantStatus(t, answering(object{"q1": true, "q2": false}), http.StatusOK)
	wantLines(t, "the lifecycle", lifecycles(present.runs(t, 1)), "running", "completed")
	for _, resume := range []any{object{"q1": true}, "yes"} {
		wantStatus(t, answering(resume), http.StatusConflict)
	}
	wantRefusal(t, f.command(t, thread, "input.respond", object{"interrupt_id": "q1", "response": true}), "invalid_argument")
}

// TestAStrictAnswerInTheProtocol checks that such an answer becomes a run that fails at once if
// the thread does not wait for the answer, and that the thread waits on.
func TestAStrictAnswerInTheProtocol(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": []string{"lifecycle", "input"}})
	f.does(t, thread, "run.start", script(pausing("q1", "q2")))
	seen := present.runs(t, 1)
	answer := func(run object, ids ...string) object {
		var all []any
		for _, id := range ids {
			all = append(all, object{"interrupt_id": id, "response": true})
		}
		return object{"responses": all, "strict_resume": true, "config": run["config"]}
	}
	respond := func(run object, ids ...string) response {
		t.Helper()
		return f.does(t, thread, "input.respond", answer(run, ids...))
	}
	refused := respond(script(), "q1", "q9")
	told := present.runs(t, 1)
	seen = append(seen, told...)
	failure := `lifecycle {"event":"failed","graph_name":"agent","error":"The thread does not wait for an answer to the interrupt q9.",` +
		`"reason":"unknown_interrupt","interrupt_ids":["q9"],"pending_ids":["q1","q2"]}`
	wantLines(t, "the refusal", eventLines(told), `lifecycle {"event":"running","graph_name":"agent"}`, failure)
	if before := int64(refused.member("meta", "applied_through_seq").(float64)); before >= told[0].Seq || before < seen[len(seen)-len(told)-1].Seq {
		t.Errorf("the command says %d, and the refused run begins at %d", before, told[0].Seq)
	}
	if got := f.call(t, "GET", thread, nil); got.string("status") != "interrupted" || !strings.Contains(string(got.text), "May I q2?") {
		t.Errorf("the thread is %s", got.text)
	}
	runs, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any)
	newest, _ := runs[0].(object)
	id, _ := newest["run_id"].(string)
	if len(runs) != 2 || newest["status"] != "error" {
		t.Errorf("the runs are %v", runs)
	}
	failed := f.call(t, "GET", thread+"/runs/"+id+"/join", nil)
	if failed.member("__error__", "error") != "UnknownInterruptError" {
		t.Errorf("the refused run leaves %s", failed.text)
	}
	if got := f.call(t, "GET", thread+"/runs/"+id+"/explanation", nil).string("remedy"); !strings.Contains(got, "questions the thread waits on now") {
		t.Errorf("the remedy is %q", got)
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprint("other", i)
	}
	for _, ids := range [][]string{many, {strings.Repeat("x", 257)}} {
		wantRefusal(t, f.command(t, thread, "input.respond", answer(script(), ids...)), "invalid_argument")
	}
	// The refused run stays out of what an interrupt keeps, and out of the way of later runs.
	respond(heldAfter("Hel"), "q1", "q2")
	seen = append(seen, present.until(t, func(e shownEvent) bool { return e.root() == "running" })...)
	respond(script(), "q1")
	f.does(t, thread, "run.start", with(script(add("model", "m2", "Bye")), "multitask_strategy", "interrupt"))
	rest := present.runs(t, 3)
	wantLines(t, "the lifecycle", lifecycles(rest), "interrupted", "running", "failed", "running", "completed")
	if line := eventLines(of(rest, "lifecycle"))[2]; !strings.Contains(line, `"interrupt_ids":["q1"],"pending_ids":[]`) {
		t.Errorf("the late answer is shown as %s", line)
	}
	seen = append(seen, rest...)
	again := f.watch(t, thread, object{"channels": []string{"lifecycle", "input"}, "since": 0})
	if diff := cmp.Diff(seen, again.runs(t, 5)); diff != "" {
		t.Errorf("events (-present +late):\n%s", diff)
	}
}

// TestAnInputThatIsACommand checks that such an input becomes the command of the run. A graph
// that calls another graph sends commands in this way.
func TestAnInputThatIsACommand(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": []string{"lifecycle", "input"}})
	f.does(t, thread, "run.start", script(pausing("q1", "q2")))
	present.runs(t, 1)
	command := object{"lg_name": "Command", "resume": object{"q1": true, "q2": false}, "goto": []any{}}
	f.does(t, thread, "run.start", with(script(add("model", "m1", "Fine")), "input", command))
	wantLines(t, "the answers", eventLines(of(present.runs(t, 1), "input.answered")), `input.answered {"interrupt_ids":["q1","q2"]}`)
	kwargs, _ := f.newestRun(t, thread)["kwargs"].(object)
	if diff := cmp.Diff(any(command), kwargs["command"]); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
}

// TestAForkOfAWaitingThread checks that the input of a fork is not taken as an answer: the run
// continues from the checkpoint that it names, where there is no question.
func TestAForkOfAWaitingThread(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": []string{"lifecycle", "input"}})
	f.does(t, thread, "run.start", script(add("model", "m1", "One")))
	present.runs(t, 1)
	listed, _ := f.does(t, thread, "state.listCheckpoints", object{}).member("result", "checkpoints").([]any)
	f.does(t, thread, "run.start", script(pausing("q1")))
	present.runs(t, 1)
	fork := script(add("model", "m2", "Two"))
	config, _ := fork["config"].(object)
	configurable, _ := config["configurable"].(object)
	configurable["checkpoint_id"] = listed[0].(object)["id"]
	f.does(t, thread, "run.start", fork)
	if told := of(present.runs(t, 1), "input.answered"); len(told) > 0 {
		t.Errorf("the fork answers %v", told)
	}
	kwargs, _ := f.newestRun(t, thread)["kwargs"].(object)
	if kwargs["command"] != nil || kwargs["input"] == nil {
		t.Errorf("the run has the command %v and the input %v", kwargs["command"], kwargs["input"])
	}
}

// TestStateCommands reads, lists and forks states.
func TestStateCommands(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, method := range []string{"agent.getTree", "state.fork"} {
		wantRefusal(t, f.command(t, thread, method, object{"checkpoint_id": "c"}), "no_such_run")
	}
	first := f.does(t, thread, "run.start", script(emit("updates|inner:1", object{"n": nil}), add("model", "m1", "One"))).string("result", "run_id")
	f.settle(t, f.path(thread))
	got := f.does(t, thread, "state.get", object{"namespace": []any{}, "keys": []string{"messages", "none"}})
	messages, _ := got.member("result", "values", "messages").([]any)
	if len(messages) != 2 || got.string("result", "checkpoint", "id") == "" {
		t.Errorf("the state is %s", got.text)
	}
	tree := f.does(t, thread, "agent.getTree", object{})
	inner := object{"namespace": []any{"inner:1"}, "status": "completed", "graph_name": "inner"}
	want := object{"namespace": []any{}, "status": "completed", "graph_name": "agent", "children": []any{inner}}
	if diff := cmp.Diff(any(want), tree.member("result", "tree")); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	listed, _ := f.does(t, thread, "state.listCheckpoints", object{}).member("result", "checkpoints").([]any)
	if len(listed) != 3 || listed[2].(object)["step"] != -2.0 {
		t.Fatalf("the checkpoints are %v", listed)
	}
	oldest, _ := listed[1].(object) // after the empty state
	if oldest["step"] != -1.0 || oldest["id"] == "" || oldest["timestamp"] == "" {
		t.Errorf("the oldest checkpoint is %v", oldest)
	}
	forked := f.does(t, thread, "state.fork", object{"checkpoint_id": oldest["id"]})
	if id := forked.string("result", "run_id"); id == first || id == "" || "/threads/"+forked.string("result", "thread_id") != thread {
		t.Errorf("the fork is %s", forked.text)
	}
	f.settle(t, f.path(thread))
	if got := f.does(t, thread, "state.listCheckpoints", object{"limit": 1}); got.member("result", "checkpoints").([]any)[0].(object)["id"] == listed[0].(object)["id"] {
		t.Error("the fork made no checkpoint")
	}
	for code, refusal := range map[string]response{
		"no_such_checkpoint": f.command(t, thread, "state.fork", object{"checkpoint_id": unknownID}),
		"invalid_argument":   f.command(t, thread, "run.start", object{"input": nil}),
		"unknown_command":    f.command(t, thread, "run.panic", object{}),
		"not_supported":      f.command(t, thread, "input.inject", object{}),
		"no_such_run":        f.command(t, "/threads/"+unknownID, "state.get", object{}),
	} {
		wantRefusal(t, refusal, code)
	}
	wantRefusal(t, f.command(t, thread, "run.start", object{"assistant_id": "nobody"}), "invalid_argument")
	wantStatus(t, f.call(t, "POST", thread+"/commands", object{"id": -1, "method": "state.get"}), http.StatusUnprocessableEntity)
	wantStatus(t, f.call(t, "POST", thread+"/stream/events", object{"since": 0}), http.StatusUnprocessableEntity)
}

// TestRunsOfAllEndpointsAreShown checks that the stream of the thread shows runs of all
// endpoints, and that clients which join a started run see it.
func TestRunsOfAllEndpointsAreShown(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": []string{"messages", "lifecycle"}})
	f.finish(t, thread, script(say("m1", "One"), add("model", "m1", "One"), add("model", "m2", "Two")))
	wantLines(t, "the lifecycle", lifecycles(present.runs(t, 1)), "running", "completed")
	id := f.does(t, thread, "run.start", script(say("m3", "Three"), failing("kaboom"))).string("result", "run_id")
	seen := present.runs(t, 1)
	if got := seen[len(seen)-1].String(); got != `lifecycle {"event":"failed","graph_name":"agent","error":"kaboom"}` {
		t.Errorf("the failure is shown as %s", got)
	}
	old := f.follow(t, thread+"/runs/"+id+"/stream", "")
	wantLines(t, "the old stream", names(old), "metadata", "values", "messages", "error")
	third := f.does(t, thread, "run.start", heldAfter("Hel")).string("result", "run_id")
	present.until(t, shows("Hel"))
	f.call(t, "POST", thread+"/runs/"+third+"/cancel", nil)
	wantLines(t, "the lifecycle of a cancelled run", lifecycles(present.runs(t, 1)), "interrupted")
}

package agentserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph"
)

// TestAWebhookMustBeAnAddress checks that the server may call the address; otherwise it
// creates nothing, not even the thread.
func TestAWebhookMustBeAnAddress(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, address := range []string{"/relative", "ftp://hook.test/", "http://10.0.0.1/"} {
		for _, creation := range creations {
			for _, on := range []string{thread, "/threads/" + unknownID} {
				answer := f.call(t, "POST", on+creation, with(with(hi(), "if_not_exists", "create"), "webhook", address))
				if answer.StatusCode != http.StatusBadRequest || !strings.Contains(answer.string("detail"), "webhook") {
					t.Errorf("%s: got %d %s", address, answer.StatusCode, answer.text)
				}
			}
		}
	}
	wantNoRuns(t, f, thread)
	wantStatus(t, f.call(t, "GET", "/threads/"+unknownID, nil), http.StatusNotFound)
}

// TestOptionsThatChangeNothingAreAccepted sends options in the forms that clients use: null,
// empty, the default, and members that the interface does not name.
func TestOptionsThatChangeNothingAreAccepted(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for name, values := range map[string][]any{
		"after_seconds": {nil, 0, 0.01}, "checkpoint": {nil}, "checkpoint_id": {nil}, "multitask_strategy": {nil, "enqueue", "reject", "interrupt", "rollback"},
		"on_disconnect": {nil, "continue", "cancel"}, "webhook": {nil}, "feedback_keys": {nil, []any{}, []any{"liked"}}, "stream_mode": {nil, []any{}}, "if_not_exists": {nil, "reject"},
		"command": {nil}, "config": {nil, object{}}, "context": {nil, object{}}, "metadata": {nil, object{}}, "interrupt_before": {nil}, "interrupt_after": {nil},
		"durability": {nil, "sync", "async", "exit"}, "stream_subgraphs": {nil, false}, "stream_resumable": {nil, true, false}, "checkpoint_during": {nil, true, false}, "input": {nil},
		"another": {1},
	} {
		for _, value := range values {
			answer := f.call(t, "POST", f.newThread(t)+"/runs/wait", with(hi(), name, value))
			if answer.StatusCode != http.StatusOK || answer.member("messages") == nil {
				t.Errorf("%s: %v is answered with %d %s", name, value, answer.StatusCode, answer.text)
			}
		}
	}
}

// TestAThreadThatIsNotThereIsCreatedOrRefused checks that if_not_exists decides, and that the
// default is to refuse.
func TestAThreadThatIsNotThereIsCreatedOrRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for i, creation := range creations {
		thread := fmt.Sprintf("/threads/0197a000-0000-7000-8000-00000000000%d", i)
		for _, refuse := range []any{"reject", nil} {
			wantStatus(t, f.call(t, "POST", thread+creation, with(hi(), "if_not_exists", refuse)), http.StatusNotFound)
		}
		wantStatus(t, f.call(t, "POST", thread+creation, hi()), http.StatusNotFound)
		// A request that is refused for another reason does not create the thread either.
		wantStatus(t, f.call(t, "POST", thread+creation, with(with(hi(), "if_not_exists", "create"), "assistant_id", "nobody")), http.StatusNotFound)
		strict := object{"assistant_id": "agent", "command": object{"resume": "yes"}, "strict_resume": true, "if_not_exists": "create"}
		wantStatus(t, f.call(t, "POST", thread+creation, strict), http.StatusConflict)
		wantStatus(t, f.call(t, "GET", thread, nil), http.StatusNotFound)
		for range 2 { // the second request finds the thread
			answer := f.call(t, "POST", thread+creation, with(hi(), "if_not_exists", "create"))
			wantStatus(t, answer, http.StatusOK)
			wantStatus(t, f.call(t, "GET", answer.Header.Get("Content-Location")+"/join", nil), http.StatusOK)
		}
		if got := len(f.call(t, "GET", thread+"/runs", nil).body.([]any)); got != 2 {
			t.Errorf("%s: the thread has %d runs, want 2", creation, got)
		}
	}
}

// TestInputThatIsNoObjectReachesTheAgentUnchanged checks that such an input also leaves the
// state unchanged.
func TestInputThatIsNoObjectReachesTheAgentUnchanged(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	f := setUp(t, func(_ context.Context, invocation graph.Invocation, _ func(string, any)) error {
		asked <- string(invocation.Input) + " " + string(invocation.State.Values)
		return nil
	})
	thread := f.newThread(t)
	for _, input := range []string{`"text"`, `12345678901234567890`, `0.10`, `[1,{"b":2,"a":1}]`, `true`, `null`} {
		f.start(t, thread, object{"assistant_id": "agent", "input": json.RawMessage(input)})
		if got, want := <-asked, input+" {}"; got != want {
			t.Errorf("the agent got %s, want %s", got, want)
		}
	}
	path := f.finish(t, thread, object{"assistant_id": "agent"})
	if got := <-asked; got != "null {}" {
		t.Errorf("without input the agent got %s", got)
	}
	wantBody(t, f.call(t, "GET", path+"/join", nil), object{})
}

// TestInputThatNoStateCanTakeIsRefused checks that the error names the place where the input
// is wrong.
func TestInputThatNoStateCanTakeIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, messages := range []any{7, []any{object{"content": "by whom?"}}, []any{nil}} {
		for _, creation := range creations {
			answer := f.call(t, "POST", thread+creation, with(hi(), "input", object{"messages": messages}))
			wantStatus(t, answer, http.StatusUnprocessableEntity)
			problems, _ := answer.member("detail").([]any)
			if len(problems) != 1 || !cmp.Equal(any([]any{"body", "input"}), problems[0].(map[string]any)["loc"]) {
				t.Errorf("%v: %s", messages, answer.text)
			}
		}
	}
	wantNoRuns(t, f, thread)
}

// TestAMalformedRequestIsRefusedWhole checks that the error lists everything that is wrong
// with the request.
func TestAMalformedRequestIsRefusedWhole(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, creation := range creations {
		answer := f.call(t, "POST", thread+creation, object{"config": 1, "stream_mode": "all", "multitask_strategy": "wait"})
		wantStatus(t, answer, http.StatusUnprocessableEntity)
		var wrong []any
		problems, _ := answer.member("detail").([]any)
		for _, problem := range problems {
			wrong = append(wrong, problem.(map[string]any)["loc"].([]any)[1])
		}
		for _, want := range []any{"assistant_id", "config", "stream_mode", "multitask_strategy"} {
			if !slices.Contains(wrong, want) {
				t.Errorf("%s does not say what is wrong with %v: %s", creation, want, answer.text)
			}
		}
		wantStatus(t, f.call(t, "POST", thread+creation, "{"), http.StatusUnprocessableEntity)
		wantStatus(t, f.call(t, "POST", "/threads/x"+creation, hi()), http.StatusUnprocessableEntity)
	}
	wantNoRuns(t, f, thread)
}

// TestAThreadHasTheMetadataOfTheRunThatCreatesIt checks that the thread is found by them. The
// metadata of the assistant belong to the run only, and a thread that exists stays as it is.
func TestAThreadHasTheMetadataOfTheRunThatCreatesIt(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	owned := func(user string) object {
		body := with(with(hi(), "if_not_exists", "create"), "metadata", object{"user": user})
		return with(body, "assistant_id", f.assist(t, object{"metadata": object{"team": "x"}}))
	}
	thread := newThreadPath(t)
	f.finish(t, thread, owned("a run"))
	f.finish(t, thread, owned("a later run"))
	f.does(t, "/threads/"+unknownID, "run.start", with(hi(), "metadata", object{"user": "a command"}))
	alone := with(owned("a run of its own"), "on_completion", "keep")
	wantStatus(t, f.call(t, "POST", "/runs/wait", alone), http.StatusOK)
	wantStatus(t, f.call(t, "POST", "/runs/batch", []any{with(alone, "metadata", object{"user": "first"}), with(alone, "metadata", object{"user": "second"})}), http.StatusOK)
	for user, want := range map[string]int{"a run": 1, "a later run": 0, "a command": 1, "a run of its own": 1, "first": 1, "second": 1} {
		if found := idsOf(t, f.call(t, "POST", "/threads/search", object{"metadata": object{"user": user}}), "thread_id"); len(found) != want {
			t.Errorf("%s: found the threads %v, want %d", user, found, want)
		}
	}
	shown := f.call(t, "GET", thread, nil)
	if shown.member("metadata", "team") != nil || shown.string("metadata", "graph_id") != "agent" {
		t.Errorf("the thread's metadata are %v", shown.member("metadata"))
	}
}

package agentserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// held is an agent that says a word and waits until it is released, then answers "Hello".
type held struct {
	reached, release chan struct{}
}

func newHeld() held {
	return held{reached: make(chan struct{}, 100), release: make(chan struct{})}
}

func (h held) answer(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
	emit("messages", chunk("AIMessageChunk", "m", "Hel"))
	h.reached <- struct{}{}
	select {
	case <-h.release:
	case <-ctx.Done():
		return ctx.Err()
	}
	emit("updates", object{"model": object{"messages": []any{message("ai", "m", "Hello")}}})
	return nil
}

// answered returns the values after the scripted agent, or a held agent, said "Hello".
func answered() object {
	return object{"messages": []any{message("human", "hi", "Hi"), message("ai", "m", "Hello")}}
}

func TestWaitAndJoinAnswerTheFinalValues(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		steps []graphtest.Step
		want  object
	}{
		"of an answer":                           {[]graphtest.Step{add("model", "m", "Hello")}, answered()},
		"of no answer":                           {[]graphtest.Step{}, object{"messages": []any{message("human", "hi", "Hi")}}},
		"of given values":                        {[]graphtest.Step{emit("values", object{"a": nil, "b": []any{}})}, object{"a": nil, "b": []any{}}},
		"of a failed run":                        {[]graphtest.Step{add("model", "m", "Hello"), failing("no key")}, object{"__error__": object{"error": "GraphError", "message": "no key"}}},
		"of a broken rule":                       {[]graphtest.Step{emit("values", 7)}, nil},
		"of a run that stops without a question": {[]graphtest.Step{add("model", "m", "Hello"), pausing()}, answered()},
		"of a paused run": {
			[]graphtest.Step{add("model", "m", "Hello"), pausing("z", "b"), pausing("c")},
			with(answered(), "__interrupt__", []any{
				object{"id": "z", "value": "May I z?"}, object{"id": "b", "value": "May I b?"}, object{"id": "c", "value": "May I c?"},
			}),
		},
	}
	f := setUp(t, nil)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waited := f.call(t, "POST", f.newThread(t)+"/runs/wait", script(test.steps...))
			if test.want == nil {
				if got := waited.string("__error__", "error"); got != "InvalidUpdate" {
					t.Errorf("the error is %q: %s", got, waited.text)
				}
			} else {
				wantBody(t, waited, test.want)
			}
			for range 5 {
				wantBody(t, f.call(t, "GET", waited.Header.Get("Location"), nil), waited.body)
			}
		})
	}
}

// TestJoinOfAnEarlierRunAnswersWhatThatOneLeft checks that the answer has the values that the
// earlier run left, not later values.
func TestJoinOfAnEarlierRunAnswersWhatThatOneLeft(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	first := f.finish(t, thread, script(add("model", "m", "Hello")))
	f.finish(t, thread, script(add("model", "n", "More")))
	wantBody(t, f.call(t, "GET", first+"/join", nil), answered())
}

// TestAnInterruptedRunAnswersWhatItHadComeTo checks this for a client that already waited for
// the run, and for a client that asks later.
func TestAnInterruptedRunAnswersWhatItHadComeTo(t *testing.T) {
	t.Parallel()
	agent := newHeld()
	f := setUpImpatient(t, agent.answer, time.Millisecond)
	thread := f.newThread(t)
	waiting := f.open(t.Context(), t, "POST", f.path(thread+"/runs/wait"), hi(), map[string]string{auth.HeaderKey: f.key})
	defer waiting.Body.Close()
	first := waiting.Header.Get("Content-Location")
	partial := eventsUntil(t, f, first, "messages/partial")
	if want := `[{"content":"Hel","id":"m","type":"ai"}]`; partial != want {
		t.Errorf("shown is %s, want %s", partial, want)
	}
	next := object{"assistant_id": "agent", "multitask_strategy": "interrupt"}
	second := f.start(t, thread, next)
	values := object{"messages": []any{message("human", "hi", "Hi"), object{
		"type": "ai", "id": "m", "content": "Hel", "additional_kwargs": object{}, "response_metadata": object{"incomplete": true},
	}}}
	var waited any
	check.Must(t, json.NewDecoder(waiting.Body).Decode(&waited))
	if diff := cmp.Diff(any(values), waited); diff != "" {
		t.Errorf("values of the wait (-want +got):\n%s", diff)
	}
	close(agent.release)
	wantStatus(t, f.call(t, "GET", second+"/join", nil), http.StatusOK)
	wantBody(t, f.call(t, "GET", first+"/join", nil), values)
	if got := f.call(t, "GET", first, nil).string("status"); got != "interrupted" {
		t.Errorf("the first run is %q", got)
	}
}

// eventsUntil follows a run in mode "messages" until it shows an event, and returns its data.
func eventsUntil(t *testing.T, f *fixture, run, name string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := f.open(ctx, t, "GET", f.path(run+"/stream?stream_mode=messages"), nil, map[string]string{auth.HeaderKey: f.key})
	defer answer.Body.Close()
	reader := bufio.NewReader(answer.Body)
	for {
		e, err := nextEvent(reader)
		check.Must(t, err)
		if e.Name == name {
			return e.Data
		}
	}
}

// TestAConnectionThatWaitsIsKeptOpen checks that newlines before the values, and comments
// between events, keep the connection open.
func TestAConnectionThatWaitsIsKeptOpen(t *testing.T) {
	t.Parallel()
	for suffix, keepalive := range map[string]string{"/wait": "\n", "/stream": ": heartbeat\n"} {
		agent := newHeld()
		f := setUpImpatient(t, agent.answer, time.Millisecond)
		// This is far less than three of a server's default intervals.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answer := f.open(ctx, t, "POST", f.path(f.newThread(t)+"/runs"+suffix), hi(), map[string]string{auth.HeaderKey: f.key})
		defer answer.Body.Close()
		reader := bufio.NewReader(answer.Body)
		for kept := 0; kept < 3; {
			line, err := reader.ReadString('\n')
			check.Must(t, err)
			if line == keepalive {
				kept++
			}
		}
		close(agent.release)
		rest, err := io.ReadAll(reader)
		check.Must(t, err)
		if suffix == "/stream" {
			if text := string(rest); !strings.Contains(text, `"content":"Hello"`) {
				t.Errorf("the stream ends with %q", text)
			}
			continue
		}
		var values any
		check.Must(t, json.Unmarshal(rest, &values))
		if diff := cmp.Diff(any(answered()), values); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
	}
}

// TestAnUnknownRunIsNotFoundBeforeAnythingIsSent has a server that keeps its connections open
// from the first moment on.
func TestAnUnknownRunIsNotFoundBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	f := setUpImpatient(t, nil, time.Nanosecond)
	thread := f.newThread(t)
	for range 20 {
		for _, suffix := range []string{"/join", "/stream"} {
			answer := f.call(t, "GET", thread+"/runs/"+unknownID+suffix, nil)
			wantDetail(t, answer, http.StatusNotFound, "Run with ID "+unknownID+" not found.")
		}
		for _, creation := range creations {
			answer := f.call(t, "POST", "/threads/"+unknownID+creation, hi())
			wantDetail(t, answer, http.StatusNotFound, "Thread with ID "+unknownID+" not found.")
		}
	}
}

// TestAClientThatHasGoneEndsTheWaitButNotTheRun checks each way to wait.
func TestAClientThatHasGoneEndsTheWaitButNotTheRun(t *testing.T) {
	t.Parallel()
	agent := newHeld()
	f := setUpImpatient(t, agent.answer, time.Millisecond)
	thread := f.newThread(t)
	run := f.start(t, thread, hi())
	<-agent.reached
	other := f.newThread(t)
	for _, request := range []struct {
		method, path string
		body         any
	}{
		{"GET", run + "/join", nil}, {"GET", run + "/stream", nil}, {"POST", other + "/runs/wait", hi()}, {"POST", other + "/runs/stream", hi()},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		answer := f.open(ctx, t, request.method, f.path(request.path), request.body, map[string]string{auth.HeaderKey: f.key})
		cancel()
		for path := range f.served { // while the run goes on
			if path == f.path(request.path) {
				break
			}
		}
		answer.Body.Close()
	}
	for _, run := range f.call(t, "GET", other+"/runs", nil).body.([]any) {
		if status := run.(map[string]any)["status"]; status != "running" && status != "pending" {
			t.Errorf("a run that nobody waits for is %v", status)
		}
	}
	close(agent.release)
	wantBody(t, f.call(t, "GET", run+"/join", nil), answered())
	for _, run := range f.call(t, "GET", other+"/runs", nil).body.([]any) {
		path := other + "/runs/" + run.(map[string]any)["run_id"].(string)
		f.call(t, "GET", path+"/join", nil)
		if got := f.call(t, "GET", path, nil).string("status"); got != "success" {
			t.Errorf("a run that nobody waits for is %q", got)
		}
	}
}

// TestAWaitEndsWithWhatRemovedTheRun has clients wait for a run and join it, while the run is
// rolled back, or its thread is deleted.
func TestAWaitEndsWithWhatRemovedTheRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, path string
		want         object
	}{
		"a rollback": {"POST", "/cancel?action=rollback", object{"error": "RolledBack", "message": "The run was rolled back."}},
		"a deletion": {"DELETE", "", object{"error": "ThreadDeleted", "message": "The thread was deleted."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUpImpatient(t, nil, time.Millisecond)
			thread := f.newThread(t)
			key := map[string]string{auth.HeaderKey: f.key}
			waiting := f.open(t.Context(), t, "POST", f.path(thread+"/runs/wait"), with(hi(), "after_seconds", 3600), key)
			run := waiting.Header.Get("Content-Location")
			joining := f.open(t.Context(), t, "GET", f.path(run+"/join"), nil, key)
			removed := thread
			if test.path != "" {
				removed = run + test.path
			}
			f.call(t, test.method, removed, nil)
			for _, answer := range []*http.Response{waiting, joining} {
				var got any
				check.Must(t, json.NewDecoder(answer.Body).Decode(&got))
				check.Must(t, answer.Body.Close())
				if diff := cmp.Diff(any(object{"__error__": test.want}), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", answer.Request.URL.Path, diff)
				}
			}
		})
	}
}

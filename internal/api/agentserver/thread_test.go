package agentserver_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// wantThread checks the status, the error and the questions that a thread shows, when a client
// reads it and when a client creates it again.
func wantThread(t *testing.T, f *fixture, thread, status string, failure, interrupts any) {
	t.Helper()
	read := f.call(t, "GET", thread, nil)
	wantStatus(t, read, http.StatusOK)
	want := []any{status, failure, interrupts}
	if diff := cmp.Diff(want, []any{read.member("status"), read.member("error"), read.member("interrupts")}); diff != "" {
		t.Errorf("status, error, interrupts (-want +got):\n%s", diff)
	}
	again := f.call(t, "POST", "/threads", object{
		"thread_id": strings.TrimPrefix(thread, "/threads/"), "if_exists": "do_nothing", "metadata": object{"ignored": true},
	})
	wantBody(t, again, read.body)
}

func TestAThreadShowsHowItsLastRunEnded(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	wantThread(t, f, thread, "idle", nil, object{})

	f.finish(t, thread, script(add("model", "m", "Hello"), failing("no key")))
	wantThread(t, f, thread, "error", object{"error": "GraphError", "message": "no key"}, object{})

	f.finish(t, thread, script(pausing("z", "b"), pausing("a")))
	question := func(id string) object { return object{"id": id, "value": "May I " + id + "?"} }
	wantThread(t, f, thread, "interrupted", nil, object{
		"a": []any{question("a")}, "b": []any{question("b")}, "z": []any{question("z")},
	})
	for range 10 {
		state := f.call(t, "GET", thread+"/state", nil)
		if diff := cmp.Diff(any([]any{question("z"), question("b"), question("a")}), state.member("interrupts")); diff != "" {
			t.Fatalf("interrupts of the state (-want +got):\n%s", diff)
		}
	}
	if got := f.call(t, "GET", thread+"/runs?limit=1", nil).body.([]any)[0].(map[string]any)["status"]; got != "success" {
		t.Errorf("the run that paused is %v", got)
	}

	f.finish(t, thread, object{"assistant_id": "agent", "command": object{"resume": true}})
	wantThread(t, f, thread, "idle", nil, object{})
}

// TestAThreadIsBusyWhileItHasRuns checks this also when one run has ended and the next run
// continues.
func TestAThreadIsBusyWhileItHasRuns(t *testing.T) {
	t.Parallel()
	agent := newHeld()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	first, second := f.start(t, thread, hi()), f.start(t, thread, with(hi(), "multitask_strategy", "enqueue"))
	<-agent.reached
	wantThread(t, f, thread, "busy", nil, object{})
	if diff := cmp.Diff([]string{"running", "pending"}, []string{f.call(t, "GET", first, nil).string("status"), f.call(t, "GET", second, nil).string("status")}); diff != "" {
		t.Errorf("the runs (-want +got):\n%s", diff)
	}
	refused := f.call(t, "POST", thread+"/runs", with(hi(), "multitask_strategy", "reject"))
	wantStatus(t, refused, http.StatusConflict)
	agent.release <- struct{}{}
	wantStatus(t, f.call(t, "GET", first+"/join", nil), http.StatusOK)
	<-agent.reached
	wantThread(t, f, thread, "busy", nil, object{})
	agent.release <- struct{}{}
	wantStatus(t, f.call(t, "GET", second+"/join", nil), http.StatusOK)
	wantThread(t, f, thread, "idle", nil, object{})
	if got := len(f.call(t, "GET", thread+"/runs", nil).body.([]any)); got != 2 {
		t.Errorf("there are %d runs, want 2", got)
	}
}

// TestAThreadThatExistsIsRefusedOrKept checks that if_exists decides, and that the default is
// to refuse.
func TestAThreadThatExistsIsRefusedOrKept(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	const given = "0197A000-0000-7000-8000-00000000BEEF"
	thread := "/threads/" + strings.ToLower(given)
	body := object{"thread_id": given, "metadata": object{"a": 1}}
	created := f.call(t, "POST", "/threads", body)
	wantStatus(t, created, http.StatusOK)
	wantBody(t, f.call(t, "GET", thread, nil), created.body)
	for _, refuse := range []any{"raise", nil} {
		answer := f.call(t, "POST", "/threads", object{"thread_id": given, "metadata": object{"b": 2}, "if_exists": refuse})
		wantDetail(t, answer, http.StatusConflict, "Thread with ID "+strings.ToLower(given)+" already exists.")
	}
	wantDetail(t, f.call(t, "POST", "/threads", body), http.StatusConflict, "Thread with ID "+strings.ToLower(given)+" already exists.")
	kept := f.call(t, "POST", "/threads", with(body, "if_exists", "do_nothing"))
	wantBody(t, kept, created.body)

	f.finish(t, thread, script(add("model", "m", "Hello")))
	kept = f.call(t, "POST", "/threads", with(body, "if_exists", "do_nothing"))
	wantBody(t, kept, f.call(t, "GET", thread, nil).body)
	if diff := cmp.Diff(any(answered()), kept.member("values")); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	wantStatus(t, f.call(t, "POST", "/threads", object{"thread_id": "x"}), http.StatusUnprocessableEntity)
}

// TestQuestionsThatAreNone checks that invalid questions which were stored nevertheless are
// left out, and that no search fails because of them.
func TestQuestionsThatAreNone(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	path := f.newThread(t)
	f.finish(t, path, script(pausing("a")))
	key := keys.Thread(f.deployment.Workspace, f.deployment.Deployment, strings.TrimPrefix(path, "/threads/"))
	item, err := f.table.Get(t.Context(), key)
	check.Must(t, err)
	body := bytes.Replace(item.Body, []byte(`"interrupts":{`), []byte(`"interrupts":{"t":["sure?"],`), 1)
	if bytes.Equal(body, item.Body) {
		t.Fatalf("the thread is stored as %s", item.Body)
	}
	check.Must(t, f.table.Transact(t.Context(), table.Update{Key: key, Body: body}))
	want := object{"a": []any{object{"id": "a", "value": "May I a?"}}, "t": []any{}}
	wantThread(t, f, path, "interrupted", nil, want)
	found := f.call(t, "POST", "/threads/search", object{})
	wantStatus(t, found, http.StatusOK)
	if diff := cmp.Diff(any(want), found.body.([]any)[0].(map[string]any)["interrupts"]); diff != "" {
		t.Errorf("interrupts of the thread that is found (-want +got):\n%s", diff)
	}
}

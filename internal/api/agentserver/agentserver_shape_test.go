package agentserver_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/id"
)

// timestamp is the form in which the interface writes a time.
var timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// times checks members that are times and returns them.
func times(t *testing.T, r response, names ...string) []any {
	t.Helper()
	var found []any
	for _, name := range names {
		if !timestamp.MatchString(r.string(name)) {
			t.Errorf("%s is %v, want a time in UTC with six digits", name, r.member(name))
		}
		found = append(found, r.member(name))
	}
	return found
}

func wantBody(t *testing.T, r response, want any) {
	t.Helper()
	wantStatus(t, r, http.StatusOK)
	if diff := cmp.Diff(want, r.body); diff != "" {
		t.Errorf("%s %s (-want +got):\n%s", r.Request.Method, r.Request.URL.Path, diff)
	}
}

func TestANewThreadIsShownWhole(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	created := f.call(t, "POST", "/threads", object{"metadata": object{"user": "ann", "n": 1}})
	at := times(t, created, "created_at", "updated_at")
	threadID := created.string("thread_id")
	if !id.Valid(threadID) || at[0] != at[1] {
		t.Errorf("created %s", created.text)
	}
	wantBody(t, created, object{
		"thread_id": threadID, "status": "idle", "metadata": object{"user": "ann", "n": 1.0}, "config": object{}, "values": nil,
		"interrupts": object{}, "error": nil, "state_updated_at": nil, "created_at": at[0], "updated_at": at[0],
	})
	wantBody(t, f.call(t, "GET", "/threads/"+threadID, nil), created.body)
	wantBody(t, f.call(t, "GET", "/threads/"+threadID+"/state", nil), object{
		"values": object{}, "next": []any{}, "checkpoint": nil, "parent_checkpoint": nil, "metadata": object{}, "created_at": nil,
		"checkpoint_id": nil, "parent_checkpoint_id": nil, "tasks": []any{}, "interrupts": []any{},
	})
	wantBody(t, f.call(t, "GET", "/threads/"+threadID+"/runs", nil), []any{})
}

// TestAThreadIsCreatedFromNothing sends no body, an empty body and a body of nulls.
func TestAThreadIsCreatedFromNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for name, body := range map[string]any{
		"no body": nil, "empty": object{}, "nulls": object{"thread_id": nil, "metadata": nil, "if_exists": nil},
	} {
		created := f.call(t, "POST", "/threads", body)
		wantStatus(t, created, http.StatusOK)
		if diff := cmp.Diff(any(object{}), created.member("metadata")); diff != "" {
			t.Errorf("%s: metadata (-want +got):\n%s", name, diff)
		}
	}
}

func TestANewRunIsShownWhole(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	created := f.call(t, "POST", thread+"/runs", object{
		"assistant_id": "weather", "input": object{"n": 1, "text": "<&>"}, "command": object{"resume": true}, "metadata": object{"user": "ann"},
		"config": object{"tags": []any{"a"}, "configurable": object{"k": 1}}, "context": object{"c": nil}, "stream_mode": []any{"updates", "custom"},
		"interrupt_before": "*", "interrupt_after": []any{"tools"}, "multitask_strategy": "reject",
	})
	at := times(t, created, "created_at", "updated_at")
	runID := created.string("run_id")
	wantBody(t, created, object{
		"run_id": runID, "thread_id": strings.TrimPrefix(thread, "/threads/"), "assistant_id": "5fb44052-6611-57fc-99b4-527b0d62f788",
		"status": "pending", "metadata": object{"user": "ann", "graph_id": "weather", "assistant_id": "5fb44052-6611-57fc-99b4-527b0d62f788"}, "multitask_strategy": "reject", "cancel_reason": nil, "created_at": at[0], "updated_at": at[0],
		"kwargs": object{
			"input": object{"n": 1.0, "text": "<&>"}, "command": object{"resume": true},
			"config": object{"tags": []any{"a"}, "configurable": object{"k": 1.0}}, "context": object{"c": nil},
			"stream_mode": []any{"updates", "custom"}, "interrupt_before": "*", "interrupt_after": []any{"tools"},
			"subgraphs": false, "temporary": false, "feedback_keys": nil, "webhook": nil,
		},
	})
	if got, want := created.Header.Get("Content-Location"), thread+"/runs/"+runID; got != want {
		t.Errorf("Content-Location is %q, want %q", got, want)
	}
	if got := created.Header.Get("Location"); got != "" {
		t.Errorf("Location is %q, but there is nothing to take up again", got)
	}
}

// TestAFinishedRunIsShownWhole creates the smallest possible run, and reads it by its id and
// in a list, and the thread that it leaves.
func TestAFinishedRunIsShownWhole(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	path := f.finish(t, thread, hi())
	threadID, runID := strings.TrimPrefix(thread, "/threads/"), path[strings.LastIndexByte(path, '/')+1:]
	got := f.call(t, "GET", path, nil)
	at := times(t, got, "created_at", "updated_at")
	if at[0].(string) >= at[1].(string) {
		t.Errorf("it was updated at %v, created at %v", at[1], at[0])
	}
	wantBody(t, got, object{
		"run_id": runID, "thread_id": threadID, "assistant_id": agentID, "status": "success", "metadata": object{"graph_id": "agent", "assistant_id": agentID},
		"multitask_strategy": "enqueue", "created_at": at[0], "updated_at": at[1], "cancel_reason": nil,
		"kwargs": object{
			"input": hi()["input"], "command": nil, "config": object{}, "context": object{}, "stream_mode": []any{"values"},
			"interrupt_before": nil, "interrupt_after": nil, "subgraphs": false, "temporary": false, "feedback_keys": nil, "webhook": nil,
		},
	})
	wantBody(t, f.call(t, "GET", thread+"/runs", nil), []any{got.body})
	wantBody(t, f.call(t, "GET", "/threads/"+strings.ToUpper(threadID)+"/runs/"+strings.ToUpper(runID), nil), got.body)
	wantStateOf(t, f, thread, runID)
}

func wantStateOf(t *testing.T, f *fixture, thread, runID string) {
	t.Helper()
	threadID := strings.TrimPrefix(thread, "/threads/")
	values := object{"messages": []any{message("human", "hi", "Hi"), message("ai", runID+"-1", "ok")}}
	state := f.call(t, "GET", thread+"/state", nil)
	at := times(t, state, "created_at")[0]
	checkpointID, parentID := state.string("checkpoint", "checkpoint_id"), state.string("parent_checkpoint", "checkpoint_id")
	if !id.Valid(checkpointID) || !id.Valid(parentID) || checkpointID == parentID {
		t.Errorf("checkpoint %q follows %q", checkpointID, parentID)
	}
	checkpoint := func(id string) object {
		return object{"thread_id": threadID, "checkpoint_ns": "", "checkpoint_id": id, "checkpoint_map": nil}
	}
	wantBody(t, state, object{
		"values": values, "next": []any{}, "tasks": []any{}, "interrupts": []any{}, "created_at": at,
		"checkpoint": checkpoint(checkpointID), "parent_checkpoint": checkpoint(parentID),
		"checkpoint_id": checkpointID, "parent_checkpoint_id": parentID,
		"metadata": object{
			"step": state.member("metadata", "step"), "source": "loop", "run_id": runID, "thread_id": threadID,
			"parents": object{}, "graph_id": "agent", "assistant_id": agentID,
		},
	})
	if _, is := state.member("metadata", "step").(float64); !is {
		t.Errorf("the step is %v", state.member("metadata", "step"))
	}
	read := f.call(t, "GET", thread, nil)
	times(t, read, "created_at", "updated_at", "state_updated_at")
	wantBody(t, read, object{
		"thread_id": threadID, "status": "idle", "metadata": object{"graph_id": "agent", "assistant_id": agentID}, "config": object{"configurable": object{}}, "values": values, "interrupts": object{},
		"error": nil, "state_updated_at": at, "created_at": read.member("created_at"), "updated_at": read.member("updated_at"),
	})
}

// TestRunsAreListedNewestFirstByPageAndStatus lists twelve runs, two of which failed.
func TestRunsAreListedNewestFirstByPageAndStatus(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	var all, failed []string
	for i := range 12 {
		body := hi()
		if i == 3 || i == 7 {
			body = script(failing("no"))
		}
		path := f.finish(t, thread, body)
		run := path[strings.LastIndexByte(path, '/')+1:]
		all = append([]string{run}, all...)
		if i == 3 || i == 7 {
			failed = append([]string{run}, failed...)
		}
	}
	for query, want := range map[string][]string{
		"":                             all[:10],
		"?limit=1000":                  all,
		"?limit=3&offset=5":            all[5:8],
		"?offset=11":                   all[11:],
		"?offset=12":                   {},
		"?status=error":                failed,
		"?status=error&limit=1":        failed[:1],
		"?status=error&offset=1":       failed[1:],
		"?status=pending":              {},
		"?status=success&limit=2":      {all[0], all[1]},
		"?select=run_id&unknown=1&a=b": all[:10],
	} {
		answer := f.call(t, "GET", thread+"/runs"+query, nil)
		wantStatus(t, answer, http.StatusOK)
		got := []string{}
		for _, run := range answer.body.([]any) {
			got = append(got, run.(map[string]any)["run_id"].(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "offset=-1", "status=done"} {
		wantStatus(t, f.call(t, "GET", thread+"/runs?"+query, nil), http.StatusUnprocessableEntity)
	}
}

func TestInfoTellsTheServerAndTheRevision(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, nil, 0)
	revisionID := f.deploy(t, "agent")
	wantBody(t, f.call(t, "GET", "/info", nil), object{
		"version": version, "flags": object{"assistants": true, "crons": true, "metrics": true, "store": true, "strict_resume": true, "thread_streaming": true, "thread_streaming_websocket": true}, "metadata": object{"deployment_id": f.deployment.Deployment, "revision_id": revisionID},
	})
}

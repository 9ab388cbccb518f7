package agentserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestABranchBeginsBeforeTheFirstMessage has an agent that keeps no checkpoints. Pages need
// this when a person edits the first message: that message follows the empty state, which is the
// oldest of the history, because older pages show nothing of a thread whose history lacks a parent.
func TestABranchBeginsBeforeTheFirstMessage(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f.finish(t, thread, plan("one"))
	f.finish(t, thread, plan("two"))
	before := f.history(t, thread)
	root := before[len(before)-1]["checkpoint"]
	wantRoot(t, f, thread, before)
	f.finish(t, thread, with(plan("three"), "checkpoint", root))
	f.wantState(t, thread, "three ok <nil>")
	wantStatus(t, f.call(t, "POST", thread+"/state", object{"values": object{"x": 1}, "checkpoint": root}), http.StatusOK)
	if values := f.call(t, "GET", thread+"/state", nil).member("values"); !cmp.Equal(values, any(object{"x": 1.0})) {
		t.Errorf("after an update there the values are %v", values)
	}
	after := f.history(t, thread)
	for i, want := range map[int]any{0: root, len(after) - len(before) - 1: root, len(after) - 2: root, len(after) - 1: nil} {
		if diff := cmp.Diff(want, after[i]["parent_checkpoint"]); diff != "" {
			t.Errorf("what state %d of %d follows (-want +got):\n%s", i, len(after), diff)
		}
	}
	if got := f.call(t, "POST", thread+"/history", object{"before": root}); string(got.text) != "[]" {
		t.Errorf("before the first there is %s", got.text)
	}
	wantStatus(t, f.call(t, "POST", f.newThread(t)+"/runs", with(hi(), "checkpoint_id", root.(object)["checkpoint_id"])), http.StatusNotFound)
}

// wantRoot checks that the oldest of a history is the empty state, in each way to read it, and
// that the history has the parent of each other state.
func wantRoot(t *testing.T, f *fixture, thread string, history []map[string]any) {
	t.Helper()
	n := len(history) - 1
	root := history[n]
	want := map[string]any{
		"values": object{}, "next": []any{}, "tasks": []any{}, "interrupts": []any{}, "checkpoint": history[n-1]["parent_checkpoint"], "parent_checkpoint": nil,
		"checkpoint_id": history[n-1]["parent_checkpoint_id"], "parent_checkpoint_id": nil,
		"created_at": f.call(t, "GET", thread, nil).member("created_at"),
		"metadata":   object{"step": -2.0, "thread_id": strings.TrimPrefix(thread, "/threads/"), "parents": object{}},
	}
	if diff := cmp.Diff(want, root); diff != "" {
		t.Errorf("the oldest state (-want +got):\n%s", diff)
	}
	wantBody(t, f.call(t, "GET", thread+"/state/"+idOf(root, "checkpoint"), nil), any(root))
	wantBody(t, f.call(t, "POST", thread+"/state/checkpoint", object{"checkpoint": root["checkpoint"]}), any(root))
	wantBody(t, f.call(t, "POST", thread+"/history", object{"checkpoint": root["checkpoint"]}), []any{any(root)})
	wantBody(t, f.call(t, "POST", thread+"/history", object{"before": history[n-1]["checkpoint"]}), []any{any(root)})
	wantBody(t, f.call(t, "POST", thread+"/history", object{"limit": 2, "before": history[n-2]["checkpoint"]}), []any{any(history[n-1]), any(root)})
	wantBody(t, f.call(t, "POST", thread+"/history", object{"limit": 1, "before": history[n-2]["checkpoint"]}), []any{any(history[n-1])})
	known := map[string]bool{}
	for _, state := range slices.Backward(history) {
		if parent := idOf(state, "parent_checkpoint"); parent != "" && !known[parent] {
			t.Errorf("the history lacks %s, the parent of %v", parent, lines([]map[string]any{state}))
		}
		known[idOf(state, "checkpoint")] = true
	}
}

package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// TestAThreadShowsTheConfigurationOfItsRuns checks what a thread keeps of the configuration of its
// runs: no secrets, no address of one run, and nothing that is large.
func TestAThreadShowsTheConfigurationOfItsRuns(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	want := func(config any) {
		t.Helper()
		got := f.call(t, "GET", thread, nil)
		wantStatus(t, got, http.StatusOK)
		if diff := cmp.Diff(config, got.member("config")); diff != "" {
			t.Errorf("config (-want +got):\n%s", diff)
		}
		found := f.call(t, "POST", "/threads/search", object{"ids": []string{thread[len("/threads/"):]}})
		wantStatus(t, found, http.StatusOK)
		if diff := cmp.Diff(config, found.body.([]any)[0].(map[string]any)["config"]); diff != "" {
			t.Errorf("config in a search (-want +got):\n%s", diff)
		}
	}
	run := func(config object) {
		t.Helper()
		f.finish(t, thread, with(object{"assistant_id": "agent", "input": object{}}, "config", config))
	}
	want(object{})
	run(object{})
	want(object{"configurable": object{}})
	run(object{
		"recursion_limit": 30, "tags": []any{"a"}, "metadata": object{"by": "me", "api_key": "s"},
		"configurable": object{"style": "short", "OPENAI_API_KEY": "s", "accessToken": "s", "__own": "s", "models": []any{object{"name": "m", "api_key": "s"}}},
	})
	kept := object{"recursion_limit": 30.0, "tags": []any{"a"}, "metadata": object{"by": "me"}, "configurable": object{"style": "short", "models": []any{object{"name": "m"}}}}
	want(kept)
	run(object{"configurable": object{"place": "Rome", "style": "long"}})
	kept["configurable"] = object{"place": "Rome", "style": "long", "models": []any{object{"name": "m"}}}
	want(kept)
	run(nil)
	want(kept)
	run(object{"configurable": object{"style": strings.Repeat("x", 9<<10)}})
	want(kept)
	copied := f.call(t, "POST", thread+"/copy", nil)
	wantStatus(t, copied, http.StatusOK)
	if diff := cmp.Diff(any(object{}), copied.member("config")); diff != "" {
		t.Errorf("config of a copy (-want +got):\n%s", diff)
	}
}

// TestARunInABusyThreadLeavesItsConfiguration checks that a thread shows the configuration of the
// runs that it was free for: neither a run that waits nor a run that supersedes it changes
// the configuration.
func TestARunInABusyThreadLeavesItsConfiguration(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	for _, strategy := range []string{"enqueue", "interrupt", "rollback"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			thread := f.newThread(t)
			tagged := func(text string, node graphtest.Node) object {
				body := plan(text, node)
				body["config"].(object)["tags"] = []any{text}
				return body
			}
			wantTag := func(text string) {
				t.Helper()
				config, _ := f.call(t, "GET", thread, nil).member("config").(map[string]any)
				if diff := cmp.Diff(any([]any{text}), config["tags"]); diff != "" {
					t.Errorf("the tags of the configuration (-want +got):\n%s", diff)
				}
			}
			first := f.start(t, thread, tagged("first", graphtest.Node{Name: "model", Say: "A", HoldAfter: "update"}))
			f.await(t, first, "updates")
			second := f.start(t, thread, with(tagged("second", says("model", "B")), "multitask_strategy", strategy))
			wantTag("first")
			if strategy == "enqueue" {
				f.call(t, "POST", first+"/cancel?wait=true", nil)
			}
			wantStatus(t, f.call(t, "GET", second+"/join", nil), http.StatusOK)
			wantTag("first")
			f.finish(t, thread, tagged("third", says("model", "C")))
			wantTag("third")
		})
	}
}

// TestAThreadNamesTheAssistantOfItsLastRun checks the metadata of a thread that two assistants use,
// and of their runs: a run that had to wait for the thread does not change the thread's metadata.
func TestAThreadNamesTheAssistantOfItsLastRun(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	first, second := f.assist(t, object{}), f.assist(t, object{})
	thread := "/threads/" + f.call(t, "POST", "/threads", object{"metadata": object{"note": "x", "graph_id": "mine", "assistant_id": "mine"}}).string("thread_id")
	wantNames := func(at, graph, assistant string) {
		t.Helper()
		want := any(object{"note": "x", "graph_id": graph, "assistant_id": assistant})
		if diff := cmp.Diff(want, f.call(t, "GET", at, nil).member("metadata")); diff != "" {
			t.Errorf("metadata of %s (-want +got):\n%s", at, diff)
		}
	}
	by := func(assistant string, node graphtest.Node) object {
		return with(plan("a text", node), "assistant_id", assistant)
	}
	wantNames(thread, "mine", "mine")
	for _, assistant := range []string{first, second} {
		run := f.finish(t, thread, by(assistant, says("model", "A")))
		wantNames(thread, "agent", assistant)
		wantNames(run, "agent", assistant)
	}
	holds := f.start(t, thread, by(first, graphtest.Node{Name: "model", Say: "A", HoldAfter: "update"}))
	f.await(t, holds, "updates")
	waits := f.start(t, thread, with(by(second, says("model", "B")), "multitask_strategy", "enqueue"))
	f.call(t, "POST", holds+"/cancel?wait=true", nil)
	wantStatus(t, f.call(t, "GET", waits+"/join", nil), http.StatusOK)
	wantNames(waits, "agent", second)
	wantNames(thread, "agent", first)
}

package agentserver_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestHandlersFindTheMembersThatTheFrameworkHandsOver checks that the value of an access has the
// members that a request leaves out.
func TestHandlersFindTheMembersThatTheFrameworkHandsOver(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	thread := f.newThread(t)
	for _, c := range []struct {
		method, path string
		body         any
		access       string
		want         []string
	}{
		{"POST", "/threads", object{}, "threads:create", []string{"if_exists", "metadata"}},
		{"POST", "/threads/search", object{}, "threads:search", []string{"limit", "metadata", "offset", "status", "values"}},
		{"GET", thread + "/runs", nil, "threads:read", []string{"thread_id"}},
		{"POST", "/runs", hi(), "threads:create_run", []string{
			"after_seconds", "assistant_id", "if_not_exists", "kwargs", "metadata", "multitask_strategy", "prevent_insert_if_inflight", "run_id", "status", "thread_id",
		}},
		{"POST", "/assistants", object{"graph_id": "agent"}, "assistants:create", []string{"config", "context", "graph_id", "metadata", "name"}},
		{"POST", "/assistants/search", object{}, "assistants:search", []string{"graph_id", "limit", "metadata", "offset"}},
		{"POST", "/runs/crons", with(hi(), "schedule", "0 0 1 1 *"), "crons:create", []string{"end_time", "metadata", "payload", "schedule", "thread_id"}},
		{"POST", "/runs/crons/search", object{}, "crons:search", []string{"assistant_id", "limit", "metadata", "offset", "thread_id"}},
		{"PUT", "/store/items", object{"namespace": []string{"n"}, "key": "k", "value": object{}}, "store:put", []string{"index", "key", "namespace", "ttl", "value"}},
		{"GET", "/store/items?key=k&namespace=n", nil, "store:get", []string{"key", "namespace", "refresh_ttl"}},
		{"POST", "/store/items/search", object{"namespace_prefix": []string{}}, "store:search", []string{"filter", "limit", "namespace", "offset", "query", "refresh_ttl"}},
		{"POST", "/store/namespaces", object{}, "store:list_namespaces", []string{"limit", "max_depth", "namespace", "offset", "suffix"}},
	} {
		if got := f.call(t, c.method, c.path, c.body); got.StatusCode >= 300 {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.StatusCode, got.text)
		}
		var value map[string]json.RawMessage
		check.Must(t, json.Unmarshal(g.lastValue(c.access), &value))
		if names := slices.Sorted(maps.Keys(value)); !slices.Equal(names, c.want) {
			t.Errorf("%s %s: the value has %q, want %q", c.method, c.path, names, c.want)
		}
	}
}

// TestHandlersMayConfigureRuns checks that a handler finds the member configurable in a run's
// configuration, and that its changes count.
func TestHandlersMayConfigureRuns(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	var value struct {
		Kwargs struct {
			Config map[string]json.RawMessage
		}
	}
	f.call(t, "POST", "/runs", with(hi(), "config", object{"tags": []string{"one"}}))
	check.Must(t, json.Unmarshal(g.lastValue("threads:create_run"), &value))
	if string(value.Kwargs.Config["configurable"]) != "{}" || string(value.Kwargs.Config["tags"]) != `["one"]` {
		t.Errorf("the handler sees %s", g.lastValue("threads:create_run"))
	}
	g.answer(`{"allowed": true, "value": {"assistant_id": "agent", "kwargs": {"config": {"configurable": {"style": "short"}}}}}`)
	made := f.call(t, "POST", "/runs", hi())
	g.answer("")
	if made.string("kwargs", "config", "configurable", "style") != "short" {
		t.Errorf("the run is %s", made.text)
	}
}

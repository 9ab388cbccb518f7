package agentserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// nested is a Keeper whose tasks name the subgraphs that they run, as frameworks do. Each
// subgraph makes two checkpoints.
func nested(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
	return graphtest.Keeper(ctx, invocation, func(event string, data any) {
		c, ok := data.(graph.Checkpoint)
		switch {
		case ok && c.NS == "":
			var tasks []map[string]any
			if err := json.Unmarshal(c.Tasks, &tasks); err != nil {
				panic(err)
			}
			for _, task := range tasks {
				task["checkpoint"] = object{"checkpoint_ns": fmt.Sprint(task["name"], ":", task["id"])}
			}
			c.Tasks = marshal(tasks)
			data = c
		case ok:
			first := c
			first.ID, first.Values, first.Metadata = "first-"+c.ID, marshal(object{"inner": ""}), marshal(object{"source": "input"})
			emit(event, first)
			emit(event, first) // sent again, as when one of its tasks has paused
			c.ParentID = first.ID
			data = c
		}
		emit(event, data)
	})
}

func marshal(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// inner shows states of subgraphs as "checkpoint value".
func inner(states []map[string]any) []string {
	out := []string{}
	for _, s := range states {
		out = append(out, fmt.Sprint(idOf(s, "checkpoint"), " ", s["values"].(object)["inner"]))
	}
	return out
}

// TestASubgraphIsFoundWhenTheGraphHasMovedOn finds a subgraph by its namespace alone, by the
// checkpoint that a task of an older state names, and by each of its own checkpoints.
func TestASubgraphIsFoundWhenTheGraphHasMovedOn(t *testing.T) {
	t.Parallel()
	f := setUpAt(t, graphtest.Start(t, nested), 0)
	f.deploy(t, "agent")
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", graphtest.Node{Name: "model", Say: "A", Sub: true}, says("tools", "B")))
	f.finish(t, thread, plan("two", says("tools", "C"), graphtest.Node{Name: "model", Say: "D", Sub: true}, says("last", "E")))
	var tasks []object
	for _, state := range f.history(t, thread) {
		for _, task := range state["tasks"].([]any) {
			if of := task.(object); of["name"] == "model" {
				if diff := cmp.Diff(any(object{"": idOf(state, "checkpoint")}), of["checkpoint"].(object)["checkpoint_map"]); diff != "" {
					t.Errorf("the map of a task's checkpoint (-want +got):\n%s", diff)
				}
				tasks = append(tasks, of["checkpoint"].(object))
			}
		}
	}
	if len(tasks) != 2 {
		t.Fatalf("the history has the tasks %v", tasks)
	}
	for i, said := range []string{"D", "A"} {
		ns := object{"checkpoint_ns": tasks[i]["checkpoint_ns"]}
		at := func(checkpoint object) response {
			return f.call(t, "POST", thread+"/state/checkpoint", object{"checkpoint": checkpoint})
		}
		byTask, byNamespace := at(tasks[i]), at(ns)
		wantStatus(t, byTask, http.StatusOK)
		if got := byTask.string("values", "inner"); got != said {
			t.Errorf("a task's checkpoint is that of the state %s, want %s", byTask.text, said)
		}
		wantBody(t, byNamespace, byTask.body)
		states := statesOf(t, f.call(t, "POST", thread+"/history", object{"checkpoint": ns, "limit": 10}))
		id := byTask.string("checkpoint", "checkpoint_id")
		if diff := cmp.Diff([]string{id + " " + said, "first-" + id + " "}, inner(states)); diff != "" {
			t.Fatalf("history of %s (-want +got):\n%s", ns, diff)
		}
		wantBody(t, f.call(t, "POST", thread+"/history", object{"checkpoint": ns, "limit": 1}), []any{byTask.body})
		wantBody(t, f.call(t, "POST", thread+"/history", object{"checkpoint": ns, "before": id}), []any{any(states[1])})
		wantBody(t, f.call(t, "POST", thread+"/history", object{"checkpoint": ns, "metadata": object{"source": "input"}}), []any{any(states[1])})
		for _, state := range states { // by its own checkpoint, also without the map
			wantBody(t, at(state["checkpoint"].(object)), any(state))
			wantBody(t, at(with(ns, "checkpoint_id", idOf(state, "checkpoint"))), any(state))
			wantBody(t, f.call(t, "POST", thread+"/history", object{"checkpoint": state["checkpoint"]}), []any{any(state)})
		}
		wantBody(t, at(states[0]["parent_checkpoint"].(object)), any(states[1]))
		if states[0]["checkpoint_id"] != id || states[0]["parent_checkpoint_id"] != "first-"+id || states[1]["parent_checkpoint_id"] != nil {
			t.Errorf("the ids for clients that read only ids: %v", states)
		}
		if states[1]["parent_checkpoint"] != nil {
			t.Errorf("the first has the parent %v", states[1]["parent_checkpoint"])
		}
	}
	unknown := object{"checkpoint_ns": "model:none"}
	wantBody(t, f.call(t, "POST", thread+"/history", object{"checkpoint": unknown}), []any{})
	wantDetail(t, f.call(t, "POST", thread+"/state/checkpoint", object{"checkpoint": unknown}), http.StatusNotFound, "There is no checkpoint of the subgraph model:none there.")
	other := with(tasks[0], "checkpoint_map", tasks[1]["checkpoint_map"])
	wantBody(t, f.call(t, "POST", thread+"/history", object{"checkpoint": other}), []any{})
	wantStatus(t, f.call(t, "POST", "/threads/"+unknownID+"/history", object{"checkpoint": unknown}), http.StatusNotFound)
}

// TestSubgraphsAreShownToWhoAsks checks that requests for subgraphs get them as states of
// their tasks, and as events.
func TestSubgraphsAreShownToWhoAsks(t *testing.T) {
	t.Parallel()
	f := setUpKeeper(t)
	thread := f.newThread(t)
	node := graphtest.Node{Name: "model", Say: "A", Sub: true}
	_, events := f.stream(t, thread, plan("one", node))
	if got := strings.Join(names(events), " "); strings.Contains(got, "|") {
		t.Errorf("got events %s without having asked for subgraphs", got)
	}
	_, events = f.stream(t, thread, with(plan("two", node), "stream_subgraphs", true))
	if got := strings.Join(names(events), " "); !strings.Contains(got, "updates|model:task-") {
		t.Errorf("got events %s, want those of the subgraph", got)
	}
	at := f.history(t, thread)[1]
	asked := f.call(t, "GET", thread+"/state/"+idOf(at, "checkpoint")+"?subgraphs=true", nil)
	task := asked.member("tasks").([]any)[0].(map[string]any)
	if diff := cmp.Diff(any([]any{"pull", "model"}), task["path"]); diff != "" {
		t.Errorf("the task's path (-want +got):\n%s", diff)
	}
	state, _ := task["state"].(map[string]any)
	if diff := cmp.Diff(any(object{"inner": "A"}), state["values"]); diff != "" {
		t.Errorf("the subgraph's values (-want +got):\n%s\n%s", diff, asked.text)
	}
	ns := state["checkpoint"].(map[string]any)["checkpoint_ns"]
	found := f.call(t, "POST", thread+"/state/checkpoint", object{"checkpoint": object{
		"checkpoint_ns": ns, "checkpoint_map": object{"": idOf(at, "checkpoint")},
	}})
	if diff := cmp.Diff(any(state), found.body); diff != "" {
		t.Errorf("the subgraph's state by its namespace (-want +got):\n%s", diff)
	}
	// A copy's subgraphs are in the copy.
	copied := f.call(t, "POST", thread+"/copy", nil).string("thread_id")
	for id, state := range map[string]any{
		strings.TrimPrefix(thread, "/threads/"): state,
		copied:                                  f.call(t, "GET", "/threads/"+copied+"/state/"+idOf(at, "checkpoint")+"?subgraphs=true", nil).member("tasks").([]any)[0].(map[string]any)["state"],
	} {
		if got := state.(map[string]any)["metadata"].(map[string]any)["thread_id"]; got != id {
			t.Errorf("the metadata says thread %v, want %s", got, id)
		}
	}
}

// TestARunBeginsAtACheckpointOfASubgraph checks that the agent gets the checkpoint of the subgraph
// at which the client begins a run or changes the state, although the subgraph has a newer one, and
// that the name of a subgraph's checkpoint has all checkpoints around it.
func TestARunBeginsAtACheckpointOfASubgraph(t *testing.T) {
	t.Parallel()
	var given []string
	around := marshal(object{"parents": object{"": "an earlier one", "around:1": "2"}})
	f := setUpAt(t, graphtest.Start(t, func(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
		given = nil
		if invocation.State.Checkpoint != nil {
			for _, c := range invocation.State.Checkpoint.Checkpoints {
				if c.ID != "made" { // by the change before
					given = append(given, c.ID)
				}
			}
		}
		if invocation.Operation == graph.OperationUpdateState {
			emit(graph.EventCheckpoint, graph.Checkpoint{ID: "made", NS: "model:task-0", Values: marshal(object{}), Metadata: around})
			return nil
		}
		return nested(ctx, invocation, func(event string, data any) {
			if c, ok := data.(graph.Checkpoint); ok && c.NS != "" {
				c.Metadata = around
				data = c
			}
			emit(event, data)
		})
	}), 0)
	f.deploy(t, "agent")
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", graphtest.Node{Name: "model", Say: "A", Sub: true}, says("tools", "B")))
	at := f.history(t, thread)[2]
	root, task := idOf(at, "checkpoint"), at["tasks"].([]any)[0].(object)["checkpoint"].(object)
	ns := task["checkpoint_ns"].(string)
	states := statesOf(t, f.call(t, "POST", thread+"/history", object{"checkpoint": task, "limit": 10}))
	newest, first := states[0]["checkpoint"].(object), states[1]["checkpoint"].(object)
	if diff := cmp.Diff(any(object{"": root, "around:1": "2", ns: first["checkpoint_id"]}), first["checkpoint_map"]); diff != "" {
		t.Errorf("the map of the subgraph's checkpoint (-want +got):\n%s", diff)
	}
	firstID, newestID := first["checkpoint_id"].(string), newest["checkpoint_id"].(string)
	for _, c := range []struct {
		named object
		want  []string
	}{{first, []string{root, firstID, newestID}}, {newest, []string{root, newestID}}} {
		f.finish(t, thread, object{"assistant_id": "agent", "checkpoint": c.named})
		if diff := cmp.Diff(c.want, given); diff != "" {
			t.Errorf("the agent gets the checkpoints (-want +got):\n%s", diff)
		}
		changed := f.call(t, "POST", thread+"/state", object{"values": object{"a": 1}, "checkpoint": c.named})
		wantStatus(t, changed, http.StatusOK)
		made := changed.member("checkpoint").(object)
		if diff := cmp.Diff(any(object{"": root, "around:1": "2", ns: "made"}), made["checkpoint_map"]); diff != "" {
			t.Errorf("the map of the checkpoint that was made (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(c.want, given); diff != "" {
			t.Errorf("the agent that changes the state gets the checkpoints (-want +got):\n%s", diff)
		}
	}
}

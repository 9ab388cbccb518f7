package agentserver_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// heard is a Keeper that notes the requests that it gets. Its checkpoints repeat the run's
// metadata, as the checkpoints of frameworks do.
type heard struct {
	mu   sync.Mutex
	last graph.Invocation
}

func (h *heard) answer(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
	h.mu.Lock()
	h.last = invocation
	h.mu.Unlock()
	return graphtest.Keeper(ctx, invocation, func(event string, data any) {
		if c, ok := data.(graph.Checkpoint); ok {
			metadata := object{}
			for _, said := range []json.RawMessage{invocation.Metadata, c.Metadata} {
				if len(said) > 0 {
					if err := json.Unmarshal(said, &metadata); err != nil {
						panic(err)
					}
				}
			}
			metadata["thread_id"], metadata["assistant_id"] = invocation.ThreadID, invocation.AssistantID
			c.Metadata = marshal(metadata)
			data = c
		}
		emit(event, data)
	})
}

func (h *heard) invocation() graph.Invocation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// TestAnAgentIsToldWhoAsksForWhat checks that the agent gets the assistant, the metadata of
// the assistant and of the run, the caller, and the caller's headers without credentials.
// Clients cannot choose the identity that the agent gets.
func TestAnAgentIsToldWhoAsksForWhat(t *testing.T) {
	t.Parallel()
	var agent heard
	f := setUpAt(t, graphtest.Start(t, agent.answer), 0)
	f.deploy(t, "agent")
	made := f.call(t, "POST", "/assistants", object{"graph_id": "agent", "metadata": object{"team": "a"}})
	wantStatus(t, made, http.StatusOK)
	thread := f.newThread(t)
	body := plan("one", says("model", "A"))
	body["assistant_id"], body["metadata"] = made.string("assistant_id"), object{"of": "the run"}
	body["caller"], body["user"], body["headers"] = object{"user": object{"identity": "evil"}}, object{"identity": "evil"}, object{"x-evil": "1"}
	headers := map[string]string{
		auth.HeaderKey: f.key, "X-Tier": "gold", "User-Agent": "a test", "Cookie": "secret", "X-Service-Key": "secret", "X-Forwarded-For": "192.0.2.1", auth.HeaderTenant: f.deployment.Workspace,
	}
	wantStatus(t, f.send(t, "POST", f.path(thread+"/runs/wait"), body, headers), http.StatusOK)

	asked := agent.invocation()
	if asked.AssistantID != made.string("assistant_id") {
		t.Errorf("the assistant is %q", asked.AssistantID)
	}
	if diff := cmp.Diff(`{"of":"the run","team":"a"}`, string(asked.Metadata)); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"x-tier": "gold", "user-agent": "a test"}, asked.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	var user struct{ Identity string }
	check.Must(t, json.Unmarshal(asked.User, &user))
	if user.Identity == "" || user.Identity == "evil" || user.Identity == f.key {
		t.Errorf("the user is %s", asked.User)
	}

	found := f.call(t, "POST", thread+"/history", object{"metadata": object{"of": "the run"}})
	if states, _ := found.body.([]any); len(states) == 0 {
		t.Errorf("no state is found by the run's metadata: %s", found.text)
	}
	copied := f.call(t, "POST", thread+"/copy", nil)
	wantStatus(t, copied, http.StatusOK)
	state := f.call(t, "GET", "/threads/"+copied.string("thread_id")+"/state", nil)
	if got := state.string("metadata", "thread_id"); got != copied.string("thread_id") {
		t.Errorf("the copy's checkpoint is of thread %s", got)
	}
}

// TestAChangeOfTheStateIsMadeByTheGraphOfTheRun checks that a factory makes the graph from the
// configuration of the thread's newest run. The run's own checkpoint no longer counts.
func TestAChangeOfTheStateIsMadeByTheGraphOfTheRun(t *testing.T) {
	t.Parallel()
	var agent heard
	f := setUpAt(t, graphtest.Start(t, agent.answer), 0)
	f.deploy(t, "agent")
	thread := f.newThread(t)
	f.finish(t, thread, plan("one", says("model", "A")))
	fork := idOf(f.history(t, thread)[0], "checkpoint")
	body := with(plan("two", says("model", "B")), "checkpoint", object{"checkpoint_id": fork})
	body["context"], body["metadata"] = object{"language": "fr"}, object{"of": "the run"}
	f.finish(t, thread, body)

	for _, c := range []struct {
		name       string
		checkpoint any
		want       object
	}{
		{"newest", nil, object{}},
		{"of a subgraph", object{"checkpoint_ns": "node:1", "checkpoint_id": nil, "checkpoint_map": object{"": fork}}, object{"checkpoint_ns": "node:1", "checkpoint_id": ""}},
	} {
		f.call(t, "POST", thread+"/state", object{"values": object{"a": 1}, "checkpoint": c.checkpoint})
		asked := agent.invocation()
		var metadata object
		check.Must(t, json.Unmarshal(asked.Metadata, &metadata))
		if asked.Operation != graph.OperationUpdateState || asked.AssistantID != agentID || string(asked.Context) != `{"language":"fr"}` || metadata["of"] != "the run" {
			t.Errorf("%s: the agent is asked %q of %q in %s with %s", c.name, asked.Operation, asked.AssistantID, asked.Context, asked.Metadata)
		}
		var config struct{ Configurable object }
		check.Must(t, json.Unmarshal(asked.Config, &config))
		if config.Configurable["plan"] == nil {
			t.Errorf("%s: the agent gets %s", c.name, asked.Config)
		}
		maps.DeleteFunc(config.Configurable, func(name string, _ any) bool { return name == "plan" })
		if diff := cmp.Diff(c.want, config.Configurable); diff != "" {
			t.Errorf("%s: configurable (-want +got):\n%s", c.name, diff)
		}
	}
}

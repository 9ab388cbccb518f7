package agentserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAMessageOfFiveMegabytes sends such a message to agents with and without checkpoints: the
// message is in the run's result, in the state and in the history, whole and once, also after
// the next run.
func TestAMessageOfFiveMegabytes(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789 <é> ", check.Size(5_000_000, 500_000)/16)
	asks := func(id, text string) object {
		return object{"messages": []any{object{"role": "user", "id": id, "content": text}}}
	}
	for name, c := range map[string]struct {
		setUp func(*testing.T) *fixture
		run   func(input object) object
	}{
		"simple": {func(t *testing.T) *fixture { return setUp(t, nil) }, func(input object) object {
			return object{"assistant_id": "agent", "input": input, "config": object{"configurable": object{"script": []graphtest.Step{}}}}
		}},
		"keeper": {setUpKeeper, func(input object) object {
			return object{"assistant_id": "agent", "input": input, "config": object{"configurable": object{"plan": []graphtest.Node{says("model", "ok")}}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := c.setUp(t)
			thread := f.newThread(t)
			for i, text := range []string{"small", large, "small"} {
				joined := f.call(t, "POST", thread+"/runs/wait", c.run(asks(fmt.Sprint("ask-", i), text)))
				wantStatus(t, joined, http.StatusOK)
				if failure := joined.member("__error__"); failure != nil {
					t.Errorf("run %d failed: %v", i, failure)
				}
				if i == 0 {
					continue
				}
				state := f.call(t, "GET", thread+"/state", nil)
				wantStatus(t, state, http.StatusOK)
				history := statesOf(t, f.call(t, "POST", thread+"/history", object{"limit": 1}))
				for where, values := range map[string]any{"result": joined.body, "state": state.member("values"), "history": history[0]["values"]} {
					if got := contents(values, "ask-1"); len(got) != 1 || got[0] != large {
						t.Errorf("the %s after run %d has the message %d times, want it once and whole", where, i, len(got))
					}
				}
			}
		})
	}
}

// contents returns the contents of the messages with an id.
func contents(values any, id string) (found []string) {
	members, _ := values.(map[string]any)
	messages, _ := members["messages"].([]any)
	for _, one := range messages {
		if message, _ := one.(map[string]any); message["id"] == id {
			found = append(found, fmt.Sprint(message["content"]))
		}
	}
	return found
}

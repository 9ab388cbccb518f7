package agentserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAgentsStreamTasks reads the events of a task while it runs, and again when it has ended.
func TestAgentsStreamTasks(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	var task a2a.TaskID
	for _, request := range []func() object{
		func() object { return rpc("message/stream", sendOf("hello", nil)) },
		func() object { return rpc("tasks/resubscribe", object{"id": task}) },
	} {
		answer := f.open(t.Context(), t, "POST", f.path("/a2a/agent"), request(), map[string]string{auth.HeaderKey: f.key})
		var seen []string
		for events := sse.NewReader(answer.Body, 1<<20); ; {
			event, err := events.Next()
			if err != nil {
				break
			}
			var said struct{ Result json.RawMessage }
			check.Must(t, json.Unmarshal(event.Data, &said))
			result, err := a2a.UnmarshalEventJSON(said.Result)
			check.Must(t, err)
			switch result := result.(type) {
			case *a2a.Task:
				task = result.ID
				seen = append(seen, "task")
			case *a2a.TaskStatusUpdateEvent:
				text := ""
				if result.Status.Message != nil {
					text = " " + textOf(result.Status.Message.Parts)
				}
				seen = append(seen, string(result.Status.State)+text)
				if result.TaskID != task || result.Final != (result.Status.State == a2a.TaskStateCompleted) {
					t.Errorf("got %+v", result)
				}
			case *a2a.TaskArtifactUpdateEvent:
				seen = append(seen, "artifact "+textOf(result.Artifact.Parts))
			}
		}
		check.Must(t, answer.Body.Close())
		if diff := cmp.Diff([]string{"task", "working You said hello", "artifact You said hello", "completed"}, newest(seen)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

// newest leaves out the drafts of an answer that the next draft repeats: how many drafts there are
// depends on the time.
func newest(seen []string) (kept []string) {
	for i, event := range seen {
		if i+1 == len(seen) || !strings.HasPrefix(seen[i+1], event) {
			kept = append(kept, event)
		}
	}
	return kept
}

// TestDraftsHaveTheTextSoFar has an agent wait in the middle of its answer until a client has seen
// the first draft.
func TestDraftsHaveTheTextSoFar(t *testing.T) {
	t.Parallel()
	shown := make(chan struct{})
	f := setUp(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
		for _, text := range []string{"You said ", "hello"} {
			emit(graph.EventMessages, []any{message("AIMessageChunk", "a", text), object{"graph_node": "model"}})
			select {
			case <-shown:
			case <-ctx.Done():
			}
		}
		return nil
	})
	answer := f.open(t.Context(), t, "POST", f.path("/a2a/agent"), rpc("message/stream", sendOf("hello", nil)), map[string]string{auth.HeaderKey: f.key})
	defer answer.Body.Close()
	var drafts []string
	for events := sse.NewReader(answer.Body, 1<<20); ; {
		event, err := events.Next()
		if err != nil {
			break
		}
		var said struct {
			Result struct {
				Kind   string
				Status a2a.TaskStatus
			}
		}
		check.Must(t, json.Unmarshal(event.Data, &said))
		if draft := said.Result.Status.Message; said.Result.Kind == "status-update" && draft != nil {
			if drafts = append(drafts, draft.ID+": "+textOf(draft.Parts)); len(drafts) == 1 {
				close(shown)
			}
		}
	}
	if diff := cmp.Diff([]string{"a: You said ", "a: You said hello"}, drafts); diff != "" {
		t.Errorf("drafts (-want +got):\n%s", diff)
	}
}

// TestASilentTaskRepeatsItsStatus checks that proxies and clients see that the connection lives.
func TestASilentTaskRepeatsItsStatus(t *testing.T) {
	t.Parallel()
	f := setUpImpatient(t, echoing, time.Millisecond)
	answer := f.open(t.Context(), t, "POST", f.path("/a2a/agent"), rpc("message/stream", sendOf("hang", nil)), map[string]string{auth.HeaderKey: f.key})
	defer answer.Body.Close()
	events := sse.NewReader(answer.Body, 1<<20)
	for range 4 { // the task, and its status
		event, err := events.Next()
		if check.Must(t, err); !strings.Contains(string(event.Data), `"kind":"task"`) && !strings.Contains(string(event.Data), `"state":"working"`) {
			t.Errorf("got %s", event.Data)
		}
	}
}

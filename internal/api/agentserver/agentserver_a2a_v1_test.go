package agentserver_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/test/check"
)

// sendV1 is the parameters of a message of version 1.0 with a text; more are other members of the
// message.
func sendV1(text string, more object) object {
	said := object{"messageId": "m-" + text, "role": "ROLE_USER", "parts": []any{object{"text": text}}}
	maps.Copy(said, more)
	return object{"message": said}
}

// refusalV1 is an error of version 1.0.
type refusalV1 struct {
	Code    int
	Message string
	Data    []struct{ Reason, Domain string }
}

// askV1 sends a message of version 1.0 to the assistant of the graph "agent", and returns the task
// or the error.
func (f *fixture) askV1(t *testing.T, method string, params any) (task v1.Task, refused refusalV1) {
	t.Helper()
	answer := f.call(t, "POST", "/a2a/agent", rpc(method, params))
	wantStatus(t, answer, http.StatusOK)
	var said struct {
		Result json.RawMessage
		Error  refusalV1
	}
	check.Must(t, json.Unmarshal(answer.text, &said))
	if said.Error.Code != 0 {
		return task, said.Error
	}
	if method == "SendMessage" {
		sent := struct{ Task *v1.Task }{&task}
		check.Must(t, json.Unmarshal(said.Result, &sent))
	} else {
		check.Must(t, json.Unmarshal(said.Result, &task))
	}
	return task, refused
}

// followV1 returns what the events of a stream say, and the text of its error.
func (f *fixture) followV1(t *testing.T, method string, params any) (seen []string, refused string) {
	t.Helper()
	answer := f.open(t.Context(), t, "POST", f.path("/a2a/agent"), rpc(method, params), map[string]string{auth.HeaderKey: f.key})
	defer answer.Body.Close()
	for events := sse.NewReader(answer.Body, 1<<20); ; {
		event, err := events.Next()
		if err != nil {
			return seen, refused
		}
		var said struct {
			Result *v1.StreamResponse
			Error  refusalV1
		}
		check.Must(t, json.Unmarshal(event.Data, &said))
		if said.Result == nil {
			refused = said.Error.Message
			continue
		}
		switch event := said.Result.Event.(type) {
		case *v1.Task:
			seen = append(seen, "task")
		case *v1.TaskStatusUpdateEvent:
			text := string(event.Status.State)
			if event.Status.Message != nil {
				text += " " + textOfV1(event.Status.Message.Parts)
			}
			seen = append(seen, text)
		case *v1.TaskArtifactUpdateEvent:
			seen = append(seen, "artifact "+textOfV1(event.Artifact.Parts))
		}
	}
}

// textOfV1 returns the text of parts.
func textOfV1(parts v1.ContentParts) string {
	var all []string
	for _, part := range parts {
		all = append(all, part.Text())
	}
	return strings.Join(all, "|")
}

func TestAgentsOfVersion1SendMessages(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, refused := f.askV1(t, "SendMessage", sendV1("hello", nil))
	if task.Status.State != v1.TaskStateCompleted || len(task.Artifacts) != 1 || textOfV1(task.Artifacts[0].Parts) != "You said hello" {
		t.Fatalf("got %+v, %+v", task, refused)
	}
	var history []string
	for _, m := range task.History {
		history = append(history, string(m.Role)+": "+textOfV1(m.Parts))
	}
	if diff := cmp.Diff([]string{"ROLE_USER: hello", "ROLE_AGENT: You said hello"}, history); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	next, _ := f.askV1(t, "SendMessage", with(sendV1("again", object{"contextId": task.ContextID}), "configuration", object{"historyLength": 3}))
	if next.ContextID != task.ContextID || next.ID == task.ID || len(next.History) != 3 {
		t.Errorf("the second task is %+v", next)
	}
	if read, _ := f.askV1(t, "GetTask", object{"id": task.ID, "historyLength": 0}); read.ID != task.ID || len(read.History) != 0 || len(read.Artifacts) != 1 {
		t.Errorf("the first task is %+v", read)
	}
	if before, _, _ := f.ask(t, "tasks/get", object{"id": task.ID}); string(before.ID) != string(task.ID) || before.Status.State != "completed" {
		t.Errorf("for version 0.3, the first task is %+v", before)
	}
	data, _ := f.askV1(t, "SendMessage", sendV1("", object{"parts": []any{object{"data": object{"city": "Lund"}}}}))
	if said, _ := data.Artifacts[0].Parts[0].Data().(map[string]any); said["weather"] != "warm in Lund" {
		t.Errorf("data gets %+v", data)
	}
	files, _ := f.askV1(t, "SendMessage", sendV1("", object{"parts": []any{
		object{"url": "https://files.test/a.png", "mediaType": "image/png", "filename": "a.png"}, object{"raw": "aGk=", "mediaType": "text/plain"},
	}}))
	for _, want := range []string{`"type":"image"`, `"url":"https://files.test/a.png"`, `"filename":"a.png"`, `"base64":"aGk="`} {
		if said := textOfV1(files.Artifacts[0].Parts); !strings.Contains(said, want) {
			t.Errorf("the graph has seen %s, want %s", said, want)
		}
	}
	if said := files.History[0].Parts; string(said[0].URL()) != "https://files.test/a.png" || base64.StdEncoding.EncodeToString(said[1].Raw()) != "aGk=" || said[1].MediaType != "text/plain" {
		t.Errorf("the history has the files %+v", said)
	}
}

// TestAgentsOfVersion1FollowTasks reads the events of a task while it runs. A task that waits is
// followed again, and a task that has ended is not.
func TestAgentsOfVersion1FollowTasks(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	seen, refused := f.followV1(t, "SendStreamingMessage", sendV1("hello", nil))
	if diff := cmp.Diff([]string{"task", "TASK_STATE_WORKING You said hello", "artifact You said hello", "TASK_STATE_COMPLETED"}, newest(seen)); diff != "" {
		t.Errorf("events (-want +got):\n%s%s", diff, refused)
	}
	ended, _ := f.askV1(t, "SendMessage", sendV1("hello", nil))
	if seen, refused := f.followV1(t, "SubscribeToTask", object{"id": ended.ID}); len(seen) > 0 || refused != "the task has ended: get it" {
		t.Errorf("a task that has ended is followed: %v, %q", seen, refused)
	}
	waiting, _ := f.askV1(t, "SendMessage", sendV1("ask", nil))
	seen, refused = f.followV1(t, "SubscribeToTask", object{"id": waiting.ID})
	if diff := cmp.Diff([]string{"task", "artifact ", "TASK_STATE_INPUT_REQUIRED"}, seen); diff != "" || refused != "" {
		t.Errorf("events of a task that waits (-want +got):\n%s%s", diff, refused)
	}
	if answered, refused := f.askV1(t, "SendMessage", sendV1("yes", object{"taskId": waiting.ID})); answered.ID != waiting.ID || answered.Status.State != v1.TaskStateCompleted {
		t.Errorf("the answered task is %+v, %+v", answered, refused)
	}
}

func TestAgentsOfVersion1CancelTasks(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, _ := f.askV1(t, "SendMessage", with(sendV1("hang", nil), "configuration", object{"returnImmediately": true}))
	if task.ID == "" || task.Status.State.Terminal() {
		t.Fatalf("the task is %+v", task)
	}
	if cancelled, refused := f.askV1(t, "CancelTask", object{"id": task.ID}); cancelled.Status.State != v1.TaskStateCanceled {
		t.Errorf("the cancelled task is %+v, %+v", cancelled, refused)
	}
}

func TestWhatAgentsOfVersion1LearnOfErrors(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	failed, _ := f.askV1(t, "SendMessage", sendV1("fail", nil))
	if failed.Status.State != v1.TaskStateFailed || !strings.Contains(textOfV1(failed.Status.Message.Parts), "no weather today") {
		t.Errorf("the failed task is %+v", failed)
	}
	parts := func(parts ...any) object { return sendV1("x", object{"parts": parts}) }
	for name, c := range map[string]struct {
		method string
		params any
		code   int
		reason string
		words  string
	}{
		"method":        {"ForgetTask", object{}, -32601, "METHOD_NOT_FOUND", ""},
		"no message":    {"SendMessage", object{}, -32602, "INVALID_PARAMS", `message.role: must be "ROLE_USER"`},
		"no part":       {"SendMessage", parts(), -32602, "INVALID_PARAMS", "message.parts: must have"},
		"null":          {"SendMessage", parts(nil), -32602, "INVALID_PARAMS", "message.parts.0: must be an object"},
		"list of data":  {"SendMessage", parts(object{"data": []int{1}}), -32602, "INVALID_PARAMS", "message.parts.0.data: must be an object"},
		"role":          {"SendMessage", sendV1("x", object{"role": "ROLE_AGENT"}), -32602, "INVALID_PARAMS", `message.role: must be "ROLE_USER"`},
		"no id":         {"SendMessage", sendV1("x", object{"messageId": ""}), -32602, "INVALID_PARAMS", "message.messageId: must be given"},
		"context":       {"SendMessage", sendV1("x", object{"contextId": "x"}), -32602, "INVALID_PARAMS", "message.contextId: must be a UUID"},
		"task":          {"GetTask", object{"id": unknownID + ":" + unknownID}, -32001, "TASK_NOT_FOUND", ""},
		"ended":         {"CancelTask", object{"id": failed.ID}, -32002, "TASK_NOT_CANCELABLE", "it is failed"},
		"answer":        {"SendMessage", sendV1("x", object{"taskId": failed.ID}), -32004, "UNSUPPORTED_OPERATION", "the task has ended"},
		"history":       {"GetTask", object{"id": failed.ID, "historyLength": -1}, -32602, "INVALID_PARAMS", "historyLength: must be 0 or more"},
		"push":          {"ListTaskPushNotificationConfigs", object{"taskId": failed.ID}, -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", ""},
		"extended card": {"GetExtendedAgentCard", object{}, -32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", ""},
	} {
		_, refused := f.askV1(t, c.method, c.params)
		if refused.Code != c.code || !strings.Contains(refused.Message, c.words) || len(refused.Data) != 1 || refused.Data[0].Reason != c.reason || refused.Data[0].Domain != v1.ProtocolDomain {
			t.Errorf("%s: got %+v, want %d %s %q", name, refused, c.code, c.reason, c.words)
		}
	}
	if seen, refused := f.followV1(t, "SendStreamingMessage", parts(nil)); len(seen) > 0 || !strings.Contains(refused, "message.parts.0: must be an object") {
		t.Errorf("a stream of a message without a part gets %v, %q", seen, refused)
	}
}

// TestTheVersionThatAgentsAskFor checks the header and the parameter with a version.
func TestTheVersionThatAgentsAskFor(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	for _, method := range []string{"SendMessage", "SendStreamingMessage", "message/send", "GetTask"} {
		for _, c := range []struct {
			header, query string
			refused       bool
		}{
			{"", "", false},
			{"1.0", "", false},
			{"0.3", "", false},
			{"1.0.1", "", false},
			{"", "1.0", false},
			{"9.9", "", true},
			{"1", "", true},
			{"1.1", "", true},
			{"", "9.9", true},
			{"0.2.6", "1.0", true},
		} {
			path := f.path("/a2a/agent")
			if c.query != "" {
				path += "?A2A-Version=" + c.query
			}
			answer := f.send(t, "POST", path, rpc(method, object{}), map[string]string{auth.HeaderKey: f.key, "A2A-Version": c.header})
			wantStatus(t, answer, http.StatusOK)
			var said struct {
				ID    any
				Error refusalV1
			}
			if err := json.Unmarshal(answer.text, &said); err != nil && c.refused {
				t.Errorf("%s of version %q: %s", method, c.header, answer.text)
			}
			if got := said.Error.Code == -32009; got != c.refused {
				t.Errorf("%s of version %q, %q gets %s, want a refusal of the version: %v", method, c.header, c.query, answer.text, c.refused)
			}
			if c.refused && (said.ID == nil || !strings.Contains(said.Error.Message, "1.0 and 0.3") || len(said.Error.Data) != 1 || said.Error.Data[0].Reason != "VERSION_NOT_SUPPORTED") {
				t.Errorf("%s of version %q gets %s", method, c.header, answer.text)
			}
		}
	}
}

package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/a2a"
	v1 "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// rpc is a message of the Agent2Agent protocol.
func rpc(method string, params any) object {
	return object{"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
}

// sendOf is the parameters of a message with a text; more are other members of the message.
func sendOf(text string, more object) object {
	said := object{"kind": "message", "messageId": "m-" + text, "role": "user", "parts": []any{object{"kind": "text", "text": text}}}
	maps.Copy(said, more)
	return object{"message": said}
}

// ask sends a message to the assistant of the graph "agent", and returns the task, or the code of
// an error and its text.
func (f *fixture) ask(t *testing.T, method string, params any) (task a2a.Task, code int, text string) {
	t.Helper()
	answer := f.call(t, "POST", "/a2a/agent", rpc(method, params))
	wantStatus(t, answer, http.StatusOK)
	var said struct {
		Result json.RawMessage
		Error  struct {
			Code int
			Data struct{ Error string }
		}
	}
	check.Must(t, json.Unmarshal(answer.text, &said))
	if said.Error.Code == 0 {
		check.Must(t, json.Unmarshal(said.Result, &task))
	}
	return task, said.Error.Code, said.Error.Data.Error
}

// textOf returns the text of parts.
func textOf(parts a2a.ContentParts) string {
	var all []string
	for _, part := range parts {
		if said, ok := part.(a2a.TextPart); ok {
			all = append(all, said.Text)
		}
	}
	return strings.Join(all, "|")
}

// echoing answers each message with its text. Texts with a meaning: "ask" asks a question,
// "fail" fails, "hang" runs until it is cancelled, "huge" is answered with 5 MiB.
func echoing(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
	if command := string(invocation.Command); command != "" && command != "null" {
		emit(graph.EventUpdates, object{"model": object{"messages": []any{message("ai", "after", "You said "+command)}}})
		return nil
	}
	var input struct {
		City     string
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(invocation.Input, &input); err != nil {
		return err
	}
	var text string
	if len(input.Messages) > 0 && json.Unmarshal(input.Messages[0].Content, &text) != nil {
		text = string(input.Messages[0].Content)
	}
	switch text {
	case "ask":
		emit("interrupt", []any{object{"id": "q", "value": "Sure?"}})
		return nil
	case "fail":
		return errors.New("no weather today")
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "huge":
		emit(graph.EventMessages, []any{message("AIMessageChunk", "a-huge", strings.Repeat("x", 5<<20)), object{"graph_node": "model"}})
		return nil
	case "":
		emit(graph.EventUpdates, object{"model": object{"weather": "warm in " + input.City}})
		return nil
	}
	said := message("ai", "a-"+text, "You said "+text)
	emit(graph.EventMessages, []any{message("AIMessageChunk", "a-"+text, "You said "), object{"graph_node": "model"}})
	emit(graph.EventMessages, []any{message("AIMessageChunk", "a-"+text, text), object{"graph_node": "model"}})
	emit(graph.EventUpdates, object{"model": object{"messages": []any{said}}})
	return nil
}

func TestAgentsSendMessages(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, code, why := f.ask(t, "message/send", sendOf("hello", nil))
	if code != 0 || task.Status.State != a2a.TaskStateCompleted || len(task.Artifacts) != 1 || textOf(task.Artifacts[0].Parts) != "You said hello" {
		t.Fatalf("got %+v, %d %s", task, code, why)
	}
	var history []string
	for _, m := range task.History {
		history = append(history, string(m.Role)+": "+textOf(m.Parts))
	}
	if diff := cmp.Diff([]string{"user: hello", "agent: You said hello"}, history); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	next, _, _ := f.ask(t, "message/send", with(sendOf("again", object{"contextId": task.ContextID}), "configuration", object{"historyLength": 3}))
	if next.ContextID != task.ContextID || next.ID == task.ID || len(next.History) != 3 || textOf(next.History[2].Parts) != "You said again" {
		t.Errorf("the second task is %+v", next)
	}
	read, _, _ := f.ask(t, "tasks/get", object{"id": task.ID, "historyLength": 0})
	if read.ID != task.ID || read.Status.State != a2a.TaskStateCompleted || len(read.History) != 0 || textOf(read.Artifacts[0].Parts) != "You said hello" {
		t.Errorf("the first task is %+v", read)
	}
	data, code, why := f.ask(t, "message/send", object{"message": object{"kind": "message", "messageId": "d", "role": "user", "parts": []any{object{"kind": "data", "data": object{"city": "Lund"}}}}})
	if code != 0 || data.Artifacts[0].Parts[0].(a2a.DataPart).Data["weather"] != "warm in Lund" {
		t.Errorf("data gets %+v, %d %s", data, code, why)
	}
	file, _, _ := f.ask(t, "message/send", object{"message": object{"kind": "message", "messageId": "f", "role": "user", "parts": []any{
		object{"kind": "text", "text": "look"}, object{"kind": "file", "file": object{"uri": "https://files.test/a.png", "mimeType": "image/png"}},
	}}})
	if said := textOf(file.Artifacts[0].Parts); !strings.Contains(said, `"type":"image"`) || !strings.Contains(said, `"url":"https://files.test/a.png"`) {
		t.Errorf("the graph has seen %s", said)
	}
}

// TestAttackAnEventThatATaskCannotHold has an event that is larger than the server keeps for a
// task: the stream ends with an error that says so.
func TestAttackAnEventThatATaskCannotHold(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := setUp(t, echoing)
	answer := f.open(t.Context(), t, "POST", f.path("/a2a/agent"), rpc("message/stream", sendOf("huge", nil)), map[string]string{auth.HeaderKey: f.key})
	defer answer.Body.Close()
	seen, err := io.ReadAll(answer.Body)
	if check.Must(t, err); len(seen) > 1<<20 || !strings.Contains(string(seen), "An event of the run is larger than") {
		t.Errorf("got %d bytes: %.500s", len(seen), seen)
	}
}

// TestAgentsAnswerQuestions answers the question of a task, which stays the same task.
func TestAgentsAnswerQuestions(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	for name, c := range map[string]struct {
		part object
		want string
	}{
		"text":   {object{"kind": "text", "text": "yes"}, `"resume":"yes"`},
		"data":   {object{"kind": "data", "data": object{"ok": true}}, `"resume":{"ok":true}`},
		"resume": {object{"kind": "data", "data": object{"resume": 7}}, `"resume":7`},
	} {
		task, _, why := f.ask(t, "message/send", sendOf("ask", nil))
		if task.Status.State != a2a.TaskStateInputRequired || task.Artifacts[0].Parts[0].(a2a.DataPart).Data["value"] != "Sure?" {
			t.Fatalf("%s: the task is %+v, %s", name, task, why)
		}
		answer := object{"message": object{"kind": "message", "messageId": "y", "role": "user", "taskId": task.ID, "parts": []any{c.part}}}
		answered, code, why := f.ask(t, "message/send", answer)
		if code != 0 || answered.ID != task.ID || answered.Status.State != a2a.TaskStateCompleted || !strings.Contains(textOf(answered.Artifacts[0].Parts), c.want) {
			t.Errorf("%s: the answered task is %+v, %d %s", name, answered, code, why)
		}
		if read, _, _ := f.ask(t, "tasks/get", object{"id": task.ID}); read.Status.State != a2a.TaskStateCompleted {
			t.Errorf("%s: the task is %+v", name, read)
		}
		if _, code, _ := f.ask(t, "message/send", answer); code != -32004 {
			t.Errorf("%s: a task that has ended goes on: %d", name, code)
		}
	}
}

// TestAnAnsweredTaskIsFoundBehindOthers has more tasks in the context than are read at a time.
func TestAnAnsweredTaskIsFoundBehindOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, _, _ := f.ask(t, "message/send", sendOf("ask", nil))
	f.ask(t, "message/send", sendOf("yes", object{"taskId": task.ID}))
	for i := range 12 {
		f.ask(t, "message/send", sendOf(fmt.Sprint(i), object{"contextId": task.ContextID}))
	}
	if read, code, why := f.ask(t, "tasks/get", object{"id": task.ID}); read.Status.State != a2a.TaskStateCompleted {
		t.Errorf("the task is %+v, %d %s", read, code, why)
	}
}

// TestAgentsCancelTasksThatWait cancels a task that waits for an answer. A person cannot answer the
// question any more, and the context goes on with another task.
func TestAgentsCancelTasksThatWait(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, _, _ := f.ask(t, "message/send", sendOf("ask", nil))
	cancelled, code, why := f.ask(t, "tasks/cancel", object{"id": task.ID})
	if code != 0 || cancelled.ID != task.ID || cancelled.Status.State != a2a.TaskStateCanceled {
		t.Fatalf("the cancelled task is %+v, %d %s", cancelled, code, why)
	}
	if read, _, _ := f.ask(t, "tasks/get", object{"id": task.ID}); read.Status.State != a2a.TaskStateCanceled {
		t.Errorf("the task is %+v", read)
	}
	wantThread(t, f, "/threads/"+task.ContextID, "idle", nil, object{})
	if _, code, _ := f.ask(t, "message/send", sendOf("yes", object{"taskId": task.ID})); code != -32004 {
		t.Errorf("an answer to a cancelled task gets %d", code)
	}
	if _, code, _ := f.ask(t, "tasks/cancel", object{"id": task.ID}); code != -32002 {
		t.Errorf("a second cancellation gets %d", code)
	}
	if next, code, why := f.ask(t, "message/send", sendOf("hello", object{"contextId": task.ContextID})); next.Status.State != a2a.TaskStateCompleted {
		t.Errorf("the next task is %+v, %d %s", next, code, why)
	}
}

// TestAnAnswerIsForTheQuestionOfItsTask has two tasks that ask in one context. The second passes
// over the question of the first, so an answer to the first must not answer the second, also if
// both questions have the same id.
func TestAnAnswerIsForTheQuestionOfItsTask(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]func(context.Context, graph.Invocation, func(string, any)) error{"ids of their own": asking, "the same id": echoing} {
		f := setUp(t, agent)
		first, _, _ := f.ask(t, "message/send", sendOf("ask", nil))
		second, _, _ := f.ask(t, "message/send", sendOf("ask", object{"contextId": first.ContextID}))
		if _, code, _ := f.ask(t, "message/send", sendOf("yes", object{"taskId": first.ID})); code != -32004 {
			t.Errorf("%s: an answer to a question that was passed over gets %d", name, code)
		}
		for task, want := range map[a2a.TaskID]a2a.TaskState{first.ID: a2a.TaskStateCanceled, second.ID: a2a.TaskStateInputRequired} {
			if read, _, _ := f.ask(t, "tasks/get", object{"id": task}); read.Status.State != want {
				t.Errorf("%s: the task is %s, want %s", name, read.Status.State, want)
			}
		}
	}
}

// TestATaskIsAnsweredByAPerson has a person answer the questions of a task as the console does: the
// client of the task sees how it goes on.
func TestATaskIsAnsweredByAPerson(t *testing.T) {
	t.Parallel()
	f := setUp(t, asking)
	task, _, _ := f.ask(t, "message/send", sendOf("pay", nil))
	for _, c := range []struct {
		answer string
		want   a2a.TaskState
	}{{"again", a2a.TaskStateInputRequired}, {"yes", a2a.TaskStateCompleted}} {
		answered := f.call(t, "POST", "/threads/"+task.ContextID+"/runs/wait", object{"assistant_id": "agent", "command": object{"resume": c.answer}})
		wantStatus(t, answered, http.StatusOK)
		if read, code, why := f.ask(t, "tasks/get", object{"id": task.ID}); read.ID != task.ID || read.Status.State != c.want {
			t.Errorf("after %q the task is %+v, %d %s", c.answer, read, code, why)
		}
	}
	f.ask(t, "message/send", sendOf("delete", object{"contextId": task.ContextID}))
	if read, _, _ := f.ask(t, "tasks/get", object{"id": task.ID}); read.Status.State != a2a.TaskStateCompleted {
		t.Errorf("behind another task, the task is %+v", read)
	}
}

// asking asks a question about each message, and again if the answer is "again".
func asking(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
	if command := string(invocation.Command); command == "" || command == "null" || strings.Contains(command, "again") {
		emit("interrupt", []any{object{"id": "question of " + invocation.RunID, "value": "Sure?"}})
	}
	return nil
}

// TestATaskThatWaitsIsFollowedAgain checks the first event of a stream, at which clients stop if it
// says that the task has ended.
func TestATaskThatWaitsIsFollowedAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	for text, want := range map[string]string{"ask": "input-required", "hello": "completed"} {
		task, _, _ := f.ask(t, "message/send", sendOf(text, nil))
		answer := f.open(t.Context(), t, "POST", f.path("/a2a/agent"), rpc("tasks/resubscribe", object{"id": task.ID}), map[string]string{auth.HeaderKey: f.key})
		event, err := sse.NewReader(answer.Body, 1<<20).Next()
		check.Must(t, err)
		check.Must(t, answer.Body.Close())
		if said := string(event.Data); !strings.Contains(said, `"state":"`+want+`"`) || !strings.Contains(said, `"artifacts":[`) {
			t.Errorf("%s: the first event is %s", text, said)
		}
	}
}

func TestAgentsCancelTasks(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, _, _ := f.ask(t, "message/send", with(sendOf("hang", nil), "configuration", object{"blocking": false}))
	if task.Status.State.Terminal() {
		t.Fatalf("the task is %+v", task)
	}
	cancelled, code, why := f.ask(t, "tasks/cancel", object{"id": task.ID})
	if code != 0 || cancelled.Status.State != a2a.TaskStateCanceled {
		t.Errorf("the cancelled task is %+v, %d %s", cancelled, code, why)
	}
	if _, code, _ := f.ask(t, "tasks/cancel", object{"id": task.ID}); code != -32002 {
		t.Errorf("a second cancellation gets %d", code)
	}
}

func TestWhatAgentsLearnOfErrors(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	failed, _, _ := f.ask(t, "message/send", sendOf("fail", nil))
	if failed.Status.State != a2a.TaskStateFailed || !strings.Contains(textOf(failed.Status.Message.Parts), "no weather today") {
		t.Errorf("the failed task is %+v", failed)
	}
	other := f.call(t, "POST", "/assistants", object{"graph_id": "agent", "name": "other"}).string("assistant_id")
	ofOther := f.call(t, "POST", "/a2a/"+other, rpc("message/send", sendOf("hello", nil))).string("result", "id")
	for name, c := range map[string]struct {
		method string
		params any
		code   int
		words  string
	}{
		"method":            {"tasks/forget", object{}, -32601, ""},
		"no message":        {"message/send", object{}, -32602, `message.role: must be "user"`},
		"no part":           {"message/send", object{"message": object{"messageId": "m", "role": "user", "parts": []any{}}}, -32602, "message.parts: must have"},
		"no id":             {"message/send", sendOf("x", object{"messageId": ""}), -32602, "message.messageId: must be given"},
		"unknown part":      {"message/send", object{"message": object{"messageId": "m", "role": "user", "parts": []any{object{"kind": "song"}}}}, -32700, "unknown part kind song"},
		"role":              {"message/send", sendOf("x", object{"role": "agent"}), -32602, `message.role: must be "user"`},
		"context":           {"message/send", sendOf("x", object{"contextId": "../../assistants"}), -32602, "message.contextId: must be a UUID"},
		"task of another":   {"tasks/get", object{"id": ofOther}, -32001, ""},
		"task":              {"tasks/get", object{"id": unknownID + ":" + unknownID}, -32001, ""},
		"no task":           {"tasks/cancel", object{"id": "x"}, -32001, ""},
		"message to a task": {"message/send", sendOf("x", object{"taskId": ofOther}), -32001, ""},
		"history":           {"tasks/get", object{"id": failed.ID, "historyLength": -1}, -32602, "historyLength: must be 0 or more"},
		"push":              {"tasks/pushNotificationConfig/list", object{"id": failed.ID}, -32003, ""},
		"extended card":     {"agent/getAuthenticatedExtendedCard", object{}, -32007, ""},
	} {
		if _, code, text := f.ask(t, c.method, c.params); code != c.code || !strings.Contains(text, c.words) {
			t.Errorf("%s: got %d %q, want %d %q", name, code, text, c.code, c.words)
		}
	}
	stream := f.call(t, "POST", "/a2a/agent", rpc("message/stream", object{}))
	if !strings.Contains(string(stream.text), `"code":-32602`) {
		t.Errorf("a stream without a message gets %s", stream.text)
	}
	wantStatus(t, f.call(t, "POST", "/a2a/nobody", rpc("tasks/get", object{"id": "x"})), http.StatusNotFound)
}

// TestAttackTasksOfOthers checks that nobody asks an agent, or reads its tasks, without a right to
// it.
func TestAttackTasksOfOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, _, _ := f.ask(t, "message/send", sendOf("hello", nil))
	for _, message := range []object{rpc("tasks/get", object{"id": task.ID}), rpc("message/send", sendOf("hello", nil)), rpc("message/stream", sendOf("hello", nil)), rpc("GetTask", object{"id": task.ID}), rpc("SendMessage", sendV1("hello", nil))} {
		wantStatus(t, f.send(t, "POST", f.path("/a2a/agent"), message, map[string]string{auth.HeaderKey: f.stranger}), http.StatusNotFound)
		wantStatus(t, f.send(t, "POST", f.path("/a2a/agent"), message, nil), http.StatusUnauthorized)
	}
	_, viewer, err := f.keys.Issue(t.Context(), apikey.NewKey{Workspace: f.deployment.Workspace, Role: workspace.Viewer})
	check.Must(t, err)
	for method, want := range map[string]string{
		"tasks/get": `"state":"completed"`, "tasks/cancel": "cannot be canceled", "message/send": "runs:create", "message/stream": "runs:create",
		"GetTask": `"state":"TASK_STATE_COMPLETED"`, "CancelTask": "cannot be canceled", "SendMessage": "runs:create", "SendStreamingMessage": "runs:create",
	} {
		params := with(sendOf("hello", nil), "id", task.ID)
		if !strings.Contains(method, "/") {
			params = with(sendV1("hello", nil), "id", task.ID)
		}
		answer := f.send(t, "POST", f.path("/a2a/agent"), rpc(method, params), map[string]string{auth.HeaderKey: viewer})
		if !strings.Contains(string(answer.text), want) {
			t.Errorf("%s of a viewer gets %d %s, want %q", method, answer.StatusCode, answer.text, want)
		}
	}
}

func TestCardsOfAgents(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, echoing, 0)
	f.settings = build.Settings{HTTP: &build.HTTP{MountPrefix: "/api"}}
	f.deploy(t, "agent")
	ann := f.call(t, "POST", "/api/assistants", object{"graph_id": "agent", "name": "Ann", "description": "Answers."}).string("assistant_id")
	for _, path := range []string{"/api/a2a/" + ann + "/.well-known/agent-card.json", "/api/.well-known/agent-card.json?assistant_id=" + ann} {
		var card a2a.AgentCard
		answer := f.call(t, "GET", path, nil)
		wantStatus(t, answer, http.StatusOK)
		check.Must(t, json.Unmarshal(answer.text, &card))
		if card.URL != "https://slipway.test"+f.path("/api/a2a/"+ann) || card.Name != "Ann" || card.Description != "Answers." || !card.Capabilities.Streaming || card.ProtocolVersion != "0.3.0" || len(card.SecuritySchemes) != 1 {
			t.Errorf("%s: the card is %+v", path, card)
		}
		var now v1.AgentCard
		check.Must(t, json.Unmarshal(answer.text, &now))
		want := v1.AgentCard{
			SupportedInterfaces: []*v1.AgentInterface{
				{URL: card.URL, ProtocolBinding: "JSONRPC", ProtocolVersion: "1.0"}, {URL: card.URL, ProtocolBinding: "JSONRPC", ProtocolVersion: "0.3"},
			},
			SecuritySchemes: v1.NamedSecuritySchemes{"key": v1.APIKeySecurityScheme{Location: "header", Name: auth.HeaderKey}},
		}
		if diff := cmp.Diff(want, v1.AgentCard{SupportedInterfaces: now.SupportedInterfaces, SecuritySchemes: now.SecuritySchemes}); diff != "" {
			t.Errorf("%s: for version 1.0, the card has (-want +got):\n%s", path, diff)
		}
	}
	wantStatus(t, f.call(t, "GET", "/api/a2a/nobody/.well-known/agent-card.json", nil), http.StatusNotFound)
	wantStatus(t, f.call(t, "GET", "/api/.well-known/agent-card.json", nil), http.StatusUnprocessableEntity)
}

package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackTasksOfAnotherUser has a repository with its own authentication, whose users share
// the assistants: a user finds, continues and stops no task of another user.
func TestAttackTasksOfAnotherUser(t *testing.T) {
	t.Parallel()
	f, g, platformKey := setUpGuarded(t)
	g.shared = "assistants"
	send := func(user, method string, params any) response {
		return f.as(t, user, "POST", "/a2a/agent", rpc(method, params))
	}
	asked := send("ada", "message/send", sendOf("hello", nil))
	task, in := asked.string("result", "id"), asked.string("result", "contextId")
	before := f.call(t, "GET", "/threads/"+in+"/history", nil)
	wantStatus(t, before, http.StatusOK)
	for name, c := range map[string]struct {
		method string
		params any
		code   string
	}{
		"read":                      {"tasks/get", object{"id": task}, "-32001"},
		"cancel":                    {"tasks/cancel", object{"id": task}, "-32001"},
		"follow":                    {"tasks/resubscribe", object{"id": task}, "-32001"},
		"continue":                  {"message/send", sendOf("mine", object{"taskId": task}), "-32001"},
		"continue as a stream":      {"message/stream", sendOf("mine", object{"taskId": task}), "-32001"},
		"read, 1.0":                 {"GetTask", object{"id": task}, "-32001"},
		"cancel, 1.0":               {"CancelTask", object{"id": task}, "-32001"},
		"follow, 1.0":               {"SubscribeToTask", object{"id": task}, "-32001"},
		"continue, 1.0":             {"SendMessage", sendV1("mine", object{"taskId": task}), "-32001"},
		"continue as a stream, 1.0": {"SendStreamingMessage", sendV1("mine", object{"taskId": task}), "-32001"},
		"new task, 1.0":             {"SendMessage", sendV1("mine", object{"contextId": in}), "-32602"},
		"new task in the context":   {"message/send", sendOf("mine", object{"contextId": in}), "-32602"},
		"new stream in the context": {"message/stream", sendOf("mine", object{"contextId": in}), "-32602"},
	} {
		answer := send("bob", c.method, c.params)
		if text := string(answer.text); !strings.Contains(text, `"code":`+c.code) || strings.Contains(text, `"result"`) {
			t.Errorf("%s: got %d %s, want the code %s", name, answer.StatusCode, text, c.code)
		}
		for user, status := range map[string]int{"": http.StatusUnauthorized, platformKey: http.StatusUnauthorized, "late": http.StatusForbidden} {
			wantStatus(t, send(user, c.method, c.params), status)
		}
	}
	if read := send("ada", "tasks/get", object{"id": task}).string("result", "id"); read != task {
		t.Errorf("ada reads the task %q, want %q", read, task)
	}
	after := f.call(t, "GET", "/threads/"+in+"/history", nil)
	if string(before.text) != string(after.text) {
		t.Errorf("the thread was %s\nand is %s", before.text, after.text)
	}
}

// TestAttackLargeMessagesToAgents sends messages that are refused before they begin a run: with
// too many bytes, too many values, or too deep a nesting.
func TestAttackLargeMessagesToAgents(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := setUp(t, echoing)
	data := func(member string) string {
		return `{"jsonrpc":"2.0","id":"1","method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data","data":{"a":` + member + `}}]}}}`
	}
	for name, c := range map[string]struct {
		body   string
		status int
		words  string
	}{
		"message": {data(`"` + strings.Repeat("x", 4<<20) + `"`), http.StatusRequestEntityTooLarge, "The message is larger than 4194304 bytes."},
		"bytes":   {data(`"` + strings.Repeat("x", 32<<20) + `"`), http.StatusRequestEntityTooLarge, "The body is larger than"},
		"values":  {data("[0" + strings.Repeat(",0", 1_100_000) + "]"), http.StatusOK, `"code":-32600,"message":"body: The body should have at most 1000000 JSON values`},
		"parts":   {strings.Replace(data("0"), `"parts":[`, `"parts":[`+strings.Repeat("{},", 1_100_000), 1), http.StatusOK, `"code":-32600,"message":"body: The body should have at most 1000000 JSON values`},
		"nesting": {data(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), http.StatusOK, `"code":-32700,"message":"body.10149: JSON decode error`},
	} {
		answer := f.call(t, "POST", "/a2a/agent", c.body)
		if answer.StatusCode != c.status || !strings.Contains(string(answer.text), c.words) {
			t.Errorf("%s: got %d %.300s, want %d %q", name, answer.StatusCode, answer.text, c.status, c.words)
		}
	}
	if threads := f.call(t, "POST", "/threads/count", object{}); string(threads.text) != "0\n" {
		t.Errorf("the messages have begun threads: %s", threads.text)
	}
	largest := f.call(t, "POST", "/a2a/agent", strings.Replace(data(`"`+strings.Repeat("x", 4<<20-300)+`"`), "message/send", "message/stream", 1))
	if !strings.Contains(string(largest.text), `"kind":"task"`) {
		t.Errorf("the largest message gets %.300s", largest.text)
	}
	if task, code, why := f.ask(t, "message/send", sendOf("hello", nil)); code != 0 {
		t.Errorf("the next message gets %+v, %d %s", task, code, why)
	}
}

package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// say sends a message of the Agent2Agent protocol to the agent.
func (d *deployment) say(t *testing.T, method string, params any, header ...string) response {
	t.Helper()
	body := map[string]any{"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
	got, err := d.server.do(t.Context(), "POST", d.url+"/a2a/agent", body, header...)
	check.Must(t, err)
	return got
}

// messageWith is the parameters of a message with a part; more is a member of the message.
func messageWith(part map[string]any, more ...string) map[string]any {
	message := map[string]any{"kind": "message", "messageId": "m", "role": "user", "parts": []any{part}}
	if len(more) == 2 {
		message[more[0]] = more[1]
	}
	return map[string]any{"message": message}
}

func textPart(text string) map[string]any { return map[string]any{"kind": "text", "text": text} }

// spokenTask is a task as the protocol answers it.
type spokenTask struct {
	ID      string `json:"id"`
	Context string `json:"contextId"`
	Status  struct {
		State string `json:"state"`
	} `json:"status"`
}

// taskOf returns the task of an answer.
func taskOf(t *testing.T, got response) spokenTask {
	t.Helper()
	var answer struct{ Result spokenTask }
	if err := json.Unmarshal(got.body, &answer); err != nil || answer.Result.ID == "" {
		t.Fatalf("the agent answers %d %s", got.status, got.body)
	}
	return answer.Result
}

// TestTasksAreKeptApart tries to find, continue and stop a task through another agent of the same
// workspace, and with keys that do not count.
func TestTasksAreKeptApart(t *testing.T) {
	t.Parallel()
	victim := shared(t)
	attacker := victim.server.deploy(t, scriptedRepository(t), "main")
	mine := taskOf(t, victim.say(t, "message/send", messageWith(textPart(askSF))))
	history := func() string {
		got := victim.server.call(t, http.StatusOK, "GET", victim.url+"/threads/"+mine.Context+"/history", nil, nil)
		return string(got.body)
	}
	before := history()
	id := map[string]any{"id": mine.ID}
	for name, c := range map[string]struct {
		method string
		params any
	}{
		"read":                 {"tasks/get", id},
		"cancel":               {"tasks/cancel", id},
		"follow":               {"tasks/resubscribe", id},
		"continue":             {"message/send", messageWith(textPart("mine"), "taskId", mine.ID)},
		"continue as a stream": {"message/stream", messageWith(textPart("mine"), "taskId", mine.ID)},
	} {
		got := attacker.say(t, c.method, c.params)
		if text := string(got.body); !strings.Contains(text, `"code":-32001`) || strings.Contains(text, `"result"`) {
			t.Errorf("%s: got %d %s, want the code of an unknown task", name, got.status, text)
		}
		for who, header := range map[string][]string{
			"no key":            {"X-Api-Key", ""},
			"a wrong key":       {"X-Api-Key", victim.server.APIKey + "x"},
			"another workspace": {"X-Tenant-Id", "01890a5d-ac96-774b-bcce-b302099a8057"},
		} {
			got := victim.say(t, c.method, c.params, header...)
			if !slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, got.status) || strings.Contains(string(got.body), mine.Context) {
				t.Errorf("%s with %s: got %d %s", name, who, got.status, got.body)
			}
		}
	}
	// A context is a thread of its agent: the other agent begins a thread of its own.
	own := taskOf(t, attacker.say(t, "message/send", messageWith(textPart("mine"), "contextId", mine.Context)))
	thread := &thread{server: attacker.server, url: attacker.url + "/threads/" + own.Context, ID: own.Context}
	thread.expectRuns(t, "success")
	if read := taskOf(t, victim.say(t, "tasks/get", id)); read != mine || read.Status.State != "completed" {
		t.Errorf("the task is %+v, and was %+v", read, mine)
	}
	if after := history(); after != before {
		t.Errorf("the thread was %s\nand is %s", before, after)
	}
}

// TestLargeMessagesBeginNoTasks sends messages with too many bytes, too many values, or too deep a
// nesting.
func TestLargeMessagesBeginNoTasks(t *testing.T) {
	t.Parallel()
	agent := shared(t).server.deploy(t, scriptedRepository(t), "main")
	for name, c := range map[string]struct {
		value  string
		status int
	}{
		"message": {`"` + strings.Repeat("x", 4<<20) + `"`, http.StatusRequestEntityTooLarge},
		"bytes":   {`"` + strings.Repeat("x", 32<<20) + `"`, http.StatusRequestEntityTooLarge},
		"values":  {"[0" + strings.Repeat(",0", 1_100_000) + "]", http.StatusOK},
		"nesting": {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), http.StatusOK},
	} {
		body := `{"jsonrpc":"2.0","id":"1","method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user",
			"parts":[{"kind":"data","data":{"a":` + c.value + `}}]}}}`
		got, err := agent.server.do(t.Context(), "POST", agent.url+"/a2a/agent", body)
		check.Must(t, err)
		if got.status != c.status || got.status == http.StatusOK && !strings.Contains(string(got.body), `"error":{"code":-32`) {
			t.Errorf("%s: got %d %.300s, want %d", name, got.status, got.body, c.status)
		}
	}
	var begun []any
	if agent.server.call(t, http.StatusOK, "POST", agent.url+"/threads/search", map[string]any{}, &begun); len(begun) > 0 {
		t.Errorf("the messages have begun threads: %v", begun)
	}
	if next := taskOf(t, agent.say(t, "message/send", messageWith(textPart("hello")))); next.Status.State != "completed" {
		t.Errorf("the task of the next message is %+v", next)
	}
}

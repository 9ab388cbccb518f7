package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// message is one message of a thread.
type message struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Content   string `json:"content"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
	Metadata   struct {
		Incomplete bool `json:"incomplete"`
	} `json:"response_metadata"`
}

// kind returns the kind of a message, in the terms of the stories.
func (m message) kind() string {
	switch {
	case m.Type == "ai" && len(m.ToolCalls) > 0:
		return "call"
	case m.Metadata.Incomplete:
		return "partial"
	default:
		return m.Type
	}
}

// The messages of a thread after one question was answered.
var answered = []string{"human", "call", "tool", "ai"}

type messages []message

func (m messages) kinds() []string {
	kinds := []string{}
	for _, one := range m {
		kinds = append(kinds, one.kind())
	}
	return kinds
}

// expect checks the kinds of the messages, in order, and that no message occurs twice.
func (m messages) expect(t *testing.T, kinds ...string) {
	t.Helper()
	if !slices.Equal(m.kinds(), kinds) {
		t.Fatalf("the thread reads %v, want %v: %+v", m.kinds(), kinds, m)
	}
	seen := map[string]bool{}
	for i, one := range m {
		if one.ID == "" || seen[one.ID] {
			t.Errorf("message %d has no id of its own: %+v", i, one)
		}
		seen[one.ID] = true
		if one.Type == "tool" && (i == 0 || m[i-1].ToolCalls[0].ID != one.ToolCallID) {
			t.Errorf("message %d does not answer the call before it: %+v", i, one)
		}
	}
}

func (m messages) last() message { return m[len(m)-1] }

// values are a thread's values.
type values struct {
	Messages messages `json:"messages"`
	Error    *struct {
		Name    string `json:"error"`
		Message string `json:"message"`
	} `json:"__error__"`
}

// thread is a thread of a deployment.
type thread struct {
	server *server
	url    string
	ID     string
}

func (d *deployment) thread(t *testing.T) *thread {
	t.Helper()
	var created struct {
		ID     string `json:"thread_id"`
		Status string `json:"status"`
	}
	d.server.call(t, http.StatusOK, "POST", d.url+"/threads", map[string]any{}, &created)
	if created.Status != "idle" {
		t.Errorf("a new thread is %s", created.Status)
	}
	return &thread{d.server, d.url + "/threads/" + created.ID, created.ID}
}

// request is the body that creates a run.
type request map[string]any

// fast is the configuration of a run that need not be watched, slow of a run whose answer does
// not end while a test watches it, and thinking of a run that takes no step while a test
// watches it.
var (
	fast     = map[string]any{"token_delay_ms": 0, "node_delay_ms": 0}
	slow     = map[string]any{"token_delay_ms": 1000, "node_delay_ms": 50, "answer_words": 10_000}
	thinking = map[string]any{"node_delay_ms": 60_000}
)

// ask returns a run that asks a question.
func ask(question string, configurable map[string]any) request {
	return request{
		"assistant_id": "agent",
		"input":        map[string]any{"messages": []map[string]string{{"role": "user", "content": question}}},
		"config":       map[string]any{"configurable": configurable},
	}
}

func (r request) with(member string, value any) request {
	r[member] = value
	return r
}

func (r request) interrupting() request { return r.with("multitask_strategy", "interrupt") }

// streaming returns a run whose tokens are streamed as messages.
func (r request) streaming() request {
	return r.with("stream_mode", []string{"messages-tuple", "values"})
}

type runBody struct {
	ID           string `json:"run_id"`
	Thread       string `json:"thread_id"`
	Status       string `json:"status"`
	CancelReason string `json:"cancel_reason"`
	Created      string `json:"created_at"`
	Strategy     string `json:"multitask_strategy"`
	Kwargs       struct {
		Input values `json:"input"`
	} `json:"kwargs"`
}

// run starts a run in the background.
func (th *thread) run(t *testing.T, body request) runBody {
	t.Helper()
	var created runBody
	got := th.server.call(t, http.StatusOK, "POST", th.url+"/runs", body, &created)
	if want := "/threads/" + th.ID + "/runs/" + created.ID; got.header.Get("Content-Location") != want {
		t.Errorf("Content-Location is %q, want %q", got.header.Get("Content-Location"), want)
	}
	return created
}

func (th *thread) get(t *testing.T, run string) runBody {
	t.Helper()
	var body runBody
	th.server.call(t, http.StatusOK, "GET", th.url+"/runs/"+run, nil, &body)
	return body
}

// list returns all runs, oldest first.
func (th *thread) list(t *testing.T) []runBody {
	t.Helper()
	var bodies []runBody
	th.server.call(t, http.StatusOK, "GET", th.url+"/runs?limit=1000", nil, &bodies)
	slices.Reverse(bodies)
	return bodies
}

// expectRuns checks the statuses of the thread's runs, oldest first.
func (th *thread) expectRuns(t *testing.T, statuses ...string) {
	t.Helper()
	got := []string{}
	for _, run := range th.list(t) {
		got = append(got, run.Status)
	}
	if !slices.Equal(got, statuses) {
		t.Errorf("the runs are %v, want %v", got, statuses)
	}
}

// expectQueued checks that a run waits while the previous run continues.
func (th *thread) expectQueued(t *testing.T, before, run string) {
	t.Helper()
	status := th.get(t, run).Status
	if th.get(t, before).Status == "running" && status != "pending" {
		t.Errorf("the run is %s, though the one before it goes on", status)
	}
}

// join waits for the end of a run and returns its values.
func (th *thread) join(t *testing.T, run string) values {
	t.Helper()
	var left values
	th.server.call(t, http.StatusOK, "GET", th.url+"/runs/"+run+"/join", nil, &left)
	return left
}

// wait runs and returns the final values.
func (th *thread) wait(t *testing.T, body request) values {
	t.Helper()
	var left values
	th.server.call(t, http.StatusOK, "POST", th.url+"/runs/wait", body, &left)
	return left
}

// state returns the messages of the thread.
func (th *thread) state(t *testing.T) messages {
	t.Helper()
	var state struct {
		Values values   `json:"values"`
		Next   []string `json:"next"`
	}
	th.server.call(t, http.StatusOK, "GET", th.url+"/state", nil, &state)
	return state.Values.Messages
}

// status returns the status of the thread itself.
func (th *thread) status(t *testing.T) string {
	t.Helper()
	var body struct {
		Status string `json:"status"`
	}
	th.server.call(t, http.StatusOK, "GET", th.url, nil, &body)
	return body.Status
}

// awaitKinds waits until the thread has messages of these kinds.
func (th *thread) awaitKinds(t *testing.T, kinds ...string) {
	t.Helper()
	eventually(t, "the thread reads "+strings.Join(kinds, " "), func() (bool, any) {
		now := th.state(t).kinds()
		return slices.Equal(now, kinds), now
	})
}

// content decodes the text of a message chunk.
func content(t *testing.T, data string) string {
	t.Helper()
	var pair []json.RawMessage
	var chunk struct {
		Content string `json:"content"`
	}
	decode(t, data, &pair)
	if len(pair) != 2 {
		t.Fatalf("not a chunk and its metadata: %s", data)
	}
	decode(t, string(pair[0]), &chunk)
	return chunk.Content
}

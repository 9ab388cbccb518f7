package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// unknownID is an id that no object has.
const unknownID = "0191f6a0-0000-7000-8000-000000000000"

// TestBadInput sends requests that the agent server must refuse. The answer names all
// problems, and no object is partly created.
func TestBadInput(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	thread := agent.thread(t)
	good := `{"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "sf?"}]}}`
	threads, runs := agent.url+"/threads", thread.url+"/runs"
	other := strings.Replace(agent.url, agent.ID, unknownID, 1)

	for name, c := range map[string]struct {
		method, address, body string
		status                int
		// problems are the problems in a 422 answer: the place and type of each.
		problems []string
		header   []string
	}{
		"a body that is not JSON":             {"POST", runs, `{"assistant_id": `, 422, []string{"body.17 json_invalid"}, nil},
		"a thread that is not JSON":           {"POST", threads, `{]`, 422, []string{"body.2 json_invalid"}, nil},
		"a body that is not UTF-8":            {"POST", runs, "{\"assistant_id\": \"\xff\"}", 422, []string{"body.18 json_invalid"}, nil},
		"a body that is a list":               {"POST", runs, `[]`, 422, []string{"body model_attributes_type"}, nil},
		"no body":                             {"POST", runs, ``, 422, []string{"body missing"}, nil},
		"no assistant":                        {"POST", runs, `{}`, 422, []string{"body.assistant_id missing"}, nil},
		"an assistant that is a number":       {"POST", runs, `{"assistant_id": 7}`, 422, []string{"body.assistant_id string_type"}, nil},
		"a strategy that does not exist":      {"POST", runs, `{"assistant_id": "agent", "multitask_strategy": "panic"}`, 422, []string{"body.multitask_strategy enum"}, nil},
		"a stream mode that does not exist":   {"POST", runs + "/stream", `{"assistant_id": "agent", "stream_mode": ["values", "smoke"]}`, 422, []string{"body.stream_mode.1 enum"}, nil},
		"a config that is text":               {"POST", runs + "/wait", `{"assistant_id": "agent", "config": "fast"}`, 422, []string{"body.config model_attributes_type"}, nil},
		"a message that is a number":          {"POST", runs, `{"assistant_id": "agent", "input": {"messages": [7]}}`, 422, []string{"body.input value_error"}, nil},
		"an id of a thread that is no UUID":   {"POST", threads, `{"thread_id": "mine"}`, 422, []string{"body.thread_id uuid_parsing"}, nil},
		"a thread in the path that is no id":  {"GET", threads + "/mine", ``, 422, []string{"path.thread_id uuid_parsing"}, nil},
		"a run in the path that is no id":     {"GET", runs + "/mine", ``, 422, []string{"path.run_id uuid_parsing"}, nil},
		"a limit that is too large":           {"GET", runs + "?limit=1001&offset=-1", ``, 422, []string{"query.limit less_than_equal", "query.offset greater_than_equal"}, nil},
		"a Last-Event-ID that is no position": {"GET", runs + "/" + unknownID + "/stream", ``, 422, []string{"header.Last-Event-ID int_parsing"}, []string{"Last-Event-ID", "x"}},
		"everything wrong at once": {
			"POST", threads + "/mine/runs", `{"multitask_strategy": "panic", "config": [], "stream_mode": "smoke", "durability": 1}`, 422,
			[]string{
				"path.thread_id uuid_parsing", "body.assistant_id missing", "body.config model_attributes_type", "body.durability enum",
				"body.multitask_strategy enum", "body.stream_mode enum",
			}, nil,
		},
		"a thread that does not exist":      {"GET", threads + "/" + unknownID, ``, 404, nil, nil},
		"the state of no thread":            {"GET", threads + "/" + unknownID + "/state", ``, 404, nil, nil},
		"the runs of no thread":             {"GET", threads + "/" + unknownID + "/runs", ``, 404, nil, nil},
		"a run on no thread":                {"POST", threads + "/" + unknownID + "/runs", good, 404, nil, nil},
		"a stream of a run on no thread":    {"POST", threads + "/" + unknownID + "/runs/stream", good, 404, nil, nil},
		"a run that does not exist":         {"GET", runs + "/" + unknownID, ``, 404, nil, nil},
		"a join of no run":                  {"GET", runs + "/" + unknownID + "/join", ``, 404, nil, nil},
		"a stream of no run":                {"GET", runs + "/" + unknownID + "/stream", ``, 404, nil, nil},
		"an assistant that does not exist":  {"POST", runs, `{"assistant_id": "nobody", "input": {}}`, 404, nil, nil},
		"an assistant id that is nobody's":  {"POST", runs, `{"assistant_id": "` + unknownID + `", "input": {}}`, 404, nil, nil},
		"a deployment that does not exist":  {"POST", other + "/threads", `{}`, 404, nil, nil},
		"a deployment's name for its id":    {"POST", strings.Replace(agent.url, agent.ID, "mine", 1) + "/threads", `{}`, 404, nil, nil},
		"no key":                            {"POST", runs, good, 401, nil, []string{"X-Api-Key", ""}},
		"a wrong key":                       {"POST", runs, good, 401, nil, []string{"X-Api-Key", "wrong"}},
		"a body of another kind":            {"POST", runs, good, 415, nil, []string{"Content-Type", "application/xml"}},
		"a method that the path has not":    {"DELETE", runs, ``, 405, nil, nil},
		"a path that does not exist":        {"GET", agent.url + "/nothing", ``, 404, nil, nil},
		"a cancel of no run":                {"POST", runs + "/" + unknownID + "/cancel", ``, 404, nil, nil},
		"a thread whose id is there before": {"POST", threads, `{"thread_id": "` + thread.ID + `"}`, 409, nil, nil},
	} {
		if *kind != "standalone" && !utf8.ValidString(c.body) {
			// API Gateway passes bodies to functions as text, and invalid text becomes U+FFFD
			// before.
			continue
		}
		if *kind == "sam" && slices.Contains([]string{"no key", "a wrong key", "a path that does not exist"}, name) {
			// API Gateway itself refuses these, and SAM does not support the template's responses
			// for this.
			continue
		}
		t.Run(name, func(t *testing.T) {
			var body any
			if c.body != "" || c.method == "POST" {
				body = c.body
			}
			got := agent.server.call(t, c.status, c.method, c.address, body, nil, c.header...)
			expectDetail(t, got, c.problems)
		})
	}

	t.Run("nothing of all this has happened to the thread", func(t *testing.T) {
		thread.expectRuns(t)
		thread.state(t).expect(t)
		if status := thread.status(t); status != "idle" {
			t.Errorf("the thread is %s", status)
		}
		agent.server.call(t, http.StatusNotFound, "GET", threads+"/"+unknownID, nil, nil)
	})
}

// expectDetail checks the body of a refusal: a sentence, or the list of problems if there is a
// list.
func expectDetail(t *testing.T, got response, problems []string) {
	t.Helper()
	if contentType := got.header.Get("Content-Type"); contentType != "application/json" {
		t.Errorf("the Content-Type is %q", contentType)
	}
	var refusal struct{ Detail json.RawMessage }
	if err := json.Unmarshal(got.body, &refusal); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	if problems == nil {
		var sentence string
		if err := json.Unmarshal(refusal.Detail, &sentence); err != nil || sentence == "" {
			t.Errorf("the detail is no sentence: %s", got.body)
		}
		return
	}
	var listed []struct {
		Loc       []any
		Msg, Type string
	}
	if err := json.Unmarshal(refusal.Detail, &listed); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	found := []string{}
	for _, problem := range listed {
		if problem.Msg == "" {
			t.Errorf("a problem has no words: %s", got.body)
		}
		place := strings.ReplaceAll(strings.Trim(fmt.Sprint(problem.Loc), "[]"), " ", ".")
		found = append(found, place+" "+problem.Type)
	}
	if !slices.Equal(found, problems) {
		t.Errorf("the problems are %q, want %q", found, problems)
	}
}

package agentserver_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestAttackJSONThatClientsCannotRead sends half of a surrogate pair in each kind of request that
// stores what it gets. If one of them were stored, lists would break clients in other languages.
func TestAttackJSONThatClientsCannotRead(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	thread := f.newThread(t)
	assistant := f.assist(t, object{"graph_id": "agent"})
	const half = `"half \ud83d"`
	input := `"input":{"messages":[{"role":"user","content":` + half + `}]}`
	for path, c := range map[string]struct{ method, body, place string }{
		"/threads":                 {"POST", `{"metadata":{"n":` + half + `}}`, "metadata n"},
		thread:                     {"PATCH", `{"metadata":{"n":` + half + `}}`, "metadata n"},
		thread + "/state":          {"POST", `{"values":{"x":` + half + `}}`, "values x"},
		thread + "/runs":           {"POST", `{"assistant_id":"agent",` + input + `}`, "input messages 0 content"},
		thread + "/runs/stream":    {"POST", `{"assistant_id":"agent",` + input + `}`, "input messages 0 content"},
		thread + "/runs/wait":      {"POST", `{"assistant_id":"agent","metadata":{"n":` + half + `}}`, "metadata n"},
		thread + "/commands":       {"POST", `{"id":1,"method":"run.start","params":{"assistant_id":"agent",` + input + `}}`, "params input messages 0 content"},
		"/runs/wait":               {"POST", `{"assistant_id":"agent",` + input + `}`, "input messages 0 content"},
		"/runs/crons":              {"POST", `{"assistant_id":"agent","schedule":"* * * * *",` + input + `}`, "input messages 0 content"},
		"/assistants":              {"POST", `{"graph_id":"agent","metadata":{"n":` + half + `}}`, "metadata n"},
		"/assistants/" + assistant: {"PATCH", `{"name":` + half + `}`, "name"},
		"/store/items":             {"PUT", `{"namespace":["a"],"key":"k","value":{"v":` + half + `}}`, "value v"},
	} {
		refused := f.call(t, c.method, path, c.body)
		if refused.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(refused.text), "half of a surrogate pair") {
			t.Errorf("%s %s: got %d %s", c.method, path, refused.StatusCode, refused.text)
			continue
		}
		if want := `["body","` + strings.ReplaceAll(strings.ReplaceAll(c.place, " ", `","`), `"0"`, "0") + `"]`; !strings.Contains(string(refused.text), want) {
			t.Errorf("%s %s: the place is not %s: %s", c.method, path, want, refused.text)
		}
	}
	s := f.talk(t, thread)
	s.send(t, `{"id":1,"method":"run.start","params":{"assistant_id":"agent",`+input+`}}`)
	if _, answer := s.next(t); answer.string("error") != "invalid_argument" || !strings.Contains(answer.string("message"), "half of a surrogate pair") {
		t.Errorf("a command of a WebSocket is answered with %s", answer.text)
	}
	if runs := f.call(t, "GET", thread+"/runs", nil); string(runs.text) != "[]\n" {
		t.Errorf("the requests have begun runs: %s", runs.text)
	}
}

package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
)

// TestMessagesThatAreNotOfJSONRPC checks that a body that does not pass the contract is answered
// with an error of JSON-RPC: with the status 200 as on the framework's server by the Agent2Agent
// protocol, and with a status of a failure by the transport "Streamable HTTP".
func TestMessagesThatAreNotOfJSONRPC(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for path, status := range map[string]int{"/a2a/agent": http.StatusOK, "/mcp": http.StatusBadRequest} {
		for body, want := range map[string]struct {
			id   any
			code float64
			text string
		}{
			`{"jsonrpc": "2.0", "id": 1`:                               {nil, -32700, "body.26: JSON decode error: unexpected end of JSON input"},
			`{"jsonrpc": "2.0", "params": {"n": "half \ud83d"}}`:       {nil, -32700, "body.params.n: JSON decode error: an escape is half of a surrogate pair"},
			`{"id": 1, "method": "x"}`:                                 {1.0, -32600, "jsonrpc: Field required"},
			`{"jsonrpc": "1.0", "id": "a", "method": "x"}`:             {"a", -32600, "jsonrpc: Input should be '2.0'"},
			`{"jsonrpc": "2.0", "id": 1, "method": 5}`:                 {1.0, -32600, "method: Input should be a valid string"},
			`{"jsonrpc": "2.0", "id": 1, "method": "x", "params": []}`: {1.0, -32602, "params: Input should be a valid dictionary"},
			`{"jsonrpc": "1.0", "id": {}, "method": "x"}`:              {nil, -32600, "jsonrpc: Input should be '2.0'"},
			`[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]`:          {nil, -32600, "body: Input should be a valid dictionary"},
			``: {nil, -32600, "body: Field required"},
		} {
			got := f.call(t, "POST", path, body)
			wantStatus(t, got, status)
			if text, _ := got.member("error", "message").(string); got.member("jsonrpc") != "2.0" || got.member("id") != want.id || got.member("error", "code") != want.code || !strings.Contains(text, want.text) {
				t.Errorf("%s %s: got %s, want %v", path, body, got.text, want)
			}
		}
		if got := f.call(t, "POST", path, `{"jsonrpc": "1.0", "id": 9007199254740993, "method": "x"}`); !strings.Contains(string(got.text), `"id":9007199254740993`) {
			t.Errorf("%s: got %s, want the same id", path, got.text)
		}
		wantStatus(t, f.send(t, "POST", f.path(path), "{", nil), http.StatusUnauthorized)
		wantStatus(t, f.send(t, "POST", f.path(path), "{", map[string]string{auth.HeaderKey: f.key, "Content-Type": "application/xml"}), http.StatusUnsupportedMediaType)
		wantStatus(t, f.send(t, "POST", f.path(path), "{", map[string]string{auth.HeaderKey: f.key, "Content-Type": "text/plain"}), status)
	}
	wantStatus(t, f.call(t, "POST", "/threads", "{"), http.StatusUnprocessableEntity)
}

// TestA2ARequestsWithoutParams checks that they lack something, and are no broken JSON.
func TestA2ARequestsWithoutParams(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for method, code := range map[string]float64{
		"message/send": -32602, "tasks/get": -32001, "agent/getAuthenticatedExtendedCard": -32007, "unknown/method": -32601,
		"SendMessage": -32602, "GetTask": -32001, "GetExtendedAgentCard": -32007, "Unknown": -32601,
	} {
		if got := f.call(t, "POST", "/a2a/agent", object{"jsonrpc": "2.0", "id": 1, "method": method}); got.member("error", "code") != code {
			t.Errorf("%s: got %s, want %v", method, got.text, code)
		}
	}
	for _, method := range []string{"message/stream", "SendStreamingMessage"} {
		got := f.call(t, "POST", "/a2a/agent", object{"jsonrpc": "2.0", "id": 1, "method": method})
		if !strings.Contains(string(got.text), `"code":-32602`) {
			t.Errorf("%s: got %s", method, got.text)
		}
	}
}

// TestA2AAtThePathWithASlash sends messages to the address below which clients look for the card.
func TestA2AAtThePathWithASlash(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	get := rpc("tasks/get", object{"id": "x"})
	wantBody(t, f.call(t, "POST", "/a2a/agent/", get), f.call(t, "POST", "/a2a/agent", get).body)
	wantStatus(t, f.send(t, "POST", f.path("/a2a/agent/"), get, nil), http.StatusUnauthorized)
	wantStatus(t, f.call(t, "GET", "/a2a/agent/", nil), http.StatusMethodNotAllowed)
	wantStatus(t, f.call(t, "POST", "/a2a/agent/more", get), http.StatusNotFound)
}

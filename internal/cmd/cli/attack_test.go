package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/cmd/client"
)

// TestAttackAnEditorHasTheKeySentElsewhere has a deployment whose custom_url, which an editor
// may change, is the address of a third party.
func TestAttackAnEditorHasTheKeySentElsewhere(t *testing.T) {
	t.Parallel()
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server got %s %s with the key %q", r.Method, r.URL, r.Header.Get("X-Api-Key"))
	}))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"resources": [{"id": "1", "name": "weather", "active_revision_id": "2", "source_config": {"custom_url": "` + thief.URL + `"}}]}`
		if r.URL.Path == "/d/1/assistants/search" {
			answer = `[{"assistant_id": "3", "graph_id": "agent"}]`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	asked := &api{Client: client.New(client.Server{URL: server.URL, Key: "key"})}
	found, err := asked.agent(t.Context(), "weather")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := found.assistant(t.Context(), ""); got != "3" || err != nil {
		t.Errorf("got %q (%v)", got, err)
	}
	// No other value that names an address gets the key either.
	for _, address := range []string{thief.URL + "/x", "@" + strings.TrimPrefix(thief.URL, "http://"), ".example/x", ""} {
		if err := asked.Call(t.Context(), http.MethodGet, address, nil, nil); err == nil || !strings.Contains(err.Error(), "is no path of the server") {
			t.Errorf("%q: got %v", address, err)
		}
	}
}

// TestAttackAFailureForgesACommand has an agent whose last output, which a failure quotes,
// would move the cursor, or would be a command of the job that runs the program.
func TestAttackAFailureForgesACommand(t *testing.T) {
	t.Parallel()
	r := revision{ID: "1", Status: "DEPLOY_FAILED", Reason: "START_FAILED", Message: "it exited"}
	for _, words := range []string{"ValueError: \x1b]0;planted\a", "x\r::add-mask::planted ValueError: \r::add-mask::planted", "ValueError: \u009b2J"} {
		text := (&failedError{revision: r, explanation: explanation{Cause: "The agent ends when it is started: " + words, Remedy: words}}).Error()
		if !strings.Contains(text, "cause: The agent ends when it is started: ") || strings.ContainsAny(text, "\r\x1b\a\u009b") || strings.Contains(text, "\n::") {
			t.Errorf("got %q", text)
		}
	}
}

package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/test/check"
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
		deployment := `{"id": "1", "name": "weather", "active_revision_id": "2", "source_config": {"custom_url": "` + thief.URL + `"}}`
		answer := `{"resources": [` + deployment + `]}`
		switch r.URL.Path {
		case "/v2/deployments/1":
			answer = deployment
		case "/d/1/assistants/search":
			answer = `[{"assistant_id": "3", "graph_id": "agent"}]`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	asked := &api{Client: client.New(client.Server{URL: server.URL, Key: "key"})}
	found, err := asked.agent(t.Context(), "weather")
	check.Must(t, err)
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

// TestAttackAServerLeadsElsewhere has a server and an issuer that redirect requests with secrets to
// a third party.
func TestAttackAServerLeadsElsewhere(t *testing.T) {
	t.Parallel()
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		t.Errorf("another server got %s %s with the headers %v and the body %s (%v)", r.Method, r.URL, r.Header, body, err)
	}))
	defer thief.Close()
	server := httptest.NewServer(http.RedirectHandler(thief.URL+"/x", http.StatusTemporaryRedirect))
	defer server.Close()
	for what, err := range map[string]error{
		"the key":       client.New(client.Server{URL: server.URL, Key: "key"}).Call(t.Context(), http.MethodGet, "/x", nil, nil),
		"the ID token":  client.New(client.Server{URL: server.URL}).Call(t.Context(), http.MethodPost, "/x", map[string]string{"id_token": "secret"}, nil),
		"the revoked":   post(t.Context(), server.URL, url.Values{"token": {"secret"}}),
		"the discovery": discoverError(t.Context(), server.URL),
	} {
		if err == nil || !strings.Contains(err.Error(), "307") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func discoverError(ctx context.Context, issuer string) error {
	_, _, err := discover(ctx, "http://127.0.0.1", issuer)
	return err
}

// TestAttackAServerNamesALocalIssuer has a server elsewhere name an issuer on this machine.
func TestAttackAServerNamesALocalIssuer(t *testing.T) {
	t.Parallel()
	local := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the issuer got %s %s", r.Method, r.URL)
	}))
	defer local.Close()
	for _, server := range []string{"https://slipway.test", "http://slipway.test", "https://127.0.0.1"} {
		if _, _, err := discover(t.Context(), server, local.URL); err == nil || !strings.Contains(err.Error(), "must be asked by https") {
			t.Errorf("%s: got %v", server, err)
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

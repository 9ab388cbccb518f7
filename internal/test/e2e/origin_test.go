package e2e_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestPagesOfOtherOriginsCallAgents sends the requests of a browser for a page of another
// origin: a preflight without a key, the call itself, and a refusal, which a page can read
// only with the same header.
func TestPagesOfOtherOriginsCallAgents(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	ask := func(method, key string, header ...string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, agent.url+"/threads", strings.NewReader("{}"))
		check.Must(t, err)
		request.Header.Set("Origin", "https://chat.example.com")
		request.Header.Set("Content-Type", "application/json")
		if key != "" {
			request.Header.Set("X-Api-Key", key)
		}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		response, err := http.DefaultClient.Do(request)
		check.Must(t, err)
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		check.Must(t, response.Body.Close())
		if got := response.Header.Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("%s with key %t: status %d, Access-Control-Allow-Origin %q, want *", method, key != "", response.StatusCode, got)
		}
		return response
	}

	preflight := ask(http.MethodOptions, "",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,x-api-key")
	if preflight.StatusCode/100 != 2 {
		t.Errorf("the preflight is answered %d", preflight.StatusCode)
	}
	if methods := preflight.Header.Get("Access-Control-Allow-Methods"); !strings.Contains(methods, "POST") {
		t.Errorf("the preflight allows the methods %q", methods)
	}
	allowed := strings.ToLower(preflight.Header.Get("Access-Control-Allow-Headers"))
	if !strings.Contains(allowed, "x-api-key") || !strings.Contains(allowed, "content-type") {
		t.Errorf("the preflight allows the headers %q", allowed)
	}
	if created := ask(http.MethodPost, agent.server.APIKey); created.StatusCode != http.StatusOK {
		t.Errorf("a thread is answered %d", created.StatusCode)
	}
	if refused := ask(http.MethodPost, ""); refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("a call without a key is answered %d", refused.StatusCode)
	}
}

package agentserver_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestPagesMayCallAgents sends the preflight that a browser sends before a page's request with
// a key.
func TestPagesMayCallAgents(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	browser := map[string]string{"Origin": "https://app.test", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key"}
	asked := f.send(t, "OPTIONS", f.path("/threads"), nil, browser)
	if asked.StatusCode != http.StatusNoContent || asked.Header.Get("Access-Control-Allow-Origin") != "*" ||
		!strings.Contains(asked.Header.Get("Access-Control-Allow-Methods"), "POST") || asked.Header.Get("Access-Control-Allow-Headers") != "x-api-key" {
		t.Errorf("preflight: got %d %v", asked.StatusCode, asked.Header)
	}
	// The page can also read a refusal.
	refused := f.send(t, "POST", f.path("/threads"), map[string]any{}, map[string]string{"Origin": "https://app.test"})
	if refused.StatusCode != http.StatusUnauthorized || refused.Header.Get("Access-Control-Allow-Origin") != "*" ||
		!strings.Contains(refused.Header.Get("Access-Control-Expose-Headers"), "Content-Location") {
		t.Errorf("refusal: got %d %v", refused.StatusCode, refused.Header)
	}
}

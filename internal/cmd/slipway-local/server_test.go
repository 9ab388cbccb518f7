//go:build dynamo

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestServer serves the project's template with its functions; it needs Java and Maven for
// DynamoDB Local. Package e2e tests the use of such a server by clients.
func TestServer(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	want := func(c standalone.Credentials, path, key string, status int, text string) {
		t.Helper()
		response, body := get(t, c, path, key)
		if response.StatusCode != status || !strings.Contains(body, text) || response.Header.Get("X-Request-Id") == "" {
			t.Errorf("GET %s: got %d %s %v, want %d ...%s...", path, response.StatusCode, body, response.Header, status, text)
		}
	}

	first, c := p.start(t, "lambda", "--reconcile-interval", "1s")
	want(c, "/ok", "", http.StatusOK, `"ok":true`)
	want(c, "/v2/deployments", c.APIKey, http.StatusOK, `"resources":[]`)
	want(c, "/v2/deployments", c.APIKey+"x", http.StatusUnauthorized, `"detail"`)
	want(c, "/no/such/path", c.APIKey, http.StatusNotFound, `"detail"`)
	check.Must(t, first.Kill())

	second, again := p.start(t, "lambda", "--reconcile-interval", "1s")
	if again != c {
		t.Errorf("after a restart the credentials are %+v, before %+v", again, c)
	}
	want(c, "/v2/deployments", c.APIKey, http.StatusOK, `"resources":[]`)
	expectStop(t, second)
}

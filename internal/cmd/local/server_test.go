package local_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-run/slipway/internal/cmd/local"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestRunningIsAServerOfTheDataDirectory finds other programs at the address of a server that has
// ended.
func TestRunningIsAServerOfTheDataDirectory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   bool
	}{
		"the server":          {http.StatusOK, `{"ok":true}`, true},
		"another program":     {http.StatusOK, "<html></html>", false},
		"it has no such path": {http.StatusNotFound, "404 page not found", false},
		"it wants a password": {http.StatusUnauthorized, "", false},
	} {
		program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Api-Key") != "" {
				t.Errorf("%s: it is told the key", name)
			}
			w.WriteHeader(c.status)
			if _, err := w.Write([]byte(c.body)); err != nil {
				t.Error(err)
			}
		}))
		t.Cleanup(program.Close)
		data := t.TempDir()
		check.Must(t, standalone.WriteCredentials(data, standalone.Credentials{BaseURL: program.URL, APIKey: "slw_key", TenantID: "w"}))
		if server, runs, err := local.Running(t.Context(), data); err != nil || runs != c.want || runs != (server.Key == "slw_key") {
			t.Errorf("%s: got %+v, %t (%v)", name, server, runs, err)
		}
	}
}

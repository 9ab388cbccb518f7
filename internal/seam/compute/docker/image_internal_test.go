package docker

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moby/moby/client"
)

// TestAttackAnImageThatTheRegistryRefuses is on the machine, since somebody else's credentials have
// pulled it. It is used only where the registry does not answer.
func TestAttackAnImageThatTheRegistryRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		message string
		used    bool
	}{
		"401":                {http.StatusUnauthorized, "no", false},
		"403":                {http.StatusForbidden, "no", false},
		"a registry's words": {http.StatusInternalServerError, "Head https://registry.test/v2/agent/manifests/1: unauthorized: authentication required", false},
		"docker.io's words":  {http.StatusNotFound, "pull access denied for agent, repository does not exist or may require 'docker login'", false},
		"no registry":        {http.StatusInternalServerError, "dial tcp: lookup registry.test: no such host", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				text := `{"Id": "sha256:` + strings.Repeat("a", 64) + `"}`
				if strings.HasSuffix(r.URL.Path, "/images/create") {
					w.WriteHeader(c.status)
					text = `{"message": "` + c.message + `"}`
				}
				if _, err := w.Write([]byte(text)); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(server.Close)
			asked, err := client.New(client.WithHost("tcp://" + strings.TrimPrefix(server.URL, "http://")))
			if err != nil {
				t.Fatal(err)
			}
			e := &engine{cfg: Config{Log: slog.New(slog.DiscardHandler)}, client: asked}
			_, err = e.pin(t.Context(), "registry.test/agent:1", pullTag, keychain{})
			if used := err == nil; used != c.used {
				t.Errorf("the image is used: %v (%v), want %v", used, err, c.used)
			}
		})
	}
}

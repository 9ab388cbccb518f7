package docker

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moby/moby/client"
)

// TestAttackAnImageThatTheRegistryRefuses: the image is on the machine, because another
// party's credentials have pulled it. It is used only if the registry does not answer, however
// the release names it and whatever the release says about pulling.
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
				if strings.HasSuffix(r.URL.Path, "/images/create") || strings.Contains(r.URL.Path, "/distribution/") {
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
			barred := &engine{cfg: Config{Log: slog.New(slog.DiscardHandler), CheckRegistry: func(context.Context, string) error { return errors.New("not public") }}, client: asked}
			if _, err := barred.pin(t.Context(), "registry.test/agent:1", pullTag, keychain{}); err == nil {
				t.Error("the image is used whose registry may not be asked")
			}
			for _, image := range []string{"registry.test/agent:1", "registry.test/agent@sha256:" + strings.Repeat("a", 64)} {
				for policy, may := range map[string]bool{pullTag: c.used, pullIfNotPresent: c.used, pullNever: c.used, pullAlways: false} {
					_, err = e.pin(t.Context(), image, policy, keychain{})
					if used := err == nil; used != may {
						t.Errorf("%s with the policy %q is used: %v (%v), want %v", image, policy, used, err, may)
					}
				}
			}
		})
	}
}

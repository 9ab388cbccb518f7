package standalone_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestWebhooksOfARepository refuses addresses of runs and crons by the repository's rules, and
// sends messages with the repository's headers. The secret in a header is not logged.
func TestWebhooksOfARepository(t *testing.T) {
	t.Parallel()
	const secret = "planted-webhook-key"
	told := make(chan *http.Request, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r }))
	t.Cleanup(receiver.Close)
	program, err := os.Executable()
	check.Must(t, err)
	config, err := json.Marshal(map[string]any{
		"graphs": map[string]string{"agent": "a:b"}, "build": "true", "start": []string{program}, "env": map[string]string{"LG_WEBHOOK_FROM": "weather"},
		"webhooks": map[string]any{
			"url":     map[string]any{"require_https": false, "allowed_domains": []string{"127.0.0.1"}, "disable_loopback": false},
			"headers": map[string]string{"X-Key": "${{ env.LG_WEBHOOK_KEY }}", "X-From": "${{ env.LG_WEBHOOK_FROM }}"},
		},
	})
	check.Must(t, err)
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": string(config)})
	logged := new(strings.Builder)
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), PrivateAddresses: outbound.Everywhere, Log: slog.New(slog.NewTextHandler(logged, nil))})
	c := clientOf(credentials)

	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", creation(repo, computetest.Serve))
	c.await(t, newest(d), "DEPLOY_FAILED")
	failed := c.call(t, http.StatusOK, "GET", newest(d), nil)
	if failed["status_reason"] != "WEBHOOK_HEADER_UNSET" || !strings.Contains(fmt.Sprint(failed["status_message"]), "webhooks.headers.X-Key: the variable LG_WEBHOOK_KEY is not set") {
		t.Errorf("without the secret it is %v: %v", failed["status_reason"], failed["status_message"])
	}
	d = c.call(t, http.StatusOK, "PATCH", fmt.Sprintf("/v2/deployments/%s", d["id"]), map[string]any{"secrets": environment("AGENT", computetest.Serve, "LG_WEBHOOK_KEY", secret)})
	c.await(t, newest(d), "DEPLOYED")

	agent := fmt.Sprintf("/d/%s", d["id"])
	run := func(address string) map[string]any {
		return map[string]any{"assistant_id": "agent", "input": map[string]any{}, "webhook": address, "schedule": "0 0 1 1 *"}
	}
	for _, path := range []string{"/runs", "/runs/crons"} {
		refused := c.call(t, http.StatusBadRequest, "POST", agent+path, run("https://other.test/"))
		if words := fmt.Sprint(refused["detail"]); !strings.Contains(words, "webhook must not have the host") || !strings.Contains(words, "webhooks.url.allowed_domains") {
			t.Errorf("%s: refused with %q", path, words)
		}
	}
	// The agent knows no runs, so the run fails, and its end is told.
	c.call(t, http.StatusOK, "POST", agent+"/runs", run(receiver.URL))
	var got *http.Request
	select {
	case got = <-told:
	case <-time.After(time.Minute):
		t.Fatal("the end of the run is not told")
	}
	if got.Header.Get("X-Key") != secret || got.Header.Get("X-From") != "weather" || got.Header.Get("Webhook-Id") == "" {
		t.Errorf("the message has the headers %v", got.Header)
	}
	stop()
	if strings.Contains(logged.String(), secret) {
		t.Error("the server has logged the secret")
	}
}

package standalone_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackRedirectsInside has a permitted address redirect the server to a forbidden address:
// each kind of call is made, and no call follows the redirect.
func TestAttackRedirectsInside(t *testing.T) {
	t.Parallel()
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { trap.Close() })
	go func() {
		for {
			conn, err := trap.Accept()
			if err != nil {
				return
			}
			t.Errorf("the server called %s", conn.LocalAddr())
			conn.Close()
		}
	}()
	var calls atomic.Int32
	outside := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		calls.Add(1)
		http.Redirect(w, r, "http://"+trap.Addr().String()+"/x", http.StatusTemporaryRedirect)
	}))
	check.Must(t, outside.Listener.Close())
	outside.Listener, err = net.Listen("tcp", "127.0.0.2:0")
	check.Must(t, err)
	outside.Start()
	t.Cleanup(outside.Close)
	permitted := outbound.Networks{netip.MustParsePrefix("127.0.0.2/32")}
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), PrivateAddresses: permitted, Log: slog.New(slog.DiscardHandler)})
	defer stop()
	c := clientOf(credentials)
	called := func(what string) {
		t.Helper()
		if calls.Swap(0) == 0 {
			t.Errorf("%s: nobody was called", what)
		}
	}

	found, _ := ask(t, "POST", c.base+"/v2/auth/providers/mcp-discover", c.headers, map[string]any{"provider_id": "p", "name": "P", "mcp_server_url": outside.URL})
	if found < 400 {
		t.Errorf("a discovery that is sent on: got %d", found)
	}
	called("discovery")

	hook := c.call(t, http.StatusCreated, "POST", "/v2/webhooks", map[string]any{"url": outside.URL})
	path := fmt.Sprintf("/v2/webhooks/%s", hook["id"])
	c.call(t, http.StatusAccepted, "POST", path+"/test", map[string]any{})
	for again := time.NewTicker(20 * time.Millisecond); ; <-again.C {
		_, text := ask(t, "GET", c.base+path+"/deliveries", c.headers, nil)
		// Ids and times can have a 307, too.
		if strings.Contains(string(text), `"response_status":307`) {
			break
		}
		if strings.Contains(string(text), "public") { // the second guard, which sees addresses
			t.Fatalf("the webhook was sent on: %s", text)
		}
	}
	called("webhook")

	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", map[string]any{
		"name": "repository", "source": "github", "source_config": map[string]any{"repo_url": outside.URL + "/agent.git"},
		"source_revision_config": map[string]any{"repo_ref": "main", "framework_config_path": "framework.json"}, "secrets": []any{},
	})
	c.await(t, newest(d), "BUILD_FAILED")
	called("repository")
}

package standalone_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackTenantsThatAreNotKeptApart has two workspaces on a server whose agents and builds run
// as its own user. It runs code of the first workspace until there is a second workspace, and then
// only if the operator trusts the tenants.
func TestAttackTenantsThatAreNotKeptApart(t *testing.T) {
	t.Parallel()
	config := standalone.Config{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	credentials, stop := serveWith(t, config)
	request := creation(agents(t, "true"), computetest.Serve)
	first := clientOf(credentials)
	first.await(t, newest(first.call(t, http.StatusCreated, "POST", "/v2/deployments", request)), "DEPLOYED")
	_, stranger := others(t, config.Data, credentials)
	refused := newest(stranger.call(t, http.StatusCreated, "POST", "/v2/deployments", request))
	stranger.await(t, refused, "BUILD_FAILED")
	if why := fmt.Sprint(stranger.call(t, http.StatusOK, "GET", refused, nil)["status_message"]); !strings.Contains(why, "--trust-agents") {
		t.Errorf("the build is refused with %q", why)
	}
	stop()

	var said bytes.Buffer
	config.Log = slog.New(slog.NewTextHandler(&said, nil))
	_, stop = serveWith(t, config)
	stop()
	if got := strings.Count(said.String(), "no agents and builds run as processes"); got != 1 {
		t.Errorf("the log of the next server says it %d times, want 1:\n%s", got, &said)
	}

	config.TrustAgents, config.Log = true, slog.New(slog.DiscardHandler)
	credentials, stop = serveWith(t, config)
	defer stop()
	stranger.base, request["name"] = credentials.BaseURL, "another"
	stranger.await(t, newest(stranger.call(t, http.StatusCreated, "POST", "/v2/deployments", request)), "DEPLOYED")
}

// TestTheLogSaysWhatIsNotLimited checks that the log says it once, if the system cannot limit
// agents.
func TestTheLogSaysWhatIsNotLimited(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	server, err := standalone.Open(standalone.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(&said, nil))})
	check.Must(t, err)
	check.Must(t, server.Close(t.Context()))
	want := 0
	if child.CanLimit() != nil {
		want = 1
	}
	if got := strings.Count(said.String(), "cannot bound the processors, memory and processes"); got != want {
		t.Errorf("it is said %d times, want %d:\n%s", got, want, &said)
	}
}

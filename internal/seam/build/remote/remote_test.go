package remote_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/build/remote"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
}

const token = "token-of-the-host"

// newHost serves a builder and returns its URL.
func newHost(t *testing.T) (url string) {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil))
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	builder, err := local.New(local.Config{Dir: filepath.Join(dir, "builds"), Logs: logs, Log: log, LocalRepositories: true})
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, builder.Close()) })
	host, err := agenthost.New(agenthost.Config{Dir: filepath.Join(dir, "releases"), Token: token, Builder: builder, Log: log})
	check.Must(t, err)
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	return server.URL
}

func dial(t *testing.T, url, token string) *remote.Builder {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return remote.New(url, token, &http.Client{Transport: transport})
}

func TestBuilder(t *testing.T) {
	t.Parallel()
	buildtest.Run(t, func(t *testing.T) build.Builder { return dial(t, newHost(t), token) })
}

func TestHostRefuses(t *testing.T) {
	t.Parallel()
	builder, spec := dial(t, newHost(t), "another"), buildtest.NewSpec("file:///nowhere")
	_, awaitErr := builder.Await(t.Context(), spec.Revision)
	for operation, err := range map[string]error{
		"Start": builder.Start(t.Context(), spec), "Await": awaitErr, "Remove": builder.Remove(t.Context(), spec.Revision),
	} {
		if err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
			t.Errorf("%s: got %v", operation, err)
		}
	}
}

// TestAwaitAsksAgain uses a host whose long polls end before there is a result.
func TestAwaitAsksAgain(t *testing.T) {
	t.Parallel()
	polls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		polls++
		state := build.Running
		if polls == 3 {
			state = build.Succeeded
		}
		w.Write([]byte(`{"state":"` + string(state) + `"}`))
	}))
	t.Cleanup(server.Close)
	result, err := dial(t, server.URL, token).Await(t.Context(), buildtest.NewSpec("").Revision)
	if err != nil || result.State != build.Succeeded || polls != 3 {
		t.Errorf("got %+v, %v after %d polls", result, err, polls)
	}
}

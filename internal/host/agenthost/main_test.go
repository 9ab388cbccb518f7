package agenthost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/seam/compute/remote"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/wire"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) {
	computetest.Main()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
}

const token = "token-of-the-host"

// machine is a host with a target of processes, as long as it is not shut down.
type machine struct {
	*remote.Target
	host *agenthost.Host
	url  string
	log  *check.Log
	shut func()
}

// newMachine starts a host on the files of the directory.
func newMachine(t *testing.T, dir string, adjust ...func(*agenthost.Config)) machine {
	t.Helper()
	log := &check.Log{}
	logger := slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), &slog.HandlerOptions{Level: slog.LevelDebug}))
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	processes, err := process.New(process.Config{
		Dir: filepath.Join(dir, "agents"), Logs: logs, Log: logger, Limits: replica.Limits{RestartMin: time.Millisecond, RestartMax: 20 * time.Millisecond},
	})
	check.Must(t, err)
	key := fixtures.KeyAt(t, filepath.Join(dir, "key"))
	cfg := agenthost.Config{Dir: filepath.Join(dir, "releases"), Sealer: key, Token: token, Target: processes, Log: logger}
	for _, change := range adjust {
		change(&cfg)
	}
	host, err := agenthost.New(cfg)
	check.Must(t, err)
	server := httptest.NewServer(host)
	transport := &http.Transport{}
	shut := sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		server.Close()
		host.Close()
		check.Must(t, processes.Close(context.Background()))
	})
	t.Cleanup(shut)
	client := &http.Client{Transport: transport}
	return machine{remote.New(server.URL, token, computetest.Hasher{}, client), host, server.URL, log, shut}
}

// request sends a request and returns the answer's status and the sentence in it.
func request(t *testing.T, method, url, token string, body any) (int, string) {
	t.Helper()
	encoded, err := json.Marshal(body)
	check.Must(t, err)
	r, err := http.NewRequestWithContext(patience(t), method, url, bytes.NewReader(encoded))
	check.Must(t, err)
	r.Close = true
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	check.Must(t, err)
	defer response.Body.Close()
	var problem wire.Problem
	answer, err := io.ReadAll(response.Body)
	check.Must(t, err)
	_ = json.Unmarshal(answer, &problem) // an answer without a sentence has none
	return response.StatusCode, problem.Detail
}

func pathOf(route string, r compute.Ref) string {
	return wire.Path(route, r.Workspace, r.Deployment, r.Revision)
}

func (m machine) healthy(t *testing.T, r compute.Release) compute.Endpoint {
	t.Helper()
	m.want(t, r, compute.Healthy)
	endpoint, done, err := m.Acquire(patience(t), r.Ref)
	check.Must(t, err)
	done()
	return endpoint
}

func (m machine) want(t *testing.T, r compute.Release, want compute.State) {
	t.Helper()
	if got, err := m.Await(patience(t), r.Ref); err != nil || got.State != want {
		t.Errorf("release is %+v, %v; want %s", got, err, want)
	}
}

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

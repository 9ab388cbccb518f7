package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
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
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) {
	computetest.Main()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
}

const token = "token-of-the-host"

// newTarget returns a target that calls a host of processes.
func newTarget(t *testing.T) *remote.Target {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil))
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	var host *agenthost.Host
	processes, err := process.New(process.Config{
		Dir: filepath.Join(dir, "agents"), Logs: logs, Log: log, Limits: replica.Limits{RestartMin: time.Millisecond, RestartMax: 20 * time.Millisecond},
		Alarm: func(ctx context.Context, ref compute.Ref, status compute.Status) { host.Alarm(ctx, ref, status) },
	})
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, processes.Close(context.Background())) })
	key := fixtures.Key(t)
	host, err = agenthost.New(agenthost.Config{
		Dir: filepath.Join(dir, "releases"), Sealer: key, Token: token, Target: processes, Log: log,
	})
	check.Must(t, err)
	t.Cleanup(host.Close)
	return dial(t, serve(t, host), token)
}

func serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func dial(t *testing.T, url, token string) *remote.Target {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return remote.New(url+"/", token, computetest.Hasher{}, &http.Client{Transport: transport})
}

func TestTarget(t *testing.T) {
	t.Parallel()
	computetest.Run(t, func(t *testing.T) compute.Target { return newTarget(t) })
	computetest.RunRestart(t, func(t *testing.T) compute.Target { return newTarget(t) })
}

// TestInvocationOfALostRelease acquires before the release goes: the graph client must learn that
// another attempt may succeed.
func TestInvocationOfALostRelease(t *testing.T) {
	t.Parallel()
	target, r := newTarget(t), computetest.NewRelease(computetest.Serve)
	check.Must(t, target.Apply(t.Context(), r))
	_, err := target.Await(t.Context(), r.Ref)
	check.Must(t, err)
	endpoint, done, err := target.Acquire(t.Context(), r.Ref)
	check.Must(t, err)
	defer done()
	transport := graph.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	client := graph.NewClient(transport)
	response, err := (&http.Client{Transport: transport}).Get(endpoint.URL + "/ping")
	check.Must(t, err)
	check.Must(t, response.Body.Close())
	if response.StatusCode != http.StatusOK {
		t.Errorf("GET /ping: got %s", response.Status)
	}
	check.Must(t, target.Remove(t.Context(), r.Ref))
	_, err = client.Invoke(t.Context(), endpoint, graph.Invocation{Graph: "agent"})
	if _, ok := errors.AsType[*graph.AbsentError](err); !ok {
		t.Errorf("Invoke: got %v, want that no agent answers", err)
	}
}

func TestHostRefuses(t *testing.T) {
	t.Parallel()
	r := computetest.NewRelease(computetest.Serve)
	elsewhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hello", http.StatusTeapot) }))
	nobody := httptest.NewServer(nil)
	nobody.Close()
	guarded := serve(t, check.Value(agenthost.New(agenthost.Config{Dir: t.TempDir(), Token: token, Log: slog.New(slog.DiscardHandler)})))
	for name, c := range map[string]struct {
		target *remote.Target
		want   string
	}{
		"wrong token":   {dial(t, guarded, "another"), "401 Unauthorized: The bearer token"},
		"no token":      {dial(t, guarded, ""), "401 Unauthorized: The bearer token"},
		"no host there": {dial(t, elsewhere, token), "418 I'm a teapot: it is no agent host"},
		"nobody there":  {dial(t, nobody.URL, token), "connection refused"},
	} {
		_, awaitErr := c.target.Await(t.Context(), r.Ref)
		_, restartErr := c.target.AwaitRestart(t.Context(), r.Ref, r.Revision)
		for operation, err := range map[string]error{
			"Apply": c.target.Apply(t.Context(), r), "Await": awaitErr, "Remove": c.target.Remove(t.Context(), r.Ref),
			"Restart": c.target.Restart(t.Context(), r, r.Revision), "AwaitRestart": restartErr,
		} {
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), token) {
				t.Errorf("%s: %s: got %v, want %q", name, operation, err, c.want)
			}
		}
	}
}

// TestAwaitAsksAgain has a host whose long polls end before there is a result.
func TestAwaitAsksAgain(t *testing.T) {
	t.Parallel()
	polls := 0
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		polls++
		if got := r.URL.Query().Get("wait"); got != "20s" {
			t.Errorf("poll %d waits %s", polls, got)
		}
		state := "progressing"
		if polls == 3 {
			state = "healthy"
		}
		w.Write([]byte(`{"State":"` + state + `"}`))
	}))
	status, err := dial(t, url, token).Await(t.Context(), computetest.NewRelease("").Ref)
	if err != nil || status.State != compute.Healthy || polls != 3 {
		t.Errorf("got %v, %v after %d polls", status, err, polls)
	}
}

// TestAwaitOfASilentHost checks that a caller whose time is over does not wait any longer for
// a host that does not answer.
func TestAwaitOfASilentHost(t *testing.T) {
	t.Parallel()
	polls := make(chan string, 8)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		polls <- r.URL.Query().Get("wait")
		cancel()
		<-r.Context().Done()
	}))
	_, err := dial(t, url, token).Await(ctx, computetest.NewRelease("").Ref)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if first, last := <-polls, <-polls; first != "20s" || last != "0s" {
		t.Errorf("polls wait %s and %s", first, last)
	}
}

// TestTheHostTellsOfAgentsThatEnded asks the host as reconcile's timer does. The host does not
// report an end again, unless the agent ends again.
func TestTheHostTellsOfAgentsThatEnded(t *testing.T) {
	t.Parallel()
	target := newTarget(t)
	steady, bad := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve, "LATER=exit")
	check.Must(t, target.Apply(t.Context(), steady))
	check.Must(t, target.Apply(t.Context(), bad))
	ask := func() (told []compute.Status) {
		t.Helper()
		check.Must(t, target.Ends(t.Context(), func(_ context.Context, ref compute.Ref, status compute.Status) {
			if ref != bad.Ref {
				t.Errorf("told of %+v", ref)
			}
			told = append(told, status)
		}))
		return told
	}
	// The agent ends time and again. When it has relapsed, it has ended three times, and the
	// host reports one of these ends.
	_, err := target.AwaitRelapse(t.Context(), bad.Ref)
	check.Must(t, err)
	told := ask()
	if len(told) != 1 || told[0].Reason != compute.ReasonEnded || !strings.Contains(told[0].Message, "exited with code 9") {
		t.Errorf("got %+v", told)
	}
	check.Must(t, target.Remove(t.Context(), bad.Ref))
	_, err = target.Await(t.Context(), bad.Ref)
	check.Must(t, err)
	ask() // the ends until then
	if told = ask(); len(told) != 0 {
		t.Errorf("told again: %+v", told)
	}
}

// TestTheHostMindsReleases asks about a release that stays, about a release that ends time and
// again, and about a release that is not there.
func TestTheHostMindsReleases(t *testing.T) {
	t.Parallel()
	target := newTarget(t)
	steady, bad := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve, "LATER=exit")
	for _, release := range []compute.Release{steady, bad} {
		check.Must(t, target.Apply(t.Context(), release))
	}
	if why, err := target.AwaitRelapse(t.Context(), bad.Ref); err != nil || !strings.Contains(why, "3 times") {
		t.Errorf("got %q, %v", why, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if why, err := target.AwaitRelapse(over, steady.Ref); err != nil || why != "" {
		t.Errorf("got %q, %v", why, err)
	}
	if why, err := target.AwaitRelapse(t.Context(), computetest.NewRelease(computetest.Serve).Ref); err == nil {
		t.Errorf("got %q of a release that is not there", why)
	}
}

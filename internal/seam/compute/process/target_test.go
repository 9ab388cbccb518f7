package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
)

// machine is a target with its logs.
type machine struct {
	*process.Target
	logs *files.Logs
	dir  string
}

func newMachine(t *testing.T, adjust ...func(*process.Config)) machine {
	t.Helper()
	dir := t.TempDir()
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	cfg := process.Config{
		Dir: filepath.Join(dir, "agents"), Logs: logs, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Limits: replica.Limits{RestartMin: time.Millisecond, RestartMax: 20 * time.Millisecond},
	}
	for _, change := range adjust {
		change(&cfg)
	}
	target, err := process.New(cfg)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, target.Close(context.Background())) })
	return machine{target, logs, cfg.Dir}
}

// ask invokes the agent.
func ask(t *testing.T, endpoint compute.Endpoint, words string) string {
	t.Helper()
	answer, err := computetest.Ask(patience(t), endpoint, words)
	check.Must(t, err)
	return answer
}

// patience bounds the waits of a test.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (m machine) apply(t *testing.T, r compute.Release) {
	t.Helper()
	check.Must(t, m.Apply(t.Context(), r))
}

// want waits for the release's status.
func (m machine) want(t *testing.T, r compute.Release, state compute.State, reason string) compute.Status {
	t.Helper()
	got, err := m.Await(patience(t), r.Ref)
	if err != nil || got.State != state || got.Reason != reason {
		t.Fatalf("release is %s %s %q, %v; want %s %s", got.State, got.Reason, got.Message, err, state, reason)
	}
	return got
}

func (m machine) acquire(t *testing.T, r compute.Release) (compute.Endpoint, func()) {
	t.Helper()
	endpoint, done, err := m.Acquire(patience(t), r.Ref)
	check.Must(t, err)
	return endpoint, done
}

// wantUnavailable checks that a release is not available, and why.
func (m machine) wantUnavailable(t *testing.T, ctx context.Context, r compute.Release, want compute.State) {
	t.Helper()
	_, _, err := m.Acquire(ctx, r.Ref)
	var unavailable *compute.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Status.State != want || unavailable.Ref != r.Ref {
		t.Errorf("Acquire: got %v, want an UnavailableError with %s", err, want)
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	computetest.Run(t, func(t *testing.T) compute.Target { return newMachine(t) })
	computetest.RunRestart(t, func(t *testing.T) compute.Target { return newMachine(t) })
}

func TestAgentGetsACleanEnvironment(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve, "FROM=artifact", "BOTH=artifact", "SLIPWAY_INVOKE_TOKEN=forged")
	r.Env = map[string]string{"BOTH": "release", "PORT": "1", "HOST": "0.0.0.0"}
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	endpoint, done := m.acquire(t, r)
	defer done()
	var environ []string
	check.Must(t, json.Unmarshal([]byte(ask(t, endpoint, "environment")), &environ))
	got := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		got[name] = value
	}
	home := filepath.Join(m.dir, "releases", r.Revision)
	want := map[string]string{
		"AGENT": "serve", "FROM": "artifact", "BOTH": "release", "HOST": "127.0.0.1", "PORT": endpoint.URL[len("http://127.0.0.1:"):],
		"SLIPWAY_INVOKE_TOKEN": r.Token, "PATH": os.Getenv("PATH"), "HOME": home + "/home", "TMPDIR": home + "/tmp",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
		delete(got, name)
	}
	delete(got, "SLIPWAY_PROCESS")
	delete(got, "SLIPWAY_SOCKET")
	if len(got) > 0 {
		t.Errorf("the agent also has %v", got)
	}
	for _, dir := range []string{want["HOME"], want["TMPDIR"]} {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestOutputGoesToTheRuntimeLogWithoutSecrets(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	r.Env["SECRET"] = "open-sesame"
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	check.Must(t, m.Close(t.Context()))
	page, err := m.logs.Read(t.Context(), revisionlog.Log{Revision: r.Revision, Kind: revisionlog.Deploy}, revisionlog.Query{Limit: 10})
	check.Must(t, err)
	lines := page.Lines
	if len(lines) != 1 || lines[0].Message != "serving with ***" {
		t.Errorf("got %+v, want one line without the secret", lines)
	}
}

func TestPortTakenMeanwhileIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease("rival")
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
}

// wantSilence waits until no program listens at the agent's endpoint.
func wantSilence(t *testing.T, endpoint compute.Endpoint) {
	t.Helper()
	eventually(t, "the agent still listens", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(endpoint.URL, "http://"))
		if err != nil {
			return true
		}
		check.Must(t, conn.Close())
		return false
	})
}

func wantErased(t *testing.T, path string) {
	t.Helper()
	eventually(t, path+" is still there", func() bool {
		_, err := os.Stat(path)
		return errors.Is(err, os.ErrNotExist)
	})
}

// eventually asks again and again until the condition holds.
func eventually(t *testing.T, complaint string, holds func() bool) {
	t.Helper()
	ctx := patience(t)
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal(complaint)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

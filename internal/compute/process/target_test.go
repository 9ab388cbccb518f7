package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/compute/process"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

// machine is a target with its logs.
type machine struct {
	*process.Target
	logs *revisionlog.Logs
	dir  string
}

func newMachine(t *testing.T, adjust ...func(*process.Config)) machine {
	t.Helper()
	dir := t.TempDir()
	logs, err := revisionlog.Open(filepath.Join(dir, "logs"), clock.System)
	must(t, err)
	cfg := process.Config{
		Dir: filepath.Join(dir, "agents"), Logs: logs, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		RestartMin: time.Millisecond, RestartMax: 20 * time.Millisecond,
	}
	for _, change := range adjust {
		change(&cfg)
	}
	target, err := process.New(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, target.Close(context.Background())) })
	return machine{target, logs, cfg.Dir}
}

// newRelease returns a release of one of the agents of the test binary.
func newRelease(agent string, env ...string) compute.Release {
	r := compute.Release{
		Ref:      compute.Ref{Workspace: id.New(time.Now()), Deployment: id.New(time.Now()), Revision: id.New(time.Now())},
		Artifact: build.Artifact{Dir: os.TempDir(), Start: []string{program()}, Env: map[string]string{"AGENT": agent}},
		Env:      map[string]string{},
		Token:    "token-of-the-release",
	}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		r.Artifact.Env[name] = value
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience bounds what a test waits for.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (m machine) apply(t *testing.T, r compute.Release) {
	t.Helper()
	must(t, m.Apply(t.Context(), r))
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
	must(t, err)
	return endpoint, done
}

// wantUnavailable checks that a release cannot be had, and why.
func (m machine) wantUnavailable(t *testing.T, ctx context.Context, r compute.Release, want compute.State) {
	t.Helper()
	_, _, err := m.Acquire(ctx, r.Ref)
	var unavailable *compute.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Status.State != want || unavailable.Ref != r.Ref {
		t.Errorf("Acquire: got %v, want an UnavailableError with %s", err, want)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	must(t, err)
	body, err := io.ReadAll(response.Body)
	must(t, errors.Join(err, response.Body.Close()))
	http.DefaultClient.CloseIdleConnections()
	return string(body)
}

// crash makes the agent end; there is no answer to wait for.
func crash(t *testing.T, url string) {
	t.Helper()
	response, err := http.Post(url+"/crash", "", nil)
	if err == nil {
		must(t, response.Body.Close())
		t.Fatal("the agent answered instead of ending")
	}
}

func TestHealthyReleaseAnswers(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("serve")
	if got, err := m.Await(t.Context(), r.Ref); err != nil || got.State != compute.Absent {
		t.Errorf("before Apply: got %v, %v; want absent", got, err)
	}
	began := time.Now()
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	t.Logf("healthy after %s", time.Since(began))
	endpoint, done := m.acquire(t, r)
	defer done()
	if endpoint.Token != r.Token || !strings.HasPrefix(endpoint.URL, "http://127.0.0.1:") {
		t.Errorf("got endpoint %+v", endpoint)
	}
	pid := get(t, endpoint.URL+"/pid")
	m.apply(t, r)
	if again := get(t, endpoint.URL+"/pid"); again != pid {
		t.Errorf("a second Apply replaced process %s by %s", pid, again)
	}
}

func TestAgentGetsACleanEnvironment(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("serve", "FROM=artifact", "BOTH=artifact", "SLIPWAY_INVOKE_TOKEN=forged")
	r.Env = map[string]string{"BOTH": "release", "PORT": "1", "HOST": "0.0.0.0"}
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	endpoint, done := m.acquire(t, r)
	defer done()
	var environ []string
	must(t, json.Unmarshal([]byte(get(t, endpoint.URL+"/environment")), &environ))
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
	m, r := newMachine(t), newRelease("serve")
	r.Env["SECRET"] = "open-sesame"
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	must(t, m.Close(t.Context()))
	lines, err := m.logs.Tail(r.Revision, revisionlog.Deploy, 10)
	must(t, err)
	if len(lines) != 1 || lines[0].Message != "serving with ***" {
		t.Errorf("got %+v, want one line without the secret", lines)
	}
}

func TestAwaitReportsProgressWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("deaf")
	m.apply(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := m.Await(ctx, r.Ref); err != nil || got.State != compute.Progressing {
		t.Errorf("got %v, %v; want progressing", got, err)
	}
	m.wantUnavailable(t, ctx, r, compute.Progressing)
}

func TestPortTakenMeanwhileIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("rival")
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
}

func TestFailedReleaseIsTriedAnew(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("serve", "CRASH_ONCE=1")
	m.apply(t, r)
	m.want(t, r, compute.Failed, compute.ReasonStartFailed)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
}

func TestCrashedAgentIsRestarted(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("serve")
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	for range 3 {
		endpoint, done := m.acquire(t, r)
		pid := get(t, endpoint.URL+"/pid")
		crash(t, endpoint.URL)
		done()
		// The target may not have seen the end yet; it is seen when an invocation finds nobody.
		for restarted := false; !restarted; {
			endpoint, done = m.acquire(t, r)
			response, err := http.Get(endpoint.URL + "/pid")
			if err == nil {
				body, err := io.ReadAll(response.Body)
				must(t, errors.Join(err, response.Body.Close()))
				restarted = string(body) != pid
			}
			done()
		}
	}
}

func TestApplyRefusesWhatIsNotAnID(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("serve")
	r.Revision = "../up"
	if err := m.Apply(t.Context(), r); err == nil {
		t.Error("got no error")
	}
}

// wantSilence waits until nobody listens where the agent did.
func wantSilence(t *testing.T, endpoint compute.Endpoint) {
	t.Helper()
	eventually(t, "the agent still listens", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(endpoint.URL, "http://"))
		if err != nil {
			return true
		}
		must(t, conn.Close())
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

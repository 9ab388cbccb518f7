package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/build/local"
	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

// machine is a builder with its logs.
type machine struct {
	*local.Builder
	logs *revisionlog.Logs
	cfg  local.Config
}

func newMachine(t *testing.T, adjust ...func(*local.Config)) machine {
	t.Helper()
	return openMachine(t, t.TempDir(), adjust...)
}

func openMachine(t *testing.T, dir string, adjust ...func(*local.Config)) machine {
	t.Helper()
	logs, err := revisionlog.Open(filepath.Join(dir, "logs"), clock.System)
	must(t, err)
	cfg := local.Config{Dir: filepath.Join(dir, "builds"), Logs: logs, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, change := range adjust {
		change(&cfg)
	}
	b, err := local.New(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return machine{b, logs, cfg}
}

// newSpec builds the branch main of the repository.
func newSpec(url string) build.Spec {
	return build.Spec{
		Workspace: id.New(time.Now()), Deployment: id.New(time.Now()), Revision: id.New(time.Now()),
		RepoURL: url, Ref: "main", ConfigPath: "framework.json",
	}
}

// framework is a configuration file with a build command.
func framework(command string) string {
	data, err := json.Marshal(map[string]any{
		"graphs": map[string]string{"agent": "agent.go:agent"}, "build": command, "start": []string{"./agent"},
	})
	check(err)
	return string(data)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func deadline(t *testing.T) time.Time {
	t.Helper()
	return time.Now().Add(30 * time.Second)
}

func (m machine) start(t *testing.T, spec build.Spec) {
	t.Helper()
	must(t, m.Start(t.Context(), spec))
}

func (m machine) await(t *testing.T, spec build.Spec) build.Result {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), deadline(t))
	defer cancel()
	result, err := m.Await(ctx, spec.Revision)
	must(t, err)
	return result
}

// build runs a build that must succeed.
func (m machine) build(t *testing.T, spec build.Spec) build.Result {
	t.Helper()
	m.start(t, spec)
	result := m.await(t, spec)
	if result.State != build.Succeeded {
		t.Fatalf("build is %s %s %q; want succeeded", result.State, result.Reason, result.Message)
	}
	return result
}

// wantFailure runs a build that must fail and checks what it says.
func (m machine) wantFailure(t *testing.T, spec build.Spec, reason string, words ...string) build.Result {
	t.Helper()
	m.start(t, spec)
	result := m.await(t, spec)
	if result.State != build.Failed || result.Reason != reason {
		t.Fatalf("build is %s %s %q; want failed %s", result.State, result.Reason, result.Message, reason)
	}
	for _, want := range words {
		if !strings.Contains(result.Message, want) {
			t.Errorf("message %q does not say %q", result.Message, want)
		}
	}
	return result
}

// log returns the build log as text.
func (m machine) log(t *testing.T, spec build.Spec) string {
	t.Helper()
	lines, err := m.logs.Tail(spec.Revision, revisionlog.Build, 1000)
	must(t, err)
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(line.Message + "\n")
	}
	return text.String()
}

// newGate makes a FIFO: a command that reads it waits until the test opens it.
func newGate(t *testing.T) (path string, open func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gate")
	must(t, syscall.Mkfifo(path, 0o600))
	return path, func() { must(t, os.WriteFile(path, []byte("go on\n"), 0)) }
}

func TestBuild(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := newRepo(t, map[string]string{
		"service/framework.json": `{"graphs": {"b": "./agent.go:b", "a": {"path": "agent.go:a"}}, "build": "echo building; cp agent.go agent",
			"start": "./agent --serve", "env": {"GREETING": "hello"}}`,
		"service/agent.go": "package main",
	})
	spec := newSpec(r.url())
	spec.ConfigPath = "service/framework.json"
	if got := m.await(t, spec); got.State != build.Absent {
		t.Errorf("before Start: got %s, want absent", got.State)
	}
	got := m.build(t, spec)
	dir := filepath.Join(m.cfg.Dir, "revisions", spec.Revision, "src", "service")
	want := build.Result{
		State: build.Succeeded, CommitSHA: r.git("rev-parse", "HEAD"),
		Artifact: build.Artifact{
			Dir: dir, Start: []string{"sh", "-c", "exec ./agent --serve"}, Env: map[string]string{"GREETING": "hello"}, Graphs: []string{"a", "b"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "agent")); err != nil {
		t.Errorf("the build command's file: %v", err)
	}
	for _, words := range []string{"cloning " + r.url() + " at main\n", "commit " + want.CommitSHA + "\n", "\nbuilding\n", "built in "} {
		if log := m.log(t, spec); !strings.Contains(log, words) {
			t.Errorf("log %q does not say %q", log, words)
		}
	}
}

func TestBuildCommandHasACleanEnvironment(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRepo(t, map[string]string{"framework.json": framework("env >environment")})
	spec := newSpec(r.url())
	result := m.build(t, spec)
	data, err := os.ReadFile(filepath.Join(result.Artifact.Dir, "environment"))
	must(t, err)
	got := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	want := map[string]string{
		"PATH": os.Getenv("PATH"), "GOFLAGS": "-mod=mod", "CI": "true",
		"HOME":   filepath.Join(m.cfg.Dir, "cache", spec.Workspace),
		"TMPDIR": filepath.Join(m.cfg.Dir, "revisions", spec.Revision, "tmp"),
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	for _, name := range []string{"PLANTED_SERVER_SECRET", "GIT_ASKPASS"} {
		if value, ok := got[name]; ok {
			t.Errorf("the build sees the server's %s=%s", name, value)
		}
	}
}

func TestBuildsOfAWorkspaceShareACache(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := newRepo(t, map[string]string{"framework.json": framework(`ls ~; touch ~/downloaded "$TMPDIR/left"`)})
	first, second, stranger := newSpec(r.url()), newSpec(r.url()), newSpec(r.url())
	second.Workspace = first.Workspace
	for _, spec := range []build.Spec{first, second, stranger} {
		m.build(t, spec)
		found := strings.Contains(m.log(t, spec), "\ndownloaded\n")
		if want := spec == second; found != want {
			t.Errorf("finds the cache: %v, want %v", found, want)
		}
		if _, err := os.Stat(filepath.Join(m.cfg.Dir, "revisions", spec.Revision, "tmp")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("temporary files are left: %v", err)
		}
	}
}

func TestBuildCommandFails(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := newRepo(t, map[string]string{"framework.json": framework("seq 1 60; echo syntax error >&2; exit 3")})
	spec := newSpec(r.url())
	got := m.wantFailure(t, spec, build.ReasonBuildCommandFailed, "exited with code 3", "seq 1 60", "\n59\n60\nsyntax error")
	if strings.Contains(got.Message, "\n20\n") {
		t.Errorf("message %q has more than the last 40 lines", got.Message)
	}
	if got.CommitSHA != r.git("rev-parse", "HEAD") {
		t.Errorf("commit is %q, want it in a failure too", got.CommitSHA)
	}
	if again := m.await(t, spec); again.Message != got.Message {
		t.Errorf("second Await: got %+v, want %+v", again, got)
	}
}

func TestBuildCommandThatCannotRun(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := newRepo(t, map[string]string{"framework.json": `{"graphs": {"a": "a:b"}, "build": ["no-such-compiler"], "start": "true"}`})
	m.wantFailure(t, newSpec(r.url()), build.ReasonBuildCommandFailed, "code 127", "no-such-compiler")
}

func TestBuildCommandTakesTooLong(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.Timeout = 4 * time.Second })
	calls := newSwitchboard(t)
	r := newRepo(t, map[string]string{"framework.json": framework("echo compiling; " + calls.caller() + " & wait")})
	m.wantFailure(t, newSpec(r.url()), build.ReasonBuildTimeout, "stopped after 4s", "compiling")
	calls.accept(t)()
}

func TestFailedBuildIsTriedAnew(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := newRepo(t, map[string]string{"framework.json": framework("test ! -e left && touch left && exit 1")})
	spec := newSpec(r.url())
	m.wantFailure(t, spec, build.ReasonBuildCommandFailed)
	m.wantFailure(t, spec, build.ReasonBuildCommandFailed, "exited with code 1")
	r.commit(map[string]string{"framework.json": framework("test ! -e left")})
	m.build(t, spec)
}

func TestRemoveEndsARunningBuild(t *testing.T) {
	t.Parallel()
	m, calls := newMachine(t), newSwitchboard(t)
	r := newRepo(t, map[string]string{"framework.json": framework(calls.caller() + " & wait")})
	spec := newSpec(r.url())
	m.start(t, spec)
	wantDeath := calls.accept(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := m.Await(ended, spec.Revision); err != nil || got.State != build.Running {
		t.Errorf("Await without time: got %s, %v; want running", got.State, err)
	}
	must(t, m.Remove(t.Context(), spec.Revision))
	wantDeath()
	if got := m.await(t, spec); got.State != build.Absent {
		t.Errorf("after Remove: got %s, want absent", got.State)
	}
	if _, err := os.Stat(filepath.Join(m.cfg.Dir, "revisions", spec.Revision)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
	must(t, m.Remove(t.Context(), spec.Revision))
}

func TestStartIsIdempotent(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	count := filepath.Join(t.TempDir(), "count")
	r := newRepo(t, map[string]string{"framework.json": framework("echo built >>" + count)})
	spec := newSpec(r.url())
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if err := m.Start(t.Context(), spec); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	first := m.await(t, spec)
	again := m.build(t, spec)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("second build (-first +second):\n%s", diff)
	}
	if got, err := os.ReadFile(count); err != nil || string(got) != "built\n" {
		t.Errorf("built %q, %v; want once", got, err)
	}
}

func TestBuildsWaitInOrder(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.Places = 1 })
	gate, open := newGate(t)
	order := filepath.Join(t.TempDir(), "order")
	first := newSpec(newRepo(t, map[string]string{"framework.json": framework("read go <" + gate)}).url())
	m.start(t, first)
	want := ""
	var waiting []build.Spec
	for i := range 5 {
		r := newRepo(t, map[string]string{"framework.json": framework(fmt.Sprintf("echo %d >>%s", i, order))})
		spec := newSpec(r.url())
		m.start(t, spec)
		waiting = append(waiting, spec)
		if i != 2 {
			want += fmt.Sprintln(i)
		}
	}
	must(t, m.Remove(t.Context(), waiting[2].Revision))
	open()
	for i, spec := range waiting {
		if got := m.await(t, spec); i != 2 && got.State != build.Succeeded || i == 2 && got.State != build.Absent {
			t.Errorf("build %d: %s %s", i, got.State, got.Message)
		}
	}
	if got, err := os.ReadFile(order); err != nil || string(got) != want {
		t.Errorf("order %q, %v; want %q", got, err, want)
	}
}

func TestStartRefusesWhatIsNotAnID(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	spec := newSpec("file:///nowhere")
	spec.Revision = "../up"
	if err := m.Start(t.Context(), spec); err == nil {
		t.Error("Start: got no error")
	}
	if _, err := m.Await(t.Context(), spec.Revision); err == nil {
		t.Error("Await: got no error")
	}
	if err := m.Remove(t.Context(), spec.Revision); err == nil {
		t.Error("Remove: got no error")
	}
}

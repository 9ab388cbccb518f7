package local_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
)

// machine is a builder with its logs.
type machine struct {
	*local.Builder
	logs *files.Logs
	cfg  local.Config
}

func newMachine(t *testing.T, adjust ...func(*local.Config)) machine {
	t.Helper()
	return openMachine(t, t.TempDir(), adjust...)
}

func openMachine(t *testing.T, dir string, adjust ...func(*local.Config)) machine {
	t.Helper()
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	cfg := local.Config{
		Dir: filepath.Join(dir, "builds"), Private: dir, Logs: logs, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		// The repositories of the tests are on this machine.
		Networks: outbound.Networks{netip.MustParsePrefix("127.0.0.0/8")}, LocalRepositories: true,
		Connect: []string{"env", "MODE=connect", program()},
	}
	for _, change := range adjust {
		change(&cfg)
	}
	b, err := local.New(cfg)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, b.Close()) })
	return machine{b, logs, cfg}
}

// patience is how long a build may take before a test gives up. Packages come over the network.
const patience = 5 * time.Minute

func deadline(t *testing.T) time.Time {
	t.Helper()
	return time.Now().Add(patience)
}

func (m machine) start(t *testing.T, spec build.Spec) {
	t.Helper()
	check.Must(t, m.Start(t.Context(), spec))
}

func (m machine) await(t *testing.T, spec build.Spec) build.Result {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), deadline(t))
	defer cancel()
	result, err := m.Await(ctx, spec.Revision)
	check.Must(t, err)
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

// wantFailure runs a build that must fail, and checks its message.
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
	page, err := m.logs.Read(t.Context(), revisionlog.Log{Revision: spec.Revision, Kind: revisionlog.Build}, revisionlog.Query{Limit: 1000})
	check.Must(t, err)
	var text strings.Builder
	for _, line := range page.Lines {
		text.WriteString(line.Message + "\n")
	}
	return text.String()
}

// newGate makes a FIFO: a command that reads it waits until the test opens it.
func newGate(t *testing.T) (path string, open func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gate")
	check.Must(t, syscall.Mkfifo(path, 0o600))
	return path, func() { check.Must(t, os.WriteFile(path, []byte("go on\n"), 0)) }
}

func TestBuilder(t *testing.T) {
	t.Parallel()
	buildtest.Run(t, func(t *testing.T) build.Builder { return newMachine(t) })
}

func TestLog(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("echo building")})
	spec := buildtest.NewSpec(r.URL())
	got := m.build(t, spec)
	if want := filepath.Join(m.cfg.Dir, "revisions", spec.Revision, "src"); got.Artifact.Dir != want {
		t.Errorf("built in %s, want %s", got.Artifact.Dir, want)
	}
	for _, words := range []string{"cloning " + r.URL() + " at main\n", "commit " + got.CommitSHA + "\n", "\nbuilding\n", "built in "} {
		if log := m.log(t, spec); !strings.Contains(log, words) {
			t.Errorf("log %q does not say %q", log, words)
		}
	}
}

func TestBuildCommandHasACleanEnvironment(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("env >environment")})
	spec := buildtest.NewSpec(r.URL())
	result := m.build(t, spec)
	data, err := os.ReadFile(filepath.Join(result.Artifact.Dir, "environment"))
	check.Must(t, err)
	got := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	want := map[string]string{
		"PATH": os.Getenv("PATH"), "GOFLAGS": "-mod=mod -buildvcs=false", "CI": "true",
		"HOME":   filepath.Join(m.cfg.Dir, "cache", spec.Workspace, "1"),
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
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(`ls ~; touch ~/downloaded "$TMPDIR/left"`)})
	first, second, stranger := buildtest.NewSpec(r.URL()), buildtest.NewSpec(r.URL()), buildtest.NewSpec(r.URL())
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

func TestBuildCommandThatCannotRun(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": `{"graphs": {"a": "a:b"}, "build": ["no-such-compiler"], "start": "true"}`})
	m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonBuildCommandFailed, "code 127", "no-such-compiler")
}

func TestBuildCommandTakesTooLong(t *testing.T) {
	t.Parallel()
	calls := newSwitchboard(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("echo compiling; " + calls.caller() + " & wait")})
	check.InTime(t, 4*time.Second, func(limit time.Duration) bool {
		m, spec := newMachine(t, func(c *local.Config) { c.Timeout = limit }), buildtest.NewSpec(r.URL())
		got := m.wantFailure(t, spec, build.ReasonBuildTimeout, "stopped after "+limit.String())
		if !strings.Contains(m.log(t, spec), called) {
			return false
		}
		if !strings.Contains(got.Message, "compiling") {
			t.Errorf("message %q does not show the output", got.Message)
		}
		calls.accept(t)()
		return true
	})
}

func TestRemoveEndsARunningBuild(t *testing.T) {
	t.Parallel()
	m, calls := newMachine(t), newSwitchboard(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(calls.caller() + " & wait")})
	spec := buildtest.NewSpec(r.URL())
	m.start(t, spec)
	wantDeath := calls.accept(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := m.Await(ended, spec.Revision); err != nil || got.State != build.Running {
		t.Errorf("Await without time: got %s, %v; want running", got.State, err)
	}
	check.Must(t, m.Remove(t.Context(), spec.Revision))
	wantDeath()
	if got := m.await(t, spec); got.State != build.Absent {
		t.Errorf("after Remove: got %s, want absent", got.State)
	}
	if _, err := os.Stat(filepath.Join(m.cfg.Dir, "revisions", spec.Revision)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
	check.Must(t, m.Remove(t.Context(), spec.Revision))
}

func TestBuildsWaitInOrder(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.Places = 1 })
	gate, open := newGate(t)
	first := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("read go <" + gate)}).URL())
	m.start(t, first)
	var waiting []build.Spec
	for range 5 {
		r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(noteTime)})
		spec := buildtest.NewSpec(r.URL())
		spec.Workspace = first.Workspace // a build of another workspace would not wait
		m.start(t, spec)
		waiting = append(waiting, spec)
	}
	check.Must(t, m.Remove(t.Context(), waiting[2].Revision))
	open()
	if got := m.await(t, waiting[2]); got.State != build.Absent {
		t.Errorf("the build that was removed: %s %s", got.State, got.Message)
	}
	m.wantInOrder(t, slices.Delete(waiting, 2, 3))
}

// noteTime is a build command that notes in the tree when it ran.
const noteTime = "date +%s%N >when"

// wantInOrder waits for builds with the command noteTime and checks that each ran before the next.
func (m machine) wantInOrder(t *testing.T, specs []build.Spec) {
	t.Helper()
	before := ""
	for i, spec := range specs {
		result := m.await(t, spec)
		if result.State != build.Succeeded {
			t.Fatalf("build %d: %s %s", i, result.State, result.Message)
		}
		when, err := os.ReadFile(filepath.Join(result.Artifact.Dir, "when"))
		check.Must(t, err)
		if string(when) <= before {
			t.Errorf("build %d ran at %s, the one before it at %s", i, when, before)
		}
		before = string(when)
	}
}

// TestFaultOfTheBuilderEndsTheBuild builds a ref that git cannot be started with. The build is
// tried again, fails, and is logged once. The result is known after a restart of the server.
func TestFaultOfTheBuilderEndsTheBuild(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	dir := t.TempDir()
	m := openMachine(t, dir, func(c *local.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL())
	spec.Ref = "a\x00b"
	m.wantFailure(t, spec, build.ReasonInternal, "server's log")
	if lines := strings.Count(log.String(), spec.Revision); lines != 1 || !strings.Contains(log.String(), "invalid argument") {
		t.Errorf("the log has %s", &log)
	}
	if noted := strings.Count(m.log(t, spec), "cloning"); noted != 3 {
		t.Errorf("the build was tried %d times, want 3", noted)
	}
	check.Must(t, m.Close())
	if got := openMachine(t, dir).await(t, spec); got.State != build.Failed {
		t.Errorf("after a restart the build is %s", got.State)
	}
}

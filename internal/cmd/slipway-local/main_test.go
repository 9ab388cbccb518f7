package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
	"github.com/slipway-run/slipway/internal/test/template"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
}

// testConfig returns the config of a server for this project, with no built functions.
func testConfig(t *testing.T) config {
	t.Helper()
	c := config{
		Listen: "127.0.0.1:0", Data: filepath.Join(t.TempDir(), "data"), Root: filepath.Join("..", "..", ".."), Build: t.TempDir(), Table: "slipway",
		Output: io.Discard, Log: slog.New(slog.DiscardHandler),
	}
	check.Must(t, c.complete())
	return c
}

// TestTheBaseURLIsRefusedAsByTheServer of one machine: it must be the address of a whole server.
func TestTheBaseURLIsRefusedAsByTheServer(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"": "", "https://agents.example.com": "", "https://agents.example.com/": "",
		"https://agents.example.com/slipway": `--base-url must have no path, not "/slipway"`,
		"agents.example.com":                 `--base-url must be the http or https address of a server`,
	} {
		if err := (&config{BaseURL: address}).complete(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", address, err, want)
		}
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	defer taken.Close()
	for name, c := range map[string]struct {
		change func(*config)
		want   string
	}{
		"functions": {func(*config) {}, "is not built (make functions)"},
		"template":  {func(c *config) { c.Root = c.Build }, "template.yaml: no such file"},
		"address":   {func(c *config) { c.Listen = taken.Addr().String() }, syscall.EADDRINUSE.Error()},
		"parameter": {func(c *config) { c.Parameters = map[string]string{"NoSuch": "1"} }, "there is no parameter NoSuch"},
		"the directory": {func(c *config) {
			check.Must(t, os.MkdirAll(c.Data, 0o700))
			lock, err := standalone.LockDirectory(c.Data)
			check.Must(t, err)
			t.Cleanup(func() { check.Must(t, lock.Close()) })
		}, "another server uses the data directory"},
	} {
		config := testConfig(t)
		c.change(&config)
		if _, err := open(t.Context(), config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ...%s...", name, err, c.want)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"lambda --no-such-flag", "lambda x", "nothing", "lambda --ready-limit -1s", "lambda --reconcile-interval -1s", "lambda --index-lag -1s", "lambda --concurrency -1", "sam x", "sam --ready-limit -1s"} {
		root := newRoot()
		root.SetArgs(strings.Fields(line))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.Execute(); err == nil || exit.Code(err) != exit.Misused {
			t.Errorf("%s: got %v, exit code %d", line, err, exit.Code(err))
		}
	}
	if got := exit.Code(errors.New("anything else")); got != exit.Failed {
		t.Errorf("anything else: exit code %d", got)
	}
}

// TestConcurrencyIsThatOfTheAccount checks that functions share what the template's parameters do
// not reserve.
func TestConcurrencyIsThatOfTheAccount(t *testing.T) {
	t.Parallel()
	s := &server{config: testConfig(t)}
	s.config.Build, s.config.Concurrency, s.config.Parameters = builtNothing(t), 5, map[string]string{"RunnerConcurrency": "5"}
	check.Must(t, s.readTemplate())
	if _, err := lambda.New(s.platformConfig()); err == nil || !strings.Contains(err.Error(), "reserve 5 of the concurrency of 5") {
		t.Errorf("got %v", err)
	}
}

// TestTasksFailByName checks that Retry and Catch see the error name that the function, or the
// platform, gives to a failure.
func TestTasksFailByName(t *testing.T) {
	t.Parallel()
	functions, err := lambda.New(lambda.Config{
		Functions: []lambda.Function{{Name: "Runner", Bootstrap: "/no/such/bootstrap"}}, Processes: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	})
	check.Must(t, err)
	_, err = invoke(t.Context(), functions, functions.ARN("Runner"), json.RawMessage("{}"))
	if failure, ok := errors.AsType[*workflow.TaskError](err); !ok || failure.Name != lambda.TypeEntrypoint || failure.Cause == "" {
		t.Errorf("got %v, want a failure called %s", err, lambda.TypeEntrypoint)
	}
	check.Must(t, functions.Close(context.Background()))
}

// builtNothing returns a directory in which each function has an empty bootstrap.
func builtNothing(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	read, err := template.Load("../../../template.yaml")
	check.Must(t, err)
	stack, err := read.Resolve(template.Values{})
	check.Must(t, err)
	for _, f := range stack.Functions {
		folder := filepath.Join(dir, filepath.Base(f.CodeURI))
		check.Must(t, os.MkdirAll(folder, 0o700))
		check.Must(t, os.WriteFile(filepath.Join(folder, "bootstrap"), nil, 0o700))
	}
	return dir
}

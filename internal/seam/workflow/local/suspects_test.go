package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/slipway-run/slipway/internal/base/crash"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// In a child process, these variables name the table's file, the executions to start, and the
// behaviour of the functions: see deadlyServer.
const (
	deadlyFile   = "SLIPWAY_TEST_DEADLY_FILE"
	deadlyStarts = "SLIPWAY_TEST_DEADLY_STARTS"
	deadlyRound  = "SLIPWAY_TEST_DEADLY_ROUND"
)

// deadlyCode is the exit code of a server that a Task has crashed.
const deadlyCode = 2

// reportOf is the file with the report of a crashed server.
func reportOf(file string) string { return file + ".crash" }

// die ends the process with a crash, or, in a round that begins with "killed", as a kill does.
func die() {
	if strings.HasPrefix(os.Getenv(deadlyRound), "killed") {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	} else {
		go panic("poison")
	}
	select {}
}

// newDeadlyEngine makes an engine whose machine does work, and catches its failure. The input of an
// execution is its name, which tells the function whose work it does.
func newDeadlyEngine(tb table.Table, crashed bool, function workflow.TaskFunc, observe func(local.Event), counted ...workflow.Machine) (*local.Engine, error) {
	const states = `"Work": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "ResultPath": null,
		"Parameters": {"FunctionName": "work", "Payload.$": "$"},
		"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 5}],
		"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "GiveUp"}], "End": true},
		"GiveUp": {"Type": "Succeed"}`
	return local.New(local.Config{
		Table: tb, Definitions: fstest.MapFS{"m.asl.json": {Data: []byte(`{"StartAt": "Work", "States": {` + states + `}}`)}},
		Functions: works(function), Observer: observe, Log: slog.New(slog.DiscardHandler), CountAttempts: counted, Crashed: crashed,
	})
}

// deadlyServer is a process that starts executions, or continues the stored ones, until the
// execution named b-poison ends it. In the round "beside", b-poison waits until two others are
// under way, which never end. In other rounds, the others end.
func deadlyServer() error {
	beside := os.Getenv(deadlyRound) == "beside"
	var others sync.WaitGroup
	if beside {
		others.Add(2)
	}
	function := func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		switch {
		case string(payload) == `"b-poison"`:
			others.Wait()
			die()
		case beside:
			others.Done()
			<-ctx.Done()
		}
		return nil, nil
	}
	crashed, err := crash.Watch(reportOf(os.Getenv(deadlyFile)))
	if err != nil {
		return err
	}
	tb, err := sqlite.Open(os.Getenv(deadlyFile))
	if err != nil {
		return err
	}
	var counted []workflow.Machine
	if os.Getenv(deadlyRound) == "counted" {
		counted = append(counted, "m")
	}
	engine, err := newDeadlyEngine(tb, crashed, function, nil, counted...)
	if err != nil {
		return err
	}
	if strings.HasSuffix(os.Getenv(deadlyRound), "trial") {
		return tryAll(engine, func() error {
			die()
			return nil
		})
	}
	if err := engine.Resume(context.Background()); err != nil {
		return err
	}
	var starts []string
	if err := json.Unmarshal([]byte(os.Getenv(deadlyStarts)), &starts); err != nil {
		return err
	}
	for _, name := range starts {
		if err := engine.Start(context.Background(), "m", name, strconv.AppendQuote(nil, name)); err != nil {
			return err
		}
	}
	<-time.After(time.Minute)
	return errors.New("nothing has ended the process")
}

// dieWith runs a deadlyServer to its death.
func dieWith(t *testing.T, file, round string, starts ...string) {
	t.Helper()
	names, err := json.Marshal(slices.Concat([]string{}, starts))
	check.Must(t, err)
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), deadlyFile+"="+file, deadlyRound+"="+round, deadlyStarts+"="+string(names))
	want := deadlyCode
	if strings.HasPrefix(round, "killed") {
		want = -1 // by a signal
	}
	output, err := server.CombinedOutput()
	if exited, ok := errors.AsType[*exec.ExitError](err); !ok || exited.ExitCode() != want {
		t.Fatalf("the server ended with %v, want exit code %d\n%s", err, want, output)
	}
}

// crashed reports whether the previous server crashed. The test's own process does not watch for a
// crash, because such a watch is for one server in a process.
func crashed(t *testing.T, file string) bool {
	t.Helper()
	info, err := os.Stat(reportOf(file))
	check.Must(t, err)
	return info.Size() > 0
}

// survivor is a server in the test's own process that continues after deaths.
type survivor struct {
	*local.Engine
	*history
	mu     sync.Mutex
	called []string
}

func survive(t *testing.T, file string, counted ...workflow.Machine) *survivor {
	t.Helper()
	s := &survivor{history: newHistory()}
	var err error
	s.Engine, err = newDeadlyEngine(fixtures.TableAt(t, file), crashed(t, file), func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.called = append(s.called, string(payload))
		return nil, nil
	}, s.observe, counted...)
	check.Must(t, err)
	t.Cleanup(func() { cutOff(s.Engine) })
	check.Must(t, s.Resume(t.Context()))
	return s
}

// wantEnds checks that the poison has failed without a call, and that the others have
// succeeded.
func (s *survivor) wantEnds(t *testing.T, poison string, others ...string) {
	t.Helper()
	for _, name := range append(others, poison) {
		s.await(name)
	}
	if got := string(describe(t, s.Engine, poison).Output); !strings.Contains(got, `"Error":"`+local.ServerDiedError+`"`) || slices.Contains(s.called, `"`+poison+`"`) {
		t.Errorf("%s ended with %s after the calls %v; want %s without a call", poison, got, s.called, local.ServerDiedError)
	}
	for _, name := range others {
		if got := describe(t, s.Engine, name); string(got.Output) != strconv.Quote(name) {
			t.Errorf("%s ended with %s %s; want it done", name, got.Status, got.Output)
		}
	}
}

// TestAttackATaskThatEndsTheServer lets the Task end the first server, and the server that
// resumes it. The third server fails the Task and serves others.
func TestAttackATaskThatEndsTheServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "alone", "b-poison")
	dieWith(t, file, "alone")
	s := survive(t, file)
	start(t, s.Engine, "other", `"other"`)
	s.wantEnds(t, "b-poison", "other")
}

// TestAttackATaskThatEndsTheServerBesideOthers needs one more death, because any of the three
// may be the execution that ends servers. The two innocent executions are done.
func TestAttackATaskThatEndsTheServerBesideOthers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "beside", "a", "b-poison", "c")
	dieWith(t, file, "beside")
	dieWith(t, file, "in turn")
	s := survive(t, file)
	s.wantEnds(t, "b-poison", "c")
	if got := describe(t, s.Engine, "a"); string(got.Output) != `"a"` {
		t.Errorf("a, which was tried before, ended with %s %s; want it done", got.Status, got.Output)
	}
}

// TestServersThatEndAsTheyShouldDoNotCount has a server that ends normally between two deaths.
func TestServersThatEndAsTheyShouldDoNotCount(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "alone", "b-poison")
	closing := fixtures.TableAt(t, file)
	stuck, err := newDeadlyEngine(closing, crashed(t, file), func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, nil)
	check.Must(t, err)
	check.Must(t, stuck.Resume(t.Context()))
	cutOff(stuck)
	check.Must(t, closing.Close())
	dieWith(t, file, "alone")
	s := survive(t, file)
	s.await("b-poison")
	if got := describe(t, s.Engine, "b-poison"); string(got.Output) != `"b-poison"` {
		t.Errorf("it ended with %s %s; want it tried once more, and done", got.Status, got.Output)
	}
}

// TestMachinesThatCountTheirAttemptsAreResumed however often servers have died with them.
func TestMachinesThatCountTheirAttemptsAreResumed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "counted", "b-poison")
	for range 3 {
		dieWith(t, file, "counted")
	}
	s := survive(t, file, "m")
	s.await("b-poison")
	if got := describe(t, s.Engine, "b-poison"); string(got.Output) != `"b-poison"` {
		t.Errorf("it ended with %s %s; want it done", got.Status, got.Output)
	}
}

// TestATaskSurvivesAnyNumberOfKills, also beside one crash, which may have had another cause. From
// the second death on, it begins after a pause.
func TestATaskSurvivesAnyNumberOfKills(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "killed", "b-poison")
	for _, round := range []string{"killed", "crashed", "killed"} {
		dieWith(t, file, round)
	}
	began := time.Now()
	s := survive(t, file)
	s.await("b-poison")
	if got := describe(t, s.Engine, "b-poison"); string(got.Output) != `"b-poison"` {
		t.Errorf("it ended with %s %s; want it done", got.Status, got.Output)
	}
	if paused, want := time.Since(began), 4*time.Second; paused < want {
		t.Errorf("it was tried again after %s; want a pause of %s after four deaths", paused, want)
	}
}

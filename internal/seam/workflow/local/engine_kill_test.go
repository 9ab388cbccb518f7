package local_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// In a child process, these variables name the case of TestKill to begin and the table's file.
const (
	childCase = "SLIPWAY_TEST_KILL_CASE"
	childFile = "SLIPWAY_TEST_KILL_FILE"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(childCase); name != "" {
		fmt.Println(beginKillCase(killCases[name], os.Getenv(childFile)))
		os.Exit(1)
	}
	if os.Getenv(deadlyFile) != "" {
		fmt.Println(deadlyServer())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// killCase is an execution that one process begins and another process finishes.
type killCase struct {
	states string
	// fails is the payload for which the function fails in each process; hangs is the payload for
	// which it hangs in the first process.
	fails, hangs string
	// killAt is the line of output after which the first process is killed.
	killAt string
	// rests is set when nothing may happen within the next hour.
	rests bool
	// calls are the calls of the second process.
	calls []string
}

const invoke = `"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "ResultPath": null, "Parameters": {"FunctionName": "work", `

var killCases = map[string]killCase{
	"in the first task": {
		states: `"A": {` + invoke + `"Payload": "a"}, "End": true}`,
		hangs:  `"a"`,
		killAt: `called "a"`,
		calls:  []string{`"a"`},
	},
	"in the second task": {
		states: `"A": {` + invoke + `"Payload": "a"}, "Next": "B"}, "B": {` + invoke + `"Payload": "b"}, "End": true}`,
		hangs:  `"b"`,
		killAt: `called "b"`,
		calls:  []string{`"b"`},
	},
	"in a wait": {
		states: `"A": {` + invoke + `"Payload": "a"}, "Next": "W"}, "W": {"Type": "Wait", "Seconds": 3600, "Next": "B"}, "B": {` + invoke + `"Payload": "b"}, "End": true}`,
		killAt: "stored 2",
		rests:  true,
		calls:  []string{`"b"`},
	},
	"in a retry delay": {
		states: `"A": {` + invoke + `"Payload": "a"}, "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 3600, "MaxAttempts": 1}],
			"Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "B"}], "End": true}, "B": {` + invoke + `"Payload": "b"}, "End": true}`,
		fails:  `"a"`,
		killAt: "stored 2",
		rests:  true,
		calls:  []string{`"a"`, `"b"`},
	},
}

var errFails = errors.New("it fails")

// beginKillCase is the first process. It returns only when something is wrong.
func beginKillCase(c killCase, file string) error {
	tb, err := sqlite.Open(file)
	if err != nil {
		return err
	}
	function := func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
		fmt.Printf("called %s\n", payload)
		switch string(payload) {
		case c.hangs:
			// With select {} and without a C runtime, the runtime would report a deadlock.
			<-time.After(time.Hour)
		case c.fails:
			return nil, errFails
		}
		return nil, nil
	}
	e, err := newKillEngine(c, &tellingTable{Table: tb}, time.Now, function, nil)
	if err != nil {
		return err
	}
	if err := e.Start(context.Background(), "m", "e1", []byte(`{}`)); err != nil {
		return err
	}
	<-time.After(time.Hour)
	return nil
}

// tellingTable prints the number of transactions that have returned.
type tellingTable struct {
	table.Table
	stored int
}

func (tb *tellingTable) Transact(ctx context.Context, writes ...table.Write) error {
	err := tb.Table.Transact(ctx, writes...)
	if err == nil {
		tb.stored++ // one execution writes one transaction at a time
		fmt.Printf("stored %d\n", tb.stored)
	}
	return err
}

func newKillEngine(c killCase, tb table.Table, now func() time.Time, function workflow.TaskFunc, observe func(local.Event)) (*local.Engine, error) {
	return local.New(local.Config{
		Table:       tb,
		Definitions: fstest.MapFS{"m.asl.json": {Data: []byte(`{"StartAt": "A", "States": {` + c.states + `}}`)}},
		Functions:   works(function),
		Now:         now,
		Observer:    observe,
	})
}

// TestKill kills a process with SIGKILL in the middle of an execution and continues the
// execution here.
func TestKill(t *testing.T) {
	t.Parallel()
	for name, c := range killCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "table.db")
			killChild(t, name, file, c.killAt)
			tb := fixtures.TableAt(t, file)
			if c.rests {
				early := goOnAfterKill(t, c, tb, time.Now)
				cutOff(early.engine)
				if got := describe(t, early.engine, "e1"); got.Status != workflow.Running || len(early.calls) != 0 {
					t.Fatalf("got status %s and calls %v within the hour, want RUNNING and none", got.Status, early.calls)
				}
			}
			late := goOnAfterKill(t, c, tb, func() time.Time { return time.Now().Add(time.Hour) })
			late.history.await("e1")
			if got := describe(t, late.engine, "e1"); got.Status != workflow.Succeeded || string(got.Output) != `{}` {
				t.Errorf("got status %s and output %s, want SUCCEEDED and {}", got.Status, got.Output)
			}
			if diff := cmp.Diff(c.calls, late.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// killChild begins the case in a child process and kills it when it has printed the line.
func killChild(t *testing.T, name, file, line string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childCase+"="+name, childFile+"="+file)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	check.Must(t, err)
	check.Must(t, child.Start())
	var printed []string
	scanner := bufio.NewScanner(output)
	for !slices.Contains(printed, line) && scanner.Scan() {
		printed = append(printed, scanner.Text())
	}
	check.Must(t, child.Process.Kill())
	if err := child.Wait(); err == nil || !slices.Contains(printed, line) {
		t.Fatalf("got exit %v after the lines %q, want a kill after %q", err, printed, line)
	}
}

// continued is an engine that continues after a kill. Its calls may be read once it is closed
// or the execution has ended.
type continued struct {
	engine  *local.Engine
	history *history
	calls   []string
}

func goOnAfterKill(t *testing.T, c killCase, tb table.Table, now func() time.Time) *continued {
	t.Helper()
	n := &continued{history: newHistory()}
	var err error
	n.engine, err = newKillEngine(c, tb, now, func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
		n.calls = append(n.calls, string(payload))
		if string(payload) == c.fails {
			return nil, errFails
		}
		return nil, nil
	}, n.history.observe)
	check.Must(t, err)
	t.Cleanup(func() { cutOff(n.engine) })
	check.Must(t, n.engine.Resume(t.Context()))
	return n
}

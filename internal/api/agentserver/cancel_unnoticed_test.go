package agentserver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// setUpUnnoticed has a server that notices no lost connection.
func setUpUnnoticed(t *testing.T, agent stoppable) *fixture {
	t.Helper()
	f := setUpLimited(t, graphtest.Start(t, agent.answer), time.Millisecond, quota.Limits{}, func(c *agentserver.Config) { c.Unnoticed = 5 * time.Minute })
	f.deploy(t, "agent")
	return f
}

// wantExpected checks how many clients a timer is going to look for.
func (f *fixture) wantExpected(t *testing.T, want int) {
	t.Helper()
	found := 0
	for _, query := range keys.DueClients.Until(f.clock.Now().Add(time.Hour)) {
		page, err := f.table.Query(t.Context(), query)
		check.Must(t, err)
		found += len(page.Items)
	}
	if found != want {
		t.Errorf("%d clients are expected, want %d", found, want)
	}
}

// TestARunEndsWithoutAClientThatNobodySeesGo has a server that notices no lost connection: its
// streams end after 5 minutes, other answers after 15, and clients that are there come back within
// a minute.
func TestARunEndsWithoutAClientThatNobodySeesGo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		create, join string
		option       any
		lasts        time.Duration
		want         string
	}{
		"stream, cancel":      {"/runs/stream", "", "cancel", 5 * time.Minute, "interrupted"},
		"wait, cancel":        {"/runs/wait", "", "cancel", 15 * time.Minute, "interrupted"},
		"stream, by default":  {"/runs/stream", "", nil, 5 * time.Minute, "running"},
		"comes back":          {"/runs/stream", "/stream?cancel_on_disconnect=true", "cancel", 5 * time.Minute, "running"},
		"comes back and asks": {"/runs/wait", "/join?cancel_on_disconnect=true", "cancel", 15 * time.Minute, "running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := newStoppable()
			f := setUpUnnoticed(t, agent)
			thread, headers := f.newThread(t), map[string]string{auth.HeaderKey: f.key}
			answer := f.open(t.Context(), t, "POST", f.path(thread+c.create), with(saying("one"), "on_disconnect", c.option), headers)
			defer answer.Body.Close()
			run := thread + "/runs/" + receiveOr(t, agent.reached, "the run's start")
			f.clock.Pass(c.lasts)
			check.Must(t, f.runs.CancelMissed(t.Context(), f.clock.Now()))
			if got := f.status(t, run); got != "running" {
				t.Errorf("the run is %s when its client may still come", got)
			}
			if c.join != "" {
				again := f.open(t.Context(), t, "GET", f.path(run+c.join), nil, headers)
				defer again.Body.Close()
			}
			f.clock.Pass(2 * time.Minute)
			check.Must(t, f.runs.CancelMissed(t.Context(), f.clock.Now()))
			if got := f.status(t, run); got != c.want {
				t.Errorf("the run is %s, want %s", got, c.want)
			}
		})
	}
}

// TestAToolsAnswerMayLastAsLongAsAFunction has a client of the Model Context Protocol, whose server
// hides until when the request may last.
func TestAToolsAnswerMayLastAsLongAsAFunction(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUpUnnoticed(t, agent)
	session, ended := f.tools(t, f.key), make(chan error, 1)
	go guard.Func(nil, "call a tool", func() {
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "agent", Arguments: saying("one")["input"]})
		ended <- err
	})()
	id := receiveOr(t, agent.reached, "the run's start")
	path := "/threads/" + id + "/runs/" + id
	for _, c := range []struct {
		later time.Duration
		want  string
	}{{15 * time.Minute, "running"}, {2 * time.Minute, "interrupted"}} {
		f.clock.Pass(c.later)
		check.Must(t, f.runs.CancelMissed(t.Context(), f.clock.Now()))
		if got := f.status(t, path); got != c.want {
			t.Errorf("%s later the run is %s, want %s", c.later, got, c.want)
		}
	}
	check.Must(t, <-ended)
}

// TestNobodyIsExpectedAfterARun checks that the timer has nothing to do for a run whose end was
// told to its client, nor for a client that reads the run afterwards.
func TestNobodyIsExpectedAfterARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ create, again string }{
		"stream": {"/runs/stream", "/stream"},
		"wait":   {"/runs/wait", "/join"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUpUnnoticed(t, newStoppable())
			thread, headers := f.newThread(t), map[string]string{auth.HeaderKey: f.key}
			read := func(method, path string, body any) (at string) {
				answer := f.open(t.Context(), t, method, f.path(path), body, headers)
				_, err := io.ReadAll(answer.Body)
				check.Must(t, errors.Join(err, answer.Body.Close()))
				if answer.StatusCode != http.StatusOK {
					t.Errorf("%s answers %d", path, answer.StatusCode)
				}
				f.wantExpected(t, 0)
				return answer.Header.Get("Content-Location")
			}
			path := read("POST", thread+c.create, with(saying("quick"), "on_disconnect", "cancel"))
			read("GET", path+c.again+"?cancel_on_disconnect=true", nil)
		})
	}
}

// TestAClientIsRefusedIfNobodyNotesItsReturn checks that a client that comes back is not answered
// while its run ends at the time that was noted before. After the run nothing has to be noted.
func TestAClientIsRefusedIfNobodyNotesItsReturn(t *testing.T) {
	t.Parallel()
	tb := new(unwritable)
	f := setUpLimited(t, graphtest.Start(t, newStoppable().answer), time.Millisecond, quota.Limits{}, func(c *agentserver.Config) {
		c.Unnoticed = 5 * time.Minute
		c.Runs = run.NewStore(run.Config{Table: tb, Threads: c.Threads, Workflow: noRollouts{}, Now: clock.System})
	})
	tb.Table = f.table
	f.deploy(t, "agent")
	thread := f.newThread(t)
	path := thread + "/runs/" + f.call(t, "POST", thread+"/runs", saying("one")).string("run_id")
	want := func(status int) {
		t.Helper()
		for _, part := range []string{"/stream", "/join"} {
			ctx, leave := context.WithCancel(t.Context()) // an answer would wait for the run
			answer := f.open(ctx, t, "GET", f.path(path+part+"?cancel_on_disconnect=true"), nil, map[string]string{auth.HeaderKey: f.key})
			if answer.StatusCode != status {
				t.Errorf("%s answers %d, want %d", part, answer.StatusCode, status)
			}
			leave()
			check.Must(t, answer.Body.Close())
		}
	}
	tb.full.Store(true)
	want(http.StatusInternalServerError)
	wantStatus(t, f.call(t, "POST", path+"/cancel", nil), http.StatusAccepted)
	want(http.StatusOK)
}

// unwritable is a table that takes no single writes while it is full.
type unwritable struct {
	table.Table
	full atomic.Bool
}

func (u *unwritable) InOrder(ctx context.Context, writes ...table.Write) error {
	if u.full.Load() {
		return errors.New("the table is full")
	}
	return u.Table.InOrder(ctx, writes...)
}

package agentserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	cancelled    = "The run was cancelled."
	disconnected = "The run was cancelled, because the connection of the client that waited for it was lost."
)

// wantReasons checks the reasons why runs were ended, for each run by itself and in the list
// of its thread, newest run first.
func (f *fixture) wantReasons(t *testing.T, thread string, want ...any) {
	t.Helper()
	listed := f.call(t, "GET", thread+"/runs?select=run_id&select=cancel_reason", nil)
	wantStatus(t, listed, http.StatusOK)
	got := []any{}
	for _, one := range listed.body.([]any) {
		run := one.(object)
		got = append(got, run["cancel_reason"])
		if alone := f.call(t, "GET", thread+"/runs/"+run["run_id"].(string), nil); alone.member("cancel_reason") != run["cancel_reason"] {
			t.Errorf("in the list it is %v, of the run alone %v", run["cancel_reason"], alone.member("cancel_reason"))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("why the runs were ended (-want +got):\n%s", diff)
	}
}

// TestARunTellsWhyItWasCancelled checks this for a run that was at work and for a run that
// waited.
func TestARunTellsWhyItWasCancelled(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(f *fixture, thread, running, waiting string) response{
		"one by one": func(f *fixture, thread, running, waiting string) response {
			wantStatus(t, f.call(t, "POST", waiting+"/cancel", nil), http.StatusAccepted)
			return f.call(t, "POST", running+"/cancel", nil)
		},
		"all": func(f *fixture, _, _, _ string) response {
			return f.call(t, "POST", "/runs/cancel", object{"status": "all"})
		},
		"those of a thread": func(f *fixture, thread, running, waiting string) response {
			id := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
			return f.call(t, "POST", "/runs/cancel", object{"thread_id": id(thread), "run_ids": []any{id(running), id(waiting)}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := newStoppable()
			f := setUp(t, agent.answer)
			thread := f.newThread(t)
			f.finish(t, thread, saying("quick"))
			running := f.start(t, thread, saying("one"))
			receiveOr(t, agent.reached, "the run's start")
			waiting := f.start(t, thread, saying("two"))
			f.wantReasons(t, thread, nil, nil, nil)
			if answer := cancel(f, thread, running, waiting); answer.StatusCode/100 != 2 {
				t.Fatalf("the cancel is answered with %s", answer.text)
			}
			f.wantReasons(t, thread, cancelled, cancelled, nil)
		})
	}
}

// TestARunTellsWhichOneSupersededIt checks this before and after the run's results are folded
// into the state, for a run that was at work and for a run that waited.
func TestARunTellsWhichOneSupersededIt(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	f.start(t, thread, saying("one"))
	receiveOr(t, agent.reached, "the run's start")
	f.start(t, thread, saying("two"))
	by := f.start(t, thread, with(saying("quick"), "multitask_strategy", "interrupt"))
	why := "The run was superseded by run " + by[strings.LastIndexByte(by, '/')+1:] + ", whose multitask_strategy is interrupt."
	f.wantReasons(t, thread, nil, why, why)
	wantStatus(t, f.call(t, "GET", by+"/join", nil), http.StatusOK)
	f.wantReasons(t, thread, nil, why, why)
}

// TestARunTellsThatItsClientHasGone checks this for the run and for its thread.
func TestARunTellsThatItsClientHasGone(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	answer := f.open(ctx, t, "POST", f.path(thread+"/runs/stream"), with(saying("one"), "on_disconnect", "cancel"), map[string]string{auth.HeaderKey: f.key})
	receiveOr(t, agent.reached, "the run's start")
	leave()
	_, _ = io.ReadAll(answer.Body)
	check.Must(t, answer.Body.Close())
	receiveOr(t, agent.stopped, "the end of the agent's connection")
	f.wantReasons(t, thread, disconnected)
	if got := f.call(t, "GET", thread, nil).string("error", "message"); got != disconnected {
		t.Errorf("the thread says %q", got)
	}
}

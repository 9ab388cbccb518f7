package agentserver_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestRefusalsOfTheProtocol checks that a command that the protocol refuses is answered with the
// status 200 and an error code, and changes nothing.
func TestRefusalsOfTheProtocol(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread, fresh := f.newThread(t), f.newThread(t)
	f.does(t, thread, "run.start", script(pausing("q1")))
	f.settle(t, f.path(thread))
	at := func(checkpoint string) object {
		return with(hi(), "config", object{"configurable": object{"checkpoint_id": checkpoint}})
	}
	for _, row := range []struct {
		thread, method string
		params         object
		code           string
	}{
		{thread, "run.start", object{}, "invalid_argument"},
		{thread, "run.start", object{"assistant_id": 1}, "invalid_argument"},
		{thread, "run.start", object{"assistant_id": "nobody"}, "invalid_argument"},
		{thread, "run.start", at(unknownID), "no_such_checkpoint"},
		{fresh, "input.respond", object{"interrupt_id": "q1", "response": true}, "no_such_run"},
		{thread, "input.respond", object{"response": true}, "invalid_argument"},
		{thread, "input.respond", object{"responses": []any{}}, "invalid_argument"},
		{thread, "input.respond", object{"interrupt_id": "q2", "response": true}, "no_such_interrupt"},
		{thread, "input.respond", object{"responses": []any{object{"interrupt_id": "q1"}, object{"interrupt_id": "q2"}}}, "no_such_interrupt"},
		{fresh, "agent.getTree", object{}, "no_such_run"},
		{thread, "agent.getTree", object{"run_id": unknownID}, "no_such_run"},
		{"/threads/" + unknownID, "state.get", object{}, "no_such_run"},
		{thread, "state.get", object{"namespace": "inner"}, "invalid_argument"},
		{thread, "state.get", object{"namespace": []any{"inner:1"}}, "no_such_namespace"},
		{thread, "state.listCheckpoints", object{"limit": 0}, "invalid_argument"},
		{thread, "state.listCheckpoints", object{"limit": 1001}, "invalid_argument"},
		{"/threads/" + unknownID, "state.listCheckpoints", object{}, "no_such_run"},
		{thread, "state.fork", object{}, "invalid_argument"},
		{thread, "state.fork", object{"checkpoint_id": unknownID}, "no_such_checkpoint"},
		{fresh, "state.fork", object{"checkpoint_id": unknownID}, "no_such_run"},
		{thread, "input.inject", object{}, "not_supported"},
		{thread, "subscription.subscribe", object{"channels": allChannels}, "not_supported"},
		{thread, "subscription.unsubscribe", object{"subscription_id": "s"}, "not_supported"},
		{thread, "subscription.reconnect", object{}, "not_supported"},
		{thread, "run.panic", object{}, "unknown_command"},
		{thread, "", object{}, "unknown_command"},
	} {
		wantRefusal(t, f.command(t, row.thread, row.method, row.params), row.code)
	}
	if runs, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any); len(runs) != 1 {
		t.Errorf("there are %d runs", len(runs))
	}
	if got := f.call(t, "GET", thread, nil).string("status"); got != "interrupted" {
		t.Errorf("the thread is %s", got)
	}
}

// TestRequestsThatAreNoCommands checks that a request which no repetition can mend has a status of
// 4xx: clients take such a status as final.
func TestRequestsThatAreNoCommands(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	key := map[string]string{auth.HeaderKey: f.key}
	command, channels := object{"id": 1, "method": "state.get"}, object{"channels": allChannels}
	for _, row := range []struct {
		path    string
		body    any
		headers map[string]string
		status  int
	}{
		{thread + "/commands", `{"id":`, key, http.StatusUnprocessableEntity},
		{thread + "/commands", `[]`, key, http.StatusUnprocessableEntity},
		{thread + "/commands", object{"method": "state.get"}, key, http.StatusUnprocessableEntity},
		{thread + "/commands", object{"id": -1, "method": "state.get"}, key, http.StatusUnprocessableEntity},
		{thread + "/commands", object{"id": "1", "method": "state.get"}, key, http.StatusUnprocessableEntity},
		{thread + "/commands", object{"id": 1}, key, http.StatusUnprocessableEntity},
		{"/threads/nobody/commands", command, key, http.StatusUnprocessableEntity},
		{thread + "/commands", command, map[string]string{auth.HeaderKey: f.key, "Content-Type": "application/xml"}, http.StatusUnsupportedMediaType},
		{thread + "/commands", command, map[string]string{auth.HeaderKey: f.key, "Content-Type": "text/plain"}, http.StatusOK},
		{thread + "/commands", command, nil, http.StatusUnauthorized},
		{thread + "/commands", command, map[string]string{auth.HeaderKey: f.stranger}, http.StatusNotFound},
		{thread + "/stream/events", object{}, key, http.StatusUnprocessableEntity},
		{thread + "/stream/events", object{"channels": []any{}}, key, http.StatusUnprocessableEntity},
		{thread + "/stream/events", object{"channels": "lifecycle"}, key, http.StatusUnprocessableEntity},
		{thread + "/stream/events", object{"channels": []any{"weather"}}, key, http.StatusUnprocessableEntity},
		{thread + "/stream/events", with(channels, "since", "x"), key, http.StatusUnprocessableEntity},
		{thread + "/stream/events", with(channels, "depth", -1), key, http.StatusUnprocessableEntity},
		{thread + "/stream/events", channels, nil, http.StatusUnauthorized},
		{thread + "/stream/events", channels, map[string]string{auth.HeaderKey: f.stranger}, http.StatusNotFound},
	} {
		answer := f.open(t.Context(), t, "POST", f.path(row.path), row.body, row.headers)
		// A stream that is let in has no end.
		if answer.Body.Close(); answer.StatusCode != row.status {
			t.Errorf("%s %v: got %d, want %d", row.path, row.body, answer.StatusCode, row.status)
		}
	}
}

// elsewhere is another process that serves the same threads: it shares nothing with the first
// process but the table's file.
func (f *fixture) elsewhere(t *testing.T) *fixture {
	t.Helper()
	other := *f
	tb := fixtures.TableAt(t, f.file)
	other.table, other.threads = tb, thread.NewStore(tb, f.clock.Now, quota.Limits{}, slog.Default())
	other.runs = run.NewStore(run.Config{Table: tb, Threads: other.threads, Workflow: noRollouts{}, Now: f.clock.Now})
	served, _ := other.apart(t, budget.New(64<<20))
	return served
}

// TestAnotherProcessReplaysAThread checks that such a process shows the same events with the same
// ids and numbers, from the beginning and after each event, also of a run that goes on.
func TestAnotherProcessReplaysAThread(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": allChannels})
	f.finish(t, thread, script(say("m1", "One"), add("model", "m1", "One")))
	all := present.runs(t, 1) // a reader begins with the run that is active when the reader begins
	f.does(t, thread, "run.start", script(say("m2", "Two"), failing("kaboom")))
	all = append(all, present.runs(t, 1)...)
	f.does(t, thread, "run.start", heldAfter("Hel"))
	all = append(all, present.until(t, shows("Hel"))...)
	other, last := f.elsewhere(t), all[len(all)-1]
	for since := range slices.Values(append([]shownEvent{{}}, all[:len(all)-1]...)) {
		again := other.watch(t, thread, object{"channels": allChannels, "since": since.Seq})
		got := again.until(t, func(e shownEvent) bool { return e.Seq >= last.Seq })
		want := slices.DeleteFunc(slices.Clone(all), func(e shownEvent) bool { return e.Seq <= since.Seq })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("behind event %d (-here +there):\n%s", since.Seq, diff)
		}
		again.leave()
	}
}

// TestEventsAreTrimmedByWholeRuns checks that a deleted run leaves no event, and that all events
// of the other runs keep their ids and numbers. A client that has a number of the deleted run goes
// on with the next run.
func TestEventsAreTrimmedByWholeRuns(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": allChannels})
	var runs [][]shownEvent
	var paths []string
	for _, id := range []string{"m1", "m2", "m3"} {
		paths = append(paths, f.finish(t, thread, script(say(id, "Hel"), add("model", id, "Hello"))))
		runs = append(runs, present.runs(t, 1))
	}
	wantStatus(t, f.call(t, "DELETE", paths[1], nil), http.StatusNoContent)
	for _, since := range append([]shownEvent{{}}, slices.Concat(runs...)[:len(runs[0])+len(runs[1])]...) {
		want := slices.DeleteFunc(slices.Concat(runs[0], runs[2]), func(e shownEvent) bool { return e.Seq <= since.Seq })
		ends := 1
		if since.Seq < runs[0][len(runs[0])-1].Seq {
			ends = 2
		}
		again := f.watch(t, thread, object{"channels": allChannels, "since": since.Seq})
		if diff := cmp.Diff(want, again.runs(t, ends)); diff != "" {
			t.Fatalf("behind event %d (-want +got):\n%s", since.Seq, diff)
		}
		again.leave()
	}
}

// TestAnAnswerMayChangeTheStateAndTheWay checks that update and goto of input.respond reach the
// graph beside the answer. While a question is open, the thread is interrupted.
func TestAnAnswerMayChangeTheStateAndTheWay(t *testing.T) {
	t.Parallel()
	f := setUp(t, func(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
		if string(invocation.Input) != "null" {
			emit("interrupt", []any{object{"id": "q1", "value": "May I?"}})
			return nil
		}
		emit("custom", invocation.Command)
		return nil
	})
	thread := f.newThread(t)
	present := f.watch(t, thread, object{"channels": []string{"lifecycle", "custom"}})
	f.does(t, thread, "run.start", hi())
	wantLines(t, "the lifecycle", lifecycles(present.runs(t, 1)), "running", "interrupted")
	if got := f.call(t, "GET", thread, nil).string("status"); got != "interrupted" {
		t.Errorf("a thread with a question is %s", got)
	}
	f.does(t, thread, "input.respond", object{"interrupt_id": "q1", "response": true, "update": object{"mood": "good"}, "goto": "model"})
	answered := present.runs(t, 1)
	wantLines(t, "the lifecycle", lifecycles(answered), "running", "completed")
	got := of(answered, "custom")
	if len(got) != 1 {
		t.Fatalf("the graph says %v", got)
	}
	var told struct{ Payload any }
	check.Must(t, json.Unmarshal(got[0].Params.Data, &told))
	want := object{"resume": object{"q1": true}, "update": object{"mood": "good"}, "goto": "model"}
	if diff := cmp.Diff(any(want), told.Payload); diff != "" {
		t.Errorf("the graph's command (-want +got):\n%s", diff)
	}
	if got := f.call(t, "GET", thread, nil).string("status"); got != "idle" {
		t.Errorf("a thread without a question is %s", got)
	}
}

// TestRunsAreCancelledFromEitherSide checks that runs of commands and runs of /runs are ended by
// each other's requests, and that both sides see the end.
func TestRunsAreCancelledFromEitherSide(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	command := func(t *testing.T, thread string, body object) string {
		t.Helper()
		return thread + "/runs/" + f.does(t, thread, "run.start", body).string("result", "run_id")
	}
	cancel := func(t *testing.T, _, run string) {
		t.Helper()
		answer := f.call(t, "POST", run+"/cancel?wait=true", nil)
		if answer.StatusCode >= http.StatusBadRequest {
			t.Fatalf("the cancellation is answered with %s", answer.text)
		}
	}
	for name, way := range map[string]struct {
		start func(*testing.T, string, object) string
		end   func(t *testing.T, thread, run string)
		// next are the lifecycles behind the end.
		next []string
	}{
		"command by /cancel": {command, cancel, nil},
		"/runs by command": {f.start, func(t *testing.T, thread, _ string) {
			t.Helper()
			command(t, thread, with(script(add("model", "m2", "Bye")), "multitask_strategy", "interrupt"))
		}, []string{"running", "completed"}},
		"command by /runs": {command, func(t *testing.T, thread, _ string) {
			t.Helper()
			f.start(t, thread, with(script(add("model", "m2", "Bye")), "multitask_strategy", "interrupt"))
		}, []string{"running", "completed"}},
	} {
		t.Run(strings.ReplaceAll(name, "/", ""), func(t *testing.T) {
			t.Parallel()
			thread := f.newThread(t)
			present := f.watch(t, thread, object{"channels": allChannels})
			first := way.start(t, thread, with(heldAfter("Hel"), "stream_mode", "messages-tuple"))
			present.until(t, shows("Hel"))
			way.end(t, thread, first)
			ended := present.runs(t, 1+len(way.next)/2)
			wantLines(t, "the lifecycles", lifecycles(ended), append([]string{"interrupted"}, way.next...)...)
			if got := f.call(t, "GET", first, nil).string("status"); got != "interrupted" {
				t.Errorf("the run is %s", got)
			}
			if old := f.follow(t, first+"/stream", ""); !slices.Contains(names(old), "messages") {
				t.Errorf("the old stream of the run has %v", names(old))
			}
		})
	}
}

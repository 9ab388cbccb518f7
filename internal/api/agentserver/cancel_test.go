package agentserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

// stoppable is an agent that shows a word and runs until its connection is closed, or answers
// at once if the message is "quick".
type stoppable struct{ reached, stopped chan string }

func newStoppable() stoppable {
	return stoppable{reached: make(chan string, 100), stopped: make(chan string, 100)}
}

func (a stoppable) answer(ctx context.Context, invocation graph.Invocation, emit func(string, any)) error {
	if strings.Contains(string(invocation.Input), "quick") {
		emit("updates", object{"model": object{"messages": []any{message("ai", invocation.RunID, "done")}}})
		return nil
	}
	emit("messages", chunk("AIMessageChunk", "m-"+invocation.RunID, "Hel"))
	a.reached <- invocation.RunID
	<-ctx.Done()
	a.stopped <- invocation.RunID
	return ctx.Err()
}

// saying is a request with one message of a person.
func saying(text string) object {
	return object{"assistant_id": "agent", "input": object{"messages": []any{object{"type": "human", "id": text, "content": text}}}}
}

// texts returns the contents of a thread's messages.
func (f *fixture) texts(t *testing.T, thread string) []string {
	t.Helper()
	texts := []string{}
	messages, _ := f.call(t, "GET", thread+"/state", nil).member("values", "messages").([]any)
	for _, m := range messages {
		texts = append(texts, fmt.Sprint(m.(map[string]any)["content"]))
	}
	return texts
}

func (f *fixture) status(t *testing.T, path string) string {
	t.Helper()
	read := f.call(t, "GET", path, nil)
	if read.StatusCode == http.StatusNotFound {
		return "gone"
	}
	wantStatus(t, read, http.StatusOK)
	return read.string("status")
}

func wantTexts(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func receiveOr(t *testing.T, from <-chan string, what string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatalf("%s did not happen", what)
		return ""
	}
}

// shown waits until readers see the first word of a run.
func (f *fixture) shown(t *testing.T, path string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	answer := f.open(ctx, t, "GET", f.path(path+"/stream?stream_mode=messages-tuple"), nil, map[string]string{auth.HeaderKey: f.key})
	defer answer.Body.Close()
	reader := bufio.NewReader(answer.Body)
	for {
		e, err := nextEvent(reader)
		check.Must(t, err)
		if e.Name == "messages" {
			return
		}
	}
}

// TestCancel ends a run in each status, with each form of the request, with and without
// another run waiting behind it.
func TestCancel(t *testing.T) {
	t.Parallel()
	type outcome struct{ run, thread string }
	for _, c := range []struct {
		name, of, query string
		queued          bool
		code            int
		want            outcome
		texts           []string
	}{
		{"running", "running", "", false, 202, outcome{"interrupted", "interrupted"}, []string{"one", "Hel"}},
		{"running, wait=0", "running", "?wait=0&action=interrupt", false, 202, outcome{"interrupted", "interrupted"}, []string{"one", "Hel"}},
		{"running, wait=1", "running", "?wait=1", false, 204, outcome{"interrupted", "interrupted"}, []string{"one", "Hel"}},
		{"running, wait=true", "running", "?wait=true", false, 204, outcome{"interrupted", "interrupted"}, []string{"one", "Hel"}},
		{"running, before another", "running", "?wait=1", true, 204, outcome{"interrupted", "idle"}, []string{"one", "Hel", "quick", "done"}},
		{"running, rolled back", "running", "?action=rollback&wait=1", false, 204, outcome{"gone", "idle"}, []string{}},
		{"running, rolled back before another", "running", "?action=rollback", true, 202, outcome{"gone", "idle"}, []string{"quick", "done"}},
		{"delayed", "delayed", "", false, 202, outcome{"interrupted", "idle"}, []string{}},
		{"delayed, rolled back", "delayed", "?action=rollback", false, 202, outcome{"gone", "idle"}, []string{}},
		{"queued", "queued", "?wait=1", false, 204, outcome{"interrupted", "busy"}, nil},
		{"queued, rolled back", "queued", "?action=rollback", false, 202, outcome{"gone", "busy"}, nil},
		{"finished", "finished", "", false, 404, outcome{"success", "idle"}, []string{"quick", "done"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			agent := newStoppable()
			f := setUp(t, agent.answer)
			thread := f.newThread(t)
			var path string
			switch c.of {
			case "running":
				path = f.start(t, thread, saying("one"))
				f.shown(t, path)
			case "delayed":
				path = f.start(t, thread, with(saying("one"), "after_seconds", 3600))
			case "queued":
				f.start(t, thread, saying("first"))
				receiveOr(t, agent.reached, "the run's start")
				path = f.start(t, thread, saying("one"))
			case "finished":
				path = f.finish(t, thread, saying("quick"))
			}
			next := ""
			if c.queued {
				next = f.start(t, thread, saying("quick"))
			}
			wantStatus(t, f.call(t, "POST", path+"/cancel"+c.query, nil), c.code)
			if c.of == "running" {
				if got := receiveOr(t, agent.stopped, "the end of the agent's connection"); !strings.HasSuffix(path, got) {
					t.Errorf("run %s was stopped", got)
				}
			}
			if c.queued {
				wantStatus(t, f.call(t, "GET", next+"/join", nil), http.StatusOK)
			}
			if got := (outcome{f.status(t, path), f.status(t, thread)}); got != c.want {
				t.Errorf("run and thread are %v, want %v", got, c.want)
			}
			if c.texts != nil {
				wantTexts(t, f.texts(t, thread), c.texts...)
			}
			// The first cancel has won: the second finds no run to cancel.
			again := f.call(t, "POST", path+"/cancel"+c.query, nil)
			if detail := again.string("detail"); again.StatusCode != http.StatusNotFound || (c.want.run != "gone" && !strings.HasPrefix(detail, "No matching runs to cancel")) {
				t.Errorf("the second cancel is answered with %d %s", again.StatusCode, again.text)
			}
			if c.want.thread == "interrupted" {
				if got := f.call(t, "GET", thread, nil); got.member("values", "messages") == nil || got.string("error", "error") != "UserInterrupt" {
					t.Errorf("the thread shows %s", got.text)
				}
			}
		})
	}
}

// TestCancelOfAQueuedRunTakesItsInputBack checks that the inputs of the other runs stay.
func TestCancelOfAQueuedRunTakesItsInputBack(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	first := f.start(t, thread, saying("one"))
	f.shown(t, first)
	queued := f.start(t, thread, saying("two"))
	last := f.start(t, thread, saying("quick"))
	wantStatus(t, f.call(t, "POST", queued+"/cancel", nil), 202)
	wantStatus(t, f.call(t, "POST", first+"/cancel", nil), 202)
	wantStatus(t, f.call(t, "GET", last+"/join", nil), 200)
	wantTexts(t, f.texts(t, thread), "one", "Hel", "quick", "done")
}

// TestCancelMany ends the runs of a deployment by status, or some runs of a thread.
func TestCancelMany(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  func(thread, running, queued string) object
		query string
		// want are the statuses of the running and the queued run.
		want [2]string
	}{
		"all":              {func(string, string, string) object { return object{"status": "all"} }, "", [2]string{"interrupted", "interrupted"}},
		"all, rolled back": {func(string, string, string) object { return object{"status": "all"} }, "?action=rollback", [2]string{"gone", "gone"}},
		"pending":          {func(string, string, string) object { return object{"status": "pending"} }, "", [2]string{"running", "interrupted"}},
		"by id": {func(thread, running, queued string) object {
			return object{"thread_id": thread, "run_ids": []any{running, queued, unknownID}}
		}, "", [2]string{"interrupted", "interrupted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := newStoppable()
			f := setUp(t, agent.answer)
			last := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
			var threads, running, queued []string
			for range 3 {
				thread := f.newThread(t)
				threads = append(threads, thread)
				running = append(running, f.start(t, thread, saying("one")))
				receiveOr(t, agent.reached, "the run's start")
				queued = append(queued, f.start(t, thread, saying("two")))
			}
			of := 3
			if name == "by id" {
				of = 1
			}
			body := c.body(last(threads[0]), last(running[0]), last(queued[0]))
			wantStatus(t, f.call(t, "POST", "/runs/cancel"+c.query, body), http.StatusNoContent)
			for i := range of {
				if got := [2]string{f.status(t, running[i]), f.status(t, queued[i])}; got != c.want {
					t.Errorf("thread %d: got %v, want %v", i, got, c.want)
				}
			}
			again := f.call(t, "POST", "/runs/cancel"+c.query, body)
			wantStatus(t, again, http.StatusNotFound)
		})
	}
	f := setUp(t, nil)
	for _, body := range []object{{}, {"status": "all", "thread_id": unknownID, "run_ids": []any{unknownID}}, {"thread_id": unknownID}, {"run_ids": []any{unknownID}}, {"status": "success"}} {
		wantStatus(t, f.call(t, "POST", "/runs/cancel", body), http.StatusUnprocessableEntity)
	}
}

// TestARunEndsWithTheConnectionOfItsClient checks that a run ends with its client's connection
// if the client wants this.
func TestARunEndsWithTheConnectionOfItsClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// create says how the client creates the run; join, if not "", how it waits for the
		// run afterwards.
		create, join string
		option       any
		want         string
	}{
		"stream, cancel":       {"/runs/stream", "", "cancel", "interrupted"},
		"wait, cancel":         {"/runs/wait", "", "cancel", "interrupted"},
		"stream, continue":     {"/runs/stream", "", "continue", "running"},
		"stream, by default":   {"/runs/stream", "", nil, "running"},
		"join with cancel":     {"/runs", "/join?cancel_on_disconnect=1", nil, "interrupted"},
		"join":                 {"/runs", "/join?cancel_on_disconnect=0", nil, "running"},
		"join stream, cancel":  {"/runs", "/stream?cancel_on_disconnect=true", nil, "interrupted"},
		"join stream, further": {"/runs", "/stream", nil, "running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := newStoppable()
			f := setUpImpatient(t, agent.answer, time.Millisecond)
			thread := f.newThread(t)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			headers := map[string]string{auth.HeaderKey: f.key}
			answer := f.open(ctx, t, "POST", f.path(thread+c.create), with(saying("one"), "on_disconnect", c.option), headers)
			run := thread + "/runs/" + receiveOr(t, agent.reached, "the run's start")
			if c.join != "" {
				_, err := io.ReadAll(answer.Body)
				check.Must(t, err)
				check.Must(t, answer.Body.Close())
				answer = f.open(ctx, t, "GET", f.path(run+c.join), nil, headers)
			}
			leave()
			_, _ = io.ReadAll(answer.Body)
			check.Must(t, answer.Body.Close())
			for path := range f.served { // until the server is done with the request
				if strings.HasSuffix(path, strings.SplitN(c.create+c.join, "?", 2)[0]) || (c.join != "" && strings.HasSuffix(path, strings.SplitN(c.join, "?", 2)[0])) {
					break
				}
			}
			if got := f.status(t, run); got != c.want {
				t.Errorf("the run is %s, want %s", got, c.want)
			}
		})
	}
}

// TestARunWhoseInputWasTakenSaysSo checks the reason that an SDK looks for.
func TestARunWhoseInputWasTakenSaysSo(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	f.call(t, "POST", thread+"/runs", saying("one"))
	<-agent.reached
	path := thread + "/runs/" + f.call(t, "POST", thread+"/runs", saying("two")).string("run_id")
	for query, status := range map[string]int{
		"?reason=taken&action=rollback": http.StatusUnprocessableEntity, "?reason=lost": http.StatusUnprocessableEntity,
	} {
		wantStatus(t, f.call(t, "POST", path+"/cancel"+query, nil), status)
	}
	wantStatus(t, f.call(t, "POST", path+"/cancel?reason=taken&action=interrupt", nil), http.StatusAccepted)
	read := f.call(t, "GET", path, nil)
	if status, reason := read.string("status"), read.string("cancel_reason"); status != "interrupted" || !strings.HasPrefix(reason, "taken:") {
		t.Errorf("the run is %s: %s", status, reason)
	}
}

// TestAThreadKeepsItsErrorWhenARunIsTakenBack cancels a run that no worker has taken up: the thread
// shows again why the run before it failed.
func TestAThreadKeepsItsErrorWhenARunIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"?action=interrupt", "?action=rollback", "?reason=taken"} {
		f := setUp(t, nil)
		thread := f.newThread(t)
		f.finish(t, thread, script(failing("no key")))
		delayed := saying("two")
		delayed["after_seconds"] = 3600
		path := thread + "/runs/" + f.call(t, "POST", thread+"/runs", delayed).string("run_id")
		wantThread(t, f, thread, "busy", nil, object{})
		wantStatus(t, f.call(t, "POST", path+"/cancel"+query, nil), http.StatusAccepted)
		wantThread(t, f, thread, "error", object{"error": "GraphError", "message": "no key"}, object{})
	}
}

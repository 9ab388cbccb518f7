package agentserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAStatelessRun checks that the run has a thread of its own with the same id, and that the
// answer has the run's path.
func TestAStatelessRun(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	created := f.call(t, "POST", "/runs", script(add("model", "m", "Hello")))
	wantStatus(t, created, http.StatusOK)
	id := created.string("run_id")
	if id == "" || created.string("thread_id") != id || created.Header.Get("Content-Location") != "/runs/"+id {
		t.Errorf("got run %s at %s of thread %s", id, created.Header.Get("Content-Location"), created.string("thread_id"))
	}
	wantBody(t, f.call(t, "GET", "/runs/"+id+"/join", nil), answered())
	wantBody(t, f.call(t, "GET", "/threads/"+id+"/runs/"+id+"/join", nil), answered())

	waited := f.call(t, "POST", "/runs/wait", script(add("model", "m", "Hello")))
	wantBody(t, waited, answered())
	wantBody(t, f.call(t, "GET", waited.Header.Get("Location"), nil), answered())

	streamed := f.call(t, "POST", "/runs/stream", with(script(add("model", "m", "Hello")), "stream_mode", []any{"values", "updates"}))
	events := eventsOf(t, streamed)
	wantEvents(t, f.follow(t, streamed.Header.Get("Content-Location")+"/stream", ""), events...)
	wantEvents(t, f.follow(t, streamed.Header.Get("Location"), events[1].ID), events[2:]...)

	batch := f.call(t, "POST", "/runs/batch", []any{hi(), with(hi(), "on_completion", "keep")})
	wantStatus(t, batch, http.StatusOK)
	for _, one := range batch.body.([]any) {
		run := one.(map[string]any)["run_id"].(string)
		wantStatus(t, f.call(t, "GET", "/runs/"+run+"/join", nil), http.StatusOK)
	}
	wantStatus(t, f.call(t, "POST", "/runs/batch", []any{}), http.StatusUnprocessableEntity)
	wantStatus(t, f.call(t, "POST", "/runs/batch", []any{hi(), with(hi(), "assistant_id", "nobody")}), http.StatusNotFound)
	wantStatus(t, f.call(t, "GET", "/runs/"+id+"/nothing", nil), http.StatusUnprocessableEntity)
}

// TestAStatelessRunHasNothingToResume checks that an answer is refused and not lost: no question
// waits on the new thread.
func TestAStatelessRunHasNothingToResume(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	answer := with(hi(), "command", object{"resume": "yes"})
	delete(answer, "input")
	for path, body := range map[string]any{"/runs": answer, "/runs/wait": answer, "/runs/stream": answer, "/runs/batch": []any{hi(), answer}} {
		wantDetail(t, f.call(t, "POST", path, body), http.StatusBadRequest,
			"command.resume: nothing waits for an answer on a new thread. Create the run on the thread that waits.")
	}
	wantStatus(t, f.call(t, "POST", "/runs/wait", with(answer, "command", object{"resume": nil, "update": object{"messages": []any{}}})), http.StatusOK)
}

// TestStatelessRunsSortAmongOtherRuns checks that the ids of all runs are made by the same clock.
func TestStatelessRunsSortAmongOtherRuns(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	f.clock.Pass(time.Hour)
	before := f.call(t, "POST", f.newThread(t)+"/runs", hi()).string("run_id")
	stateless := f.call(t, "POST", "/runs", hi()).string("run_id")
	after := f.call(t, "POST", f.newThread(t)+"/runs", hi()).string("run_id")
	if ids := []string{before, stateless, after}; !slices.IsSorted(ids) {
		t.Errorf("got %v", ids)
	}
}

// TestTheThreadOfATemporaryRunGoesAfterIt checks that the thread is deleted, unless the
// request keeps it. The JavaScript client's types allow other values, which count as no value.
func TestTheThreadOfATemporaryRunGoesAfterIt(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, keep := range []any{nil, "delete", "keep", "complete", "continue"} {
		id := f.call(t, "POST", "/runs", with(hi(), "on_completion", keep)).string("run_id")
		wantStatus(t, f.call(t, "GET", "/runs/"+id+"/join", nil), http.StatusOK)
		check.Must(t, f.rescue(t.Context()))
		want := http.StatusNotFound
		if keep == "keep" {
			want = http.StatusOK
		}
		wantStatus(t, f.call(t, "GET", "/threads/"+id, nil), want)
		wantStatus(t, f.call(t, "GET", "/runs/"+id+"/join", nil), want)
	}
}

// TestACreationThatIsRepeatedUnderItsKeyHappensOnce.
func TestACreationThatIsRepeatedUnderItsKeyHappensOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	headers := map[string]string{auth.HeaderKey: f.key, "Idempotency-Key": "one"}
	first := f.send(t, "POST", f.path(thread+"/runs"), hi(), headers)
	second := f.send(t, "POST", f.path(thread+"/runs"), hi(), headers)
	wantStatus(t, second, http.StatusOK)
	wantBody(t, second, first.body)
	if second.Header.Get("Idempotency-Replayed") != "true" || second.Header.Get("Content-Location") != first.Header.Get("Content-Location") {
		t.Errorf("the repetition has the headers %v", second.Header)
	}
	if listed := f.call(t, "GET", thread+"/runs", nil).body.([]any); len(listed) != 1 {
		t.Errorf("%d runs were created", len(listed))
	}
	wantStatus(t, f.send(t, "POST", f.path(thread+"/runs"), saying("other"), headers), http.StatusUnprocessableEntity)
}

// TestAnAnswerOfADeploymentThatEncryptsNamesIt, so that its own handlers encrypt the answer.
func TestAnAnswerOfADeploymentThatEncryptsNamesIt(t *testing.T) {
	t.Parallel()
	for _, encryption := range []string{"", "crypt.py:own"} {
		f := setUpUndeployed(t, nil, 0)
		f.encryption = encryption
		f.deploy(t, "agent")
		wantStatus(t, f.send(t, "POST", f.path("/runs"), hi(), map[string]string{auth.HeaderKey: f.key, "Idempotency-Key": "one"}), http.StatusOK)
		item, err := f.table.Get(t.Context(), keys.Answer(f.deployment.Workspace, "one"))
		check.Must(t, err)
		if named := item.Text(record.Deployment); (named == f.deployment.Deployment) != (encryption != "") {
			t.Errorf("with the encryption %q, the answer names the deployment %q", encryption, named)
		}
	}
}

// TestACreationIsAnsweredAgainAfterADeath lets the server die between the creation of a run
// and the answer.
func TestACreationIsAnsweredAgainAfterADeath(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, path := range []string{thread + "/runs", "/runs"} {
		headers := map[string]string{auth.HeaderKey: f.key, "Idempotency-Key": path}
		f.answers.Dead.Store(true)
		first := f.send(t, "POST", f.path(path), hi(), headers)
		f.answers.Dead.Store(false)
		second := f.send(t, "POST", f.path(path), hi(), headers)
		wantStatus(t, second, http.StatusOK)
		wantBody(t, second, first.body)
		if second.Header.Get("Idempotency-Replayed") != "true" || second.Header.Get("Content-Location") != first.Header.Get("Content-Location") {
			t.Errorf("%s: the repetition has the headers %v", path, second.Header)
		}
	}
}

// TestRollback leaves only the run that asked for it. TestARollbackOfAKeeper is the same with an
// agent that keeps checkpoints.
func TestRollback(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	f.finish(t, thread, saying("quick"))
	one := f.start(t, thread, saying("one"))
	receiveOr(t, agent.reached, "the run's start")
	two := f.start(t, thread, saying("two"))
	waiter := make(chan response, 1)
	go func() { waiter <- f.call(t, "GET", one+"/join", nil) }()
	last := f.start(t, thread, with(saying("quick again"), "multitask_strategy", "rollback"))
	receiveOr(t, agent.stopped, "the end of the agent's connection")
	wantStatus(t, f.call(t, "GET", last+"/join", nil), http.StatusOK)
	wantTexts(t, f.texts(t, thread), "quick", "done", "quick again", "done")
	for _, gone := range []string{one, two} {
		for _, suffix := range []string{"", "/join", "/stream"} {
			wantStatus(t, f.call(t, "GET", gone+suffix, nil), http.StatusNotFound)
		}
	}
	if listed := f.call(t, "GET", thread+"/runs", nil).body.([]any); len(listed) != 2 {
		t.Errorf("%d runs are listed", len(listed))
	}
	if got := <-waiter; got.StatusCode != http.StatusNotFound && got.member("__error__") == nil {
		t.Errorf("who waited gets %d %s", got.StatusCode, got.text)
	}
	for _, state := range f.call(t, "GET", thread+"/history", nil).body.([]any) {
		if run, ok := state.(map[string]any)["metadata"].(map[string]any)["run_id"].(string); ok && strings.HasSuffix(one, run) {
			t.Errorf("the history shows %v", state)
		}
	}
	if got := f.status(t, thread); got != "idle" {
		t.Errorf("the thread is %s", got)
	}
}

// TestADelayedRunWaitsForItsTime checks that runs which are created later go first.
func TestADelayedRunWaitsForItsTime(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	delayed := f.call(t, "POST", thread+"/runs", with(script(add("model", "d", "late")), "after_seconds", 1.5))
	wantStatus(t, delayed, http.StatusOK)
	if got := f.status(t, thread); got != "busy" {
		t.Errorf("the thread is %s meanwhile", got)
	}
	wantStatus(t, f.call(t, "POST", thread+"/runs", with(hi(), "multitask_strategy", "reject")), http.StatusConflict)
	first := f.call(t, "POST", thread+"/runs/wait", with(script(add("model", "f", "early")), "input", nil))
	wantStatus(t, first, http.StatusOK)
	path := thread + "/runs/" + delayed.string("run_id")
	if got := f.status(t, path); got != "pending" {
		t.Errorf("the delayed run is %s", got)
	}
	wantStatus(t, f.call(t, "GET", path+"/join", nil), http.StatusOK)
	wantTexts(t, f.texts(t, thread), "early", "Hi", "late")
	if read := f.call(t, "GET", path, nil); read.string("created_at") != delayed.string("created_at") || read.string("status") != "success" {
		t.Errorf("got %s", read.text)
	}
}

// TestRunsAreListedInPart checks that a list shows the members that the request selects.
func TestRunsAreListedInPart(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	run := f.finish(t, thread, hi())
	got := f.call(t, "GET", thread+"/runs?select=run_id&select=status", nil)
	wantBody(t, got, []any{object{"run_id": run[strings.LastIndexByte(run, '/')+1:], "status": "success"}})
	wantStatus(t, f.call(t, "GET", thread+"/runs?select=secret", nil), http.StatusUnprocessableEntity)
}

// TestARunThatHasEndedCanBeDeleted checks that the run's changes of the state stay.
func TestARunThatHasEndedCanBeDeleted(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	run := f.finish(t, thread, saying("quick"))
	wantStatus(t, f.call(t, "DELETE", run, nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "DELETE", run, nil), http.StatusNotFound)
	if got := f.status(t, run); got != "gone" {
		t.Errorf("the run is %s", got)
	}
	wantTexts(t, f.texts(t, thread), "quick", "done")
	active := f.start(t, thread, saying("one"))
	receiveOr(t, agent.reached, "the run's start")
	wantStatus(t, f.call(t, "DELETE", active, nil), http.StatusConflict)
}

// TestTheThreadOfATemporaryRunIsNotFoundAfterItsEnd checks that the run itself can still be read
// until its thread is deleted, and that its thread is shown while the run goes on.
func TestTheThreadOfATemporaryRunIsNotFoundAfterItsEnd(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	kept := f.call(t, "POST", "/runs", with(hi(), "on_completion", "keep")).string("run_id")
	wantStatus(t, f.call(t, "GET", "/runs/"+kept+"/join", nil), http.StatusOK)
	threads := func() []string {
		found := idsOf(t, f.call(t, "POST", "/threads/search", object{}), "thread_id")
		wantBody(t, f.call(t, "POST", "/threads/count", object{}), float64(len(found)))
		wantBody(t, f.call(t, "POST", "/threads/count", object{"metadata": object{"graph_id": "agent"}}), float64(len(found)))
		return found
	}
	id := f.call(t, "POST", "/runs", with(hi(), "after_seconds", 3600)).string("run_id")
	thread, run := "/threads/"+id, "/threads/"+id+"/runs/"+id
	wantStatus(t, f.call(t, "GET", thread, nil), http.StatusOK)
	if got := threads(); len(got) != 2 {
		t.Errorf("before the end, the threads are %v", got)
	}
	wantStatus(t, f.call(t, "POST", run+"/cancel?wait=1", nil), http.StatusNoContent)
	if got := threads(); len(got) != 1 || got[0] != kept {
		t.Errorf("after the end, the threads are %v, want %s", got, kept)
	}
	wantBody(t, f.call(t, "POST", "/threads/search", object{"ids": []string{id}}), []any{})
	missing := "Thread with ID " + id + " not found."
	for _, path := range append([]string{"/runs/crons"}, creations...) {
		wantDetail(t, f.call(t, "POST", thread+path, with(yearly(), "if_not_exists", "create")), http.StatusNotFound, missing)
	}
	wantDetail(t, f.call(t, "GET", thread, nil), http.StatusNotFound, missing)
	wantDetail(t, f.call(t, "PATCH", thread, object{"metadata": object{"a": 1}}), http.StatusNotFound, missing)
	wantDetail(t, f.call(t, "POST", thread+"/copy", nil), http.StatusNotFound, missing)
	wantDetail(t, f.call(t, "POST", thread+"/state", object{"values": object{}}), http.StatusNotFound, missing)
	wantRefusal(t, f.command(t, thread, "run.start", hi()), "invalid_argument")
	for _, path := range []string{run, run + "/join", "/runs/" + id + "/join"} {
		wantStatus(t, f.call(t, "GET", path, nil), http.StatusOK)
	}
	f.follow(t, "/runs/"+id+"/stream", "")
	wantStatus(t, f.call(t, "GET", "/threads/"+kept, nil), http.StatusOK)
}

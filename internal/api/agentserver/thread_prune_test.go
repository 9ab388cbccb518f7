package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// prune prunes threads, and checks how many threads were pruned.
func (f *fixture) prune(t *testing.T, strategy any, want float64, threads ...string) {
	t.Helper()
	ids := []string{}
	for _, thread := range threads {
		ids = append(ids, strings.TrimPrefix(thread, "/threads/"))
	}
	wantBody(t, f.call(t, "POST", "/threads/prune", object{"thread_ids": ids, "strategy": strategy}), object{"pruned_count": want})
}

// TestPruningDeletesThreads checks that the named threads are deleted with their runs,
// including a run in flight, and no other threads. Each thread counts once, even if the
// request names it several times or in upper and lower case.
func TestPruningDeletesThreads(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]any{"delete": "delete", "nothing is said": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t, nil)
			fresh, done, stays := f.newThread(t), f.newThread(t), f.newThread(t)
			ended, left := f.finish(t, done, hi()), f.finish(t, stays, hi())
			busy := f.newThread(t)
			flying := f.start(t, busy, script(graphtest.Step{Hold: true}))
			before := f.call(t, "GET", stays, nil).body
			f.prune(t, strategy, 3, fresh, done, unknownID, busy, done, "/threads/"+strings.ToUpper(strings.TrimPrefix(fresh, "/threads/")))
			for _, path := range []string{fresh, done, ended, done + "/state", done + "/history", busy, flying, flying + "/join"} {
				if got := f.call(t, "GET", path, nil).StatusCode; got != http.StatusNotFound {
					t.Errorf("%s answers %d", path, got)
				}
			}
			wantBody(t, f.call(t, "GET", stays, nil), before)
			wantStatus(t, f.call(t, "GET", left, nil), http.StatusOK)
			if got := f.call(t, "POST", "/threads/count", object{}).body; got != 1.0 {
				t.Errorf("%v threads are left, want the one that was not named", got)
			}
			f.prune(t, strategy, 0, fresh, done, busy)
			f.prune(t, strategy, 0)
		})
	}
}

// TestARunOfAPrunedThread checks that the streams of an old run show no empty state, and that its
// join answers with the newest state.
func TestARunOfAPrunedThread(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	modes := []any{"values", "updates", "messages", "checkpoints", "tasks", "debug"}
	first, before := f.stream(t, thread, with(saying("one"), "stream_mode", modes))
	f.finish(t, thread, saying("two"))
	newest := f.call(t, "GET", thread+"/state", nil).member("values")
	f.prune(t, "keep_latest", 1, thread)
	wantBody(t, f.call(t, "GET", first+"/join", nil), newest)
	shown := map[string]bool{}
	for _, e := range f.follow(t, first+"/stream", "") {
		shown[e.Name] = true
		if e.Name == "values" || e.Data == "" {
			t.Errorf("the state of a pruned checkpoint is shown as %+v", e)
		}
	}
	if len(before) < 3 || !shown["updates"] || !shown["metadata"] {
		t.Errorf("of %d events only %v are shown", len(before), shown)
	}
}

// TestAStateWithoutMembersIsShown runs on a new thread without any input.
func TestAStateWithoutMembersIsShown(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	_, events := f.stream(t, f.newThread(t), object{"assistant_id": "agent", "input": object{}, "stream_mode": []any{"values"}})
	for _, e := range events {
		if e.Data == "" {
			t.Errorf("an event has no data: %+v", e)
		}
	}
}

// TestPruningKeepsOnlyTheNewestState checks that the named threads, each counted once, keep
// their newest state and their runs. A second pruning has nothing to remove.
func TestPruningKeepsOnlyTheNewestState(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	first, second, other := f.newThread(t), f.newThread(t), f.newThread(t)
	empty := f.newThread(t)
	for _, thread := range []string{first, second, other} {
		for _, text := range []string{"one", "two", "three"} {
			f.finish(t, thread, saying(text))
		}
	}
	whole, runs := f.states(t, other), f.call(t, "GET", first+"/runs", nil).body
	newest := f.call(t, "GET", first+"/state", nil).member("checkpoint")
	for range 2 {
		f.prune(t, "keep_latest", 3, first, empty, second, first)
		for _, thread := range []string{first, second} {
			wantTexts(t, f.texts(t, thread), "one", "ok", "two", "ok", "three", "ok")
			if got := f.states(t, thread); got != 1 {
				t.Errorf("%d states are left, want the newest", got)
			}
		}
		if got := f.states(t, other); got != whole || whole < 3 {
			t.Errorf("%d of %d states are left of a thread that was not named", got, whole)
		}
	}
	if diff := cmp.Diff(newest, f.call(t, "GET", first+"/state", nil).member("checkpoint")); diff != "" {
		t.Errorf("the checkpoint that is kept (-before +after):\n%s", diff)
	}
	wantBody(t, f.call(t, "GET", first+"/runs", nil), runs)
	f.finish(t, first, saying("four"))
	wantTexts(t, f.texts(t, first), "one", "ok", "two", "ok", "three", "ok", "four", "ok")
}

// TestPruningRefusesTheHistoryOfABusyThread checks that the history stays unchanged, because a
// run continues from it.
func TestPruningRefusesTheHistoryOfABusyThread(t *testing.T) {
	t.Parallel()
	agent := newStoppable()
	f := setUp(t, agent.answer)
	thread := f.newThread(t)
	for _, text := range []string{"quick one", "quick two"} {
		f.finish(t, thread, saying(text))
	}
	run := f.start(t, thread, hi())
	receiveOr(t, agent.reached, "the run's start")
	whole := f.states(t, thread)
	refused := f.call(t, "POST", "/threads/prune", object{"thread_ids": []string{strings.TrimPrefix(thread, "/threads/")}, "strategy": "keep_latest"})
	wantStatus(t, refused, http.StatusConflict)
	if got := f.states(t, thread); got != whole {
		t.Errorf("%d of %d states are left", got, whole)
	}
	if got := f.status(t, run); got != "running" {
		t.Errorf("the run is %s", got)
	}
}

// TestPruningPassesOverThreadsOfOthers checks that threads of others are treated as missing.
func TestPruningPassesOverThreadsOfOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	other := "/d/" + f.newDeployment(t, "other").Deployment
	body := object{"thread_ids": []string{strings.TrimPrefix(thread, "/threads/")}}
	wantBody(t, f.send(t, "POST", other+"/threads/prune", body, map[string]string{auth.HeaderKey: f.key}), object{"pruned_count": 0.0})
	wantStatus(t, f.call(t, "GET", thread, nil), http.StatusOK)
	for _, wrong := range []object{{}, {"thread_ids": []string{"mine"}}, with(body, "strategy", "keep")} {
		wantStatus(t, f.call(t, "POST", "/threads/prune", wrong), http.StatusUnprocessableEntity)
	}
	wantStatus(t, f.call(t, "GET", thread, nil), http.StatusOK)
}

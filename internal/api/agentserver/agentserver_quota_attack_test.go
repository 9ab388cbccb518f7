package agentserver_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// wantUse checks how much of the quotas of threads and runs the workspace uses.
func (f *fixture) wantUse(t *testing.T, want map[quota.Name]int64) {
	t.Helper()
	usage := quota.Usage{Table: f.table}
	uses, err := usage.Of(t.Context(), f.deployment.Workspace)
	check.Must(t, err)
	got := map[quota.Name]int64{}
	for _, use := range uses {
		if _, asked := want[use.Name]; asked && use.Used != nil {
			got[use.Name] = *use.Used
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("used are %v, want %v", got, want)
	}
}

// atOnce sends requests at the same time and returns the answers of the requests that were
// done, and of the requests that were refused.
func (f *fixture) atOnce(t *testing.T, path func(i int) string, body object, times int) (done, refused []response) {
	t.Helper()
	answers := make([]response, times)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = f.call(t, "POST", path(i), body) })
	}
	all.Wait()
	for _, answer := range answers {
		if answer.StatusCode == http.StatusOK {
			done = append(done, answer)
		} else {
			refused = append(refused, answer)
		}
	}
	return done, refused
}

// TestAttackAKeyThatMakesThreadsWithoutEnd checks that the key gets as many threads as the
// quota allows, whatever requests it sends.
func TestAttackAKeyThatMakesThreadsWithoutEnd(t *testing.T) {
	t.Parallel()
	const most = 3
	f := setUpBounded(t, quota.Limits{}.With(quota.Threads, most))
	made, refused := f.atOnce(t, func(int) string { return "/threads" }, object{}, 10)
	if len(made) != most {
		t.Fatalf("%d threads were made, want %d", len(made), most)
	}
	for _, answer := range refused {
		wantDetail(t, answer, http.StatusForbidden,
			"The quota threads of this workspace is used up: its limit is 3. Delete threads, or give them a time to live, or have the operator of the server raise it (--quota threads=N, on AWS the parameter Quotas).")
	}
	first := "/threads/" + made[0].string("thread_id")
	for path, body := range map[string]object{
		first + "/copy": {}, "/runs/wait": with(hi(), "on_completion", "keep"), "/threads/" + unknownID + "/runs": with(hi(), "if_not_exists", "create"),
	} {
		wantStatus(t, f.call(t, "POST", path, body), http.StatusForbidden)
	}
	// An existing thread is not a new thread, and a temporary run needs no lasting thread.
	wantStatus(t, f.call(t, "POST", "/threads", object{"thread_id": made[0].string("thread_id"), "if_exists": "do_nothing"}), http.StatusOK)
	wantStatus(t, f.call(t, "POST", "/runs/wait", hi()), http.StatusOK)
	f.wantUse(t, map[quota.Name]int64{quota.Threads: most, quota.Runs: 0})
	wantStatus(t, f.call(t, "DELETE", first, nil), http.StatusNoContent)
	f.finish(t, f.newThread(t), hi())
	f.wantUse(t, map[quota.Name]int64{quota.Threads: most, quota.Runs: 0})
}

// TestAttackAKeyThatStartsRunsWithoutEnd checks that the key has as many runs in flight as the
// quota allows. The end of a run, in any status, gives its place back.
func TestAttackAKeyThatStartsRunsWithoutEnd(t *testing.T) {
	t.Parallel()
	const most, asked = 4, 9
	f := setUpBounded(t, quota.Limits{}.With(quota.Runs, most))
	held := script(graphtest.Step{Hold: true})
	threads := make([]string, asked)
	for i := range threads {
		threads[i] = f.newThread(t)
	}
	started, refused := f.atOnce(t, func(i int) string { return threads[i] + "/runs" }, held, asked)
	if len(started) != most {
		t.Fatalf("%d runs were started, want %d", len(started), most)
	}
	for _, answer := range refused {
		wantStatus(t, answer, http.StatusTooManyRequests)
		if detail := answer.string("detail"); !strings.Contains(detail, "quota runs_at_once") || !strings.Contains(detail, "its limit is 4") || answer.Header.Get("Retry-After") == "" {
			t.Errorf("got %s", answer.text)
		}
	}
	busy := make([]string, most)
	for i, answer := range started {
		busy[i] = "/threads/" + answer.string("thread_id")
	}
	idle := threads[slices.IndexFunc(threads, func(path string) bool { return !slices.Contains(busy, path) })]
	wantStatus(t, f.call(t, "POST", "/runs", held), http.StatusTooManyRequests)
	// A run that waits behind another run, or takes its place, does not count as one more run
	// in flight.
	wantStatus(t, f.call(t, "POST", busy[0]+"/runs", with(held, "multitask_strategy", "enqueue")), http.StatusOK)
	wantStatus(t, f.call(t, "POST", busy[1]+"/runs", with(held, "multitask_strategy", "interrupt")), http.StatusOK)
	wantStatus(t, f.call(t, "POST", busy[2]+"/runs", with(held, "multitask_strategy", "rollback")), http.StatusOK)
	f.wantUse(t, map[quota.Name]int64{quota.Threads: asked, quota.Runs: most})
	wantStatus(t, f.call(t, "DELETE", busy[1], nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "POST", "/runs/cancel", object{"status": "all"}), http.StatusNoContent)
	f.wantUse(t, map[quota.Name]int64{quota.Threads: asked - 1, quota.Runs: 0})
	f.finish(t, idle, hi())
	f.finish(t, idle, script(failing("kaboom")))
	wantStatus(t, f.call(t, "POST", "/runs/wait", hi()), http.StatusOK)
	f.wantUse(t, map[quota.Name]int64{quota.Threads: asked - 1, quota.Runs: 0})
}

// TestAttackAKeyThatCallsAnAgentServerWithoutEnd checks that the key is refused beyond the
// rate of its workspace. This has no effect on another workspace.
func TestAttackAKeyThatCallsAnAgentServerWithoutEnd(t *testing.T) {
	t.Parallel()
	f := setUpBounded(t, quota.Limits{}.With(quota.Requests, 3))
	refused := 0
	for range 500 {
		answer := f.call(t, "POST", "/threads/count", object{})
		if answer.StatusCode == http.StatusOK {
			continue
		}
		wantStatus(t, answer, http.StatusTooManyRequests)
		if refused++; !strings.Contains(answer.string("detail"), "quota requests_per_second") || answer.Header.Get("Retry-After") != "1" {
			t.Fatalf("got %s", answer.text)
		}
		break
	}
	if refused == 0 {
		t.Error("500 requests were taken at once, where 3 per second are allowed")
	}
}

// TestAttackAKeyThatOpensStreamsWithoutEnd checks that the key holds as many connections as
// the quota allows. A refused request starts no run, and a client that leaves gives its place
// back.
func TestAttackAKeyThatOpensStreamsWithoutEnd(t *testing.T) {
	t.Parallel()
	f := setUpBounded(t, quota.Limits{}.With(quota.Streams, 1))
	thread := f.newThread(t)
	held := f.call(t, "POST", thread+"/runs", script(graphtest.Step{Hold: true}))
	wantStatus(t, held, http.StatusOK)
	run := thread + "/runs/" + held.string("run_id")
	open := f.open(t.Context(), t, "GET", f.path(run+"/stream"), nil, map[string]string{auth.HeaderKey: f.key})
	if open.StatusCode != http.StatusOK {
		t.Fatalf("got %d", open.StatusCode)
	}
	other := f.newThread(t)
	for _, way := range []struct {
		method, path string
		body         any
	}{
		{"GET", run + "/stream", nil}, {"GET", run + "/join", nil}, {"GET", thread + "/stream", nil},
		{"POST", thread + "/stream/events", object{"channels": []string{"values"}}}, {"GET", thread + "/stream/events", nil}, {"POST", other + "/runs/stream", hi()}, {"POST", other + "/runs/wait", hi()},
		{"POST", "/runs/stream", hi()}, {"POST", "/runs/wait", hi()}, {"GET", "/runs/" + held.string("run_id") + "/stream", nil},
	} {
		answer := f.call(t, way.method, way.path, way.body)
		if answer.StatusCode != http.StatusTooManyRequests || !strings.Contains(answer.string("detail"), "quota streams_at_once") {
			t.Errorf("%s %s: got %d %s", way.method, way.path, answer.StatusCode, answer.text)
		}
	}
	f.wantUse(t, map[quota.Name]int64{quota.Threads: 2, quota.Runs: 1})
	open.Body.Close()
	// Wait until the place is given back.
	for f.call(t, "POST", "/runs/wait", hi()).StatusCode != http.StatusOK {
		if t.Context().Err() != nil {
			t.Fatal("the place of a client that went is not given back")
		}
	}
}

package agentserver_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/test/check"
)

// pass lets some time go by, and then lets the timer look at the threads.
func (f *fixture) pass(t *testing.T, minutes int64) {
	t.Helper()
	f.clock.Pass(time.Duration(minutes) * time.Minute)
	check.Must(t, f.threads.Sweep(t.Context(), f.clock.Now(), nil))
}

// states counts the states of a thread's history.
func (f *fixture) states(t *testing.T, thread string) int {
	t.Helper()
	return len(statesOf(t, f.call(t, "POST", thread+"/history", object{"limit": 100})))
}

// TestAThreadKeepsItsLatestState checks that a thread keeps its latest state, and no history,
// when its time is over; and again, when its new time is over.
func TestAThreadKeepsItsLatestState(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]func(*testing.T) *fixture{"simple": func(t *testing.T) *fixture { return setUp(t, nil) }, "keeper": setUpKeeper} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := agent(t)
			thread := "/threads/" + f.call(t, "POST", "/threads", object{"ttl": object{"ttl": 60, "strategy": "keep_latest"}}).string("thread_id")
			for range 2 {
				f.finish(t, thread, hi())
				f.finish(t, thread, hi())
				before, whole := f.call(t, "GET", thread+"/state", nil), f.states(t, thread)
				if f.pass(t, 59); f.states(t, thread) != whole || whole < 2 {
					t.Errorf("%d of %d states are left before the time is over", f.states(t, thread), whole)
				}
				f.pass(t, 2)
				if got := f.states(t, thread); got != 1 {
					t.Errorf("%d states are left when the time is over, want the newest", got)
				}
				after := f.call(t, "GET", thread+"/state", nil)
				if diff := cmp.Diff(before.member("values"), after.member("values")); diff != "" {
					t.Errorf("values (-before +after):\n%s", diff)
				}
			}
		})
	}
}

// TestEachChangeBeginsAThreadsTimeAnew changes a thread by a run, by its state, by its
// metadata and by its time to live itself.
func TestEachChangeBeginsAThreadsTimeAnew(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := "/threads/" + f.call(t, "POST", "/threads", object{"ttl": 60}).string("thread_id")
	f.finish(t, thread, hi()) // changes of the state are changes for its graph
	for what, change := range map[string]func(){
		"a run": func() { f.finish(t, thread, hi()) },
		"a state": func() {
			wantStatus(t, f.call(t, "POST", thread+"/state", object{"values": object{"a": 1}}), http.StatusOK)
		},
		"metadata": func() { wantStatus(t, f.call(t, "PATCH", thread, object{"metadata": object{"a": 1}}), http.StatusOK) },
		"the time": func() { wantStatus(t, f.call(t, "PATCH", thread, object{"ttl": 60}), http.StatusOK) },
	} {
		f.pass(t, 50)
		change()
		f.pass(t, 50)
		if got := f.call(t, "GET", thread, nil).StatusCode; got != http.StatusOK {
			t.Fatalf("50 minutes after %s: got status %d, want the thread", what, got)
		}
		change()
	}
	f.pass(t, 59)
	wantStatus(t, f.call(t, "GET", thread, nil), http.StatusOK)
	f.pass(t, 2)
	wantStatus(t, f.call(t, "GET", thread, nil), http.StatusNotFound)
}

// TestThreadsLiveAsTheConfigurationFileSays checks the file's time to live for all ways to
// create threads. A time to live in the creation takes precedence.
func TestThreadsLiveAsTheConfigurationFileSays(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, nil, 0)
	f.settings = build.Settings{Threads: &build.ThreadTTL{Strategy: "delete", Minutes: 60}}
	f.deploy(t, "agent")
	made := map[string]string{
		"made":     f.call(t, "POST", "/threads", object{}).string("thread_id"),
		"with ttl": f.call(t, "POST", "/threads", object{"ttl": 600}).string("thread_id"),
	}
	f.finish(t, "/threads/"+made["made"], hi())
	made["copied"] = f.call(t, "POST", "/threads/"+made["made"]+"/copy", nil).string("thread_id")
	kept := f.call(t, "POST", "/runs", with(hi(), "on_completion", "keep"))
	made["of a run"] = kept.string("thread_id")
	f.call(t, "GET", "/threads/"+made["of a run"]+"/runs/"+kept.string("run_id")+"/join", nil)
	for _, minutes := range []int64{59, 2} {
		f.pass(t, minutes)
		for name, id := range made {
			status := http.StatusNotFound
			if minutes == 59 || name == "with ttl" {
				status = http.StatusOK
			}
			if got := f.call(t, "GET", "/threads/"+id, nil).StatusCode; got != status {
				t.Errorf("the thread that is %s, after %d minutes more: %d, want %d", name, minutes, got, status)
			}
		}
	}
}

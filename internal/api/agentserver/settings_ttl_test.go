package agentserver_test

import (
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
)

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

package agentserver_test

import (
	"net/http"
	"testing"
)

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

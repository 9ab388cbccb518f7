package agentserver_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// next reads some events of any kind.
func (r *follower) next(t *testing.T, count int) (events []event) {
	t.Helper()
	for range count {
		e, err := nextEvent(r.Reader)
		check.Must(t, err)
		events = append(events, e)
	}
	return events
}

// until reads events up to one whose data has a text.
func (r *follower) until(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(r.next(t, 1)[0].Data, text) {
	}
}

// TestUpdatesOfTheStateAreStreamed has clients update a thread's state before, between and after
// its runs. Readers of the thread get each update where it was made, also when they come later or
// reconnect.
func TestUpdatesOfTheStateAreStreamed(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := "/threads/" + f.call(t, "POST", "/threads", object{"metadata": object{"graph_id": "agent"}}).string("thread_id")
	query := "?stream_modes=lifecycle&stream_modes=state_update"
	present := f.followThread(t, thread, query, "")
	defer time.AfterFunc(10*time.Second, present.leave).Stop() // an error instead of no end
	var states []any
	update := func(text string) {
		t.Helper()
		wantStatus(t, f.call(t, "POST", thread+"/state", object{"values": object{"text": text}, "as_node": "model"}), 200)
		states = append(states, f.call(t, "GET", thread+"/state", nil).body)
	}
	update("zeroth")
	f.finish(t, thread, with(script(add("model", "l", "Hi")), "stream_mode", "values"))
	update("first")
	f.finish(t, thread, with(script(add("model", "m", "Hello")), "stream_mode", "values"))
	update("second")
	update("third")
	f.finish(t, thread, with(script(add("model", "n", "Again")), "stream_mode", "values"))
	update("fourth")
	var shown []any
	var all []event
	for len(shown) < len(states) {
		e := present.next(t, 1)[0]
		all = append(all, e)
		var data struct {
			RunID    string `json:"run_id"`
			ThreadID string `json:"thread_id"`
			State    any    `json:"state"`
		}
		check.Must(t, json.Unmarshal([]byte(e.Data), &data))
		if e.Name == "state_update" && data.RunID == "" {
			shown = append(shown, data.State)
			if "/threads/"+data.ThreadID != thread {
				t.Errorf("the update of thread %s is shown to a reader of %s", data.ThreadID, thread)
			}
		}
	}
	if diff := cmp.Diff(states, shown); diff != "" {
		t.Errorf("the updates (-want +got):\n%s", diff)
	}
	wantEvents(t, f.followThread(t, thread, query, "-").next(t, len(all)), all...)
	for i, e := range all[:len(all)-1] {
		if e.ID != "" {
			wantEvents(t, f.followThread(t, thread, query, e.ID).next(t, len(all)-i-1), all[i+1:]...)
		}
	}
	later := f.followThread(t, thread, query, "")
	update("fifth")
	if got := later.next(t, 1)[0]; got.Name != "state_update" {
		t.Errorf("a reader that comes later gets %v", got)
	}
}

// TestAnUpdateAfterARollbackIsStreamed updates a thread whose run was rolled back: the checkpoint
// gets the number of a checkpoint that the run had made.
func TestAnUpdateAfterARollbackIsStreamed(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f.finish(t, thread, hi())
	reader := f.followThread(t, thread, "?stream_modes=state_update", "")
	defer time.AfterFunc(10*time.Second, reader.leave).Stop() // an error instead of no end
	run := f.start(t, thread, with(script(add("model", "r", "Gone"), graphtest.Step{Hold: true}), "stream_mode", "values"))
	reader.until(t, `"Gone"`)
	wantStatus(t, f.call(t, "POST", run+"/cancel?wait=true&action=rollback", nil), 204)
	wantStatus(t, f.call(t, "POST", thread+"/state", object{"values": object{"text": "new"}, "as_node": "model"}), 200)
	reader.until(t, `"text":"new"`)
}

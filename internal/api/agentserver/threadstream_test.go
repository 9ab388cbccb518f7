package agentserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// follower reads the stream of a thread.
type follower struct {
	*bufio.Reader
	leave func()
}

func (f *fixture) followThread(t *testing.T, thread, query, after string) *follower {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	headers := map[string]string{auth.HeaderKey: f.key}
	if after != "" {
		headers["Last-Event-ID"] = after
	}
	answer := f.open(ctx, t, "GET", f.path(thread+"/stream"+query), nil, headers)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the stream is answered with %d", answer.StatusCode)
	}
	t.Cleanup(func() { leave(); _, _ = io.Copy(io.Discard, answer.Body); answer.Body.Close() })
	return &follower{bufio.NewReader(answer.Body), leave}
}

// ends reads events until some runs have ended.
func (r *follower) ends(t *testing.T, runs int) []event {
	t.Helper()
	var events []event
	for runs > 0 {
		e, err := nextEvent(r.Reader)
		check.Must(t, err)
		events = append(events, e)
		var told struct{ Status string }
		if e.Name == "metadata" && json.Unmarshal([]byte(e.Data), &told) == nil && told.Status == "run_done" {
			runs--
		}
	}
	return events
}

func wantEvents(t *testing.T, got []event, want ...event) {
	t.Helper()
	if diff := cmp.Diff(append([]event{}, want...), append([]event{}, got...)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestAThreadIsStreamedOverItsRuns has readers that were there from the beginning, that came
// later, and that reconnect. All get the same events.
func TestAThreadIsStreamedOverItsRuns(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	present := f.followThread(t, thread, "", "")
	slow := f.followThread(t, thread, "", "") // it reads only at the end, and delays no reader
	for i, mode := range []string{"values", "updates", "messages"} {
		f.finish(t, thread, with(script(say("m"+mode, "Hel"), add("model", "m"+mode, "Hello")), "stream_mode", mode))
		if i == 0 {
			f.followThread(t, thread, "", "").leave()
		}
	}
	all := present.ends(t, 3)
	wantEvents(t, slow.ends(t, 3), all...)
	wantEvents(t, f.followThread(t, thread, "", "-").ends(t, 3), all...)
	ids := map[string]bool{}
	for i, e := range all {
		if e.ID == "" {
			continue
		}
		if ids[e.ID] {
			t.Errorf("the id %s is there twice", e.ID)
		}
		ids[e.ID] = true
		done := 0
		for _, before := range all[:i+1] {
			if len(before.ID) > 4 && before.ID[len(before.ID)-4:] == ".end" {
				done++
			}
		}
		if done < 3 {
			wantEvents(t, f.followThread(t, thread, "", e.ID).ends(t, 3-done), all[i+1:]...)
		}
	}
	lifecycle := f.followThread(t, thread, "?stream_modes=lifecycle", "-").ends(t, 3)
	updates := f.followThread(t, thread, "?stream_mode=state_update", "-").ends(t, 3)
	if len(lifecycle) != 6 {
		t.Errorf("the lifecycle of three runs is %v", lifecycle)
	}
	states := 0
	var newest struct {
		ThreadID string `json:"thread_id"`
		RunID    string `json:"run_id"`
		State    object `json:"state"`
	}
	for _, e := range updates {
		if e.Name == "state_update" {
			states++
			check.Must(t, json.Unmarshal([]byte(e.Data), &newest))
		}
	}
	if diff := cmp.Diff(f.call(t, "GET", thread+"/state", nil).body, any(newest.State)); diff != "" || "/threads/"+newest.ThreadID != thread || newest.RunID == "" {
		t.Errorf("the newest state, of thread %s and run %s (-want +got):\n%s", newest.ThreadID, newest.RunID, diff)
	}
	if states != 6 || len(updates) != 9 {
		t.Errorf("%d states are among %v", states, updates)
	}
	wantStatus(t, f.call(t, "GET", "/threads/"+unknownID+"/stream", nil), 404)
	wantStatus(t, f.send(t, "GET", f.path(thread+"/stream"), nil, map[string]string{auth.HeaderKey: f.key, "Last-Event-ID": "x"}), 422)
}

// TestAThreadIsStreamedWhileARunGoesOn has a reader that was there before the run. The run
// does not end.
func TestAThreadIsStreamedWhileARunGoesOn(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	reader := f.followThread(t, thread, "", "")
	defer time.AfterFunc(10*time.Second, reader.leave).Stop() // an error instead of no end
	run := with(script(say("m", "Hel"), graphtest.Step{Hold: true}), "stream_mode", "messages-tuple")
	f.start(t, thread, with(run, "after_seconds", 0.3)) // the reader sees the run pending
	for {
		e, err := nextEvent(reader.Reader)
		check.Must(t, err)
		if e.Name == "messages" {
			return
		}
	}
}

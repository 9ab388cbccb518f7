package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// cancel requests the end of a run, and checks the status of the answer.
func (th *thread) cancel(t *testing.T, status int, run, query string) response {
	t.Helper()
	return th.server.call(t, status, "POST", th.url+"/runs/"+run+"/cancel"+query, nil, nil)
}

// TestRegressions tests those of the defects in internal/api/agentserver/REGRESSIONS.md that no
// other test covers.
func TestRegressions(t *testing.T) {
	t.Parallel()
	agent := shared(t)

	t.Run("a thread is usable after a cancel between a tool's call and its result", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		thread.wait(t, ask(askSF, map[string]any{"node_delay_ms": 0, "fail": "tools"}))
		run := thread.run(t, request{"assistant_id": "agent", "config": map[string]any{"configurable": thinking}})
		eventually(t, "the tool is called", func() (bool, any) {
			status := thread.get(t, run.ID).Status
			return status == "running", status
		})
		thread.cancel(t, http.StatusNoContent, run.ID, "?wait=1")
		thread.wait(t, ask(askNYC, fast)).Messages.expect(t, slices.Concat([]string{"human", "call"}, answered)...)
		thread.expectRuns(t, "error", "interrupted", "success")
	})

	t.Run("the first of two cancels wins, and the second says so", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		run := thread.run(t, ask(askSF, slow))
		thread.awaitKinds(t, "human", "call", "tool")
		thread.cancel(t, http.StatusNoContent, run.ID, "?wait=1&action=interrupt")
		before := thread.state(t)
		for _, query := range []string{"", "?wait=1", "?action=rollback"} {
			second := thread.cancel(t, http.StatusNotFound, run.ID, query)
			if !strings.Contains(string(second.body), "No matching runs to cancel") {
				t.Errorf("the second cancel says %s", second.body)
			}
		}
		thread.expectRuns(t, "interrupted")
		thread.state(t).expect(t, before.kinds()...)
	})

	for strategy, want := range map[string]struct{ runs, kinds []string }{
		"interrupt": {[]string{"interrupted", "success"}, interrupted},
		"rollback":  {[]string{"success"}, answered},
	} {
		for _, path := range []string{"/runs/wait", "/runs/stream"} {
			t.Run("the strategy "+strategy+" works at "+path, func(t *testing.T) {
				t.Parallel()
				thread := agent.thread(t)
				first := thread.run(t, ask(askSF, slow))
				thread.awaitKinds(t, "human", "call", "tool")
				thread.server.call(t, http.StatusOK, "POST", thread.url+path, ask(askNYC, fast).with("multitask_strategy", strategy), nil)
				thread.state(t).expect(t, want.kinds...)
				thread.expectRuns(t, want.runs...)
				if strategy == "rollback" {
					thread.server.call(t, http.StatusNotFound, "GET", thread.url+"/runs/"+first.ID, nil, nil)
				}
			})
		}
	}

	t.Run("the streams of runs that are rolled back simply end", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		first := thread.stream(t, ask(askSF, slow).streaming())
		queued, cancelled := thread.stream(t, ask("and in rome?", fast)), thread.stream(t, ask("and in oslo?", fast))
		first.untilShown(t, 1)
		thread.cancel(t, http.StatusNoContent, cancelled.run(), "?action=rollback&wait=1")
		thread.wait(t, ask(askNYC, fast).with("multitask_strategy", "rollback")).Messages.expect(t, answered...)
		for _, s := range []*stream{first, queued, cancelled} {
			s.rest(t)
			if s.count("error") > 0 {
				t.Errorf("it has an error: %v", s.seen)
			}
		}
	})

	t.Run("whoever has read a stream to its end finds the thread as the stream has it", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		for range 10 {
			s := thread.stream(t, ask(askSF, fast))
			s.rest(t)
			var state, body struct {
				Values json.RawMessage
				Next   []string
				Status string
			}
			thread.server.call(t, http.StatusOK, "GET", thread.url+"/state", nil, &state)
			thread.server.call(t, http.StatusOK, "GET", thread.url, nil, &body)
			if last := s.seen[len(s.seen)-1]; string(state.Values) != last.data || string(body.Values) != last.data || len(state.Next) > 0 {
				t.Fatalf("the last values are\n%s, the state is\n%s, the thread has\n%s", last.data, state.Values, body.Values)
			}
			if status := thread.get(t, s.run()).Status; status != "success" || body.Status != "idle" {
				t.Fatalf("the run is %s, the thread %s", status, body.Status)
			}
		}
	})

	t.Run("questions that wait are on the server, for a client that comes back", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		first := thread.run(t, ask("the first", thinking))
		thread.run(t, ask("the second", fast))
		thread.run(t, ask("the third", fast))
		var waiting []runBody
		thread.server.call(t, http.StatusOK, "GET", thread.url+"/runs?status=pending", nil, &waiting)
		if len(waiting) < 2 || waiting[0].Kwargs.Input.Messages.last().Content != "the third" {
			t.Fatalf("there wait %+v", waiting)
		}
		thread.cancel(t, http.StatusAccepted, first.ID, "")
		last := thread.follow(t, waiting[0].ID, "-1")
		last.rest(t)
		if got := questions(thread.state(t)); !slices.Equal(got, []string{"the first", "the second", "the third"}) {
			t.Errorf("the questions are %q", got)
		}
	})

	t.Run("a run that fails at once blocks no queue", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		for range 5 {
			thread.run(t, ask(askSF, map[string]any{"fail": "model", "node_delay_ms": 0}))
		}
		thread.run(t, ask(askSF, map[string]any{"answer_words": -1}))
		thread.wait(t, ask(askNYC, fast))
		thread.expectRuns(t, "error", "error", "error", "error", "error", "error", "success")
		if status := thread.status(t); status != "idle" {
			t.Errorf("the thread is %s", status)
		}
	})
}

package e2e_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// brisk is slow enough for an action in the middle of an answer.
var brisk = map[string]any{"token_delay_ms": 10, "node_delay_ms": 30}

func TestStream(t *testing.T) {
	t.Parallel()
	agent := shared(t)

	t.Run("begins with the run's metadata and says where it can be taken up again", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		s := thread.stream(t, ask(askSF, fast).streaming())
		s.rest(t)
		expectIncreasing(t, s.seen)
		var metadata struct {
			Run     string `json:"run_id"`
			Attempt int    `json:"attempt"`
		}
		decode(t, s.seen[0].data, &metadata)
		if s.seen[0].name != "metadata" || metadata.Run != s.run() || metadata.Attempt != 1 {
			t.Errorf("the first event is %+v", s.seen[0])
		}
		if want := "/threads/" + thread.ID + "/runs/" + s.run(); s.header.Get("Content-Location") != want {
			t.Errorf("Content-Location is %q, want %q", s.header.Get("Content-Location"), want)
		}
		if want := "/threads/" + thread.ID + "/runs/" + s.run() + "/stream"; s.header.Get("Location") != want {
			t.Errorf("Location is %q, want %q", s.header.Get("Location"), want)
		}
		again := agent.server.open(t, "GET", agent.url+s.header.Get("Location"), nil, "Last-Event-ID", s.seen[2].id)
		again.rest(t)
		expectSame(t, "the rest at Location", again.seen, s.seen[3:])
	})

	t.Run("shows all its readers the same, whenever they come", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		first := thread.stream(t, ask(askSF, brisk).streaming())
		readers := []*stream{thread.follow(t, first.run(), "-1")}
		first.untilShown(t, 5)
		readers = append(readers, thread.follow(t, first.run(), "-1"), thread.follow(t, first.run(), ""))
		first.rest(t)
		readers = append(readers, thread.follow(t, first.run(), "-1"))
		for _, reader := range readers {
			reader.rest(t)
			expectSame(t, "another reader", reader.seen, first.seen)
		}
	})

	t.Run("goes on where a client left off", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		parts := thread.stream(t, ask(askSF, brisk).streaming())
		run, seen := parts.run(), []event{}
		for range 3 {
			parts.untilShown(t, 4)
			check.Must(t, parts.body.Close())
			seen = append(seen, parts.seen...)
			parts = thread.follow(t, run, parts.lastID())
		}
		parts.rest(t)
		seen = append(seen, parts.seen...)
		all := thread.follow(t, run, "-1")
		all.rest(t)
		expectSame(t, "the parts together", seen, all.seen)
		over := thread.follow(t, run, all.lastID())
		over.rest(t)
		expectSame(t, "what comes after the end", over.seen, nil)
		thread.expectRuns(t, "success")
	})

	t.Run("is held up for nobody by a reader that does not read", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		// This is much more than the buffers of a connection hold.
		idle := thread.stream(t, ask(askSF, map[string]any{"token_delay_ms": 0, "node_delay_ms": 0, "answer_words": 30_000}).streaming())
		busy := thread.follow(t, idle.run(), "-1")
		busy.rest(t)
		thread.join(t, idle.run()).Messages.expect(t, answered...)
		idle.rest(t)
		expectSame(t, "the one that read late", idle.seen, busy.seen)
	})

	t.Run("of a run that waits for its turn comes when the run does", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		first := thread.run(t, ask(askSF, brisk))
		second := thread.run(t, ask(askNYC, brisk).streaming())
		waiting := thread.follow(t, second.ID, "-1")
		thread.expectQueued(t, first.ID, second.ID)
		waiting.rest(t)
		if text := waiting.shown(t); !strings.HasPrefix(text, firstWords) || !strings.Contains(text, "New York") {
			t.Errorf("it showed %q", text)
		}
		if status := thread.get(t, first.ID).Status; status != "success" {
			t.Errorf("the first run is %s", status)
		}
	})

	t.Run("of a run that is interrupted simply ends", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		s := thread.stream(t, ask(askSF, slow).streaming())
		s.untilShown(t, 1)
		thread.run(t, ask(askNYC, fast).interrupting())
		s.rest(t)
		if s.count("error") > 0 {
			t.Errorf("it has an error: %v", s.seen)
		}
		again := thread.follow(t, s.run(), "-1")
		again.rest(t)
		expectSame(t, "the replay", again.seen, s.seen)
	})

	t.Run("of a run that fails ends with why", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		s := thread.stream(t, ask(askSF, map[string]any{"node_delay_ms": 0, "fail": "tools"}))
		s.rest(t)
		last := s.seen[len(s.seen)-1]
		var failure struct{ Error, Message string }
		decode(t, last.data, &failure)
		if last.name != "error" || failure.Error != "NodeError" || !strings.Contains(failure.Message, "tools") {
			t.Errorf("the last event is %+v", last)
		}
		thread.expectRuns(t, "error")
		if status := thread.status(t); status != "error" {
			t.Errorf("the thread is %s", status)
		}
		thread.wait(t, ask(askNYC, fast)).Messages.expect(t, "human", "call", "human", "call", "tool", "ai")
	})
}

func TestStreamModes(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	in := func(t *testing.T, modes ...string) (*thread, *stream) {
		thread := agent.thread(t)
		s := thread.stream(t, ask(askSF, fast).with("stream_mode", modes))
		s.rest(t)
		expectIncreasing(t, s.seen)
		return thread, s
	}

	t.Run("values shows the state after each step", func(t *testing.T) {
		t.Parallel()
		thread, s := in(t, "values")
		var last messages
		for i, e := range s.seen[1:] {
			if e.name != "values" || i == len(answered) {
				t.Fatalf("there is an event %+v after %v", e, s.names())
			}
			var now values
			decode(t, e.data, &now)
			now.Messages.expect(t, answered[:i+1]...)
			last = now.Messages
		}
		if final := thread.state(t); len(last) != len(final) || last.last().ID != final.last().ID {
			t.Errorf("the last values are %+v, the state is %+v", last, final)
		}
	})

	t.Run("updates shows what each node adds", func(t *testing.T) {
		t.Parallel()
		_, s := in(t, "updates")
		nodes := []string{}
		for _, e := range s.seen[1:] {
			var update map[string]values
			decode(t, e.data, &update)
			for node, added := range update {
				nodes = append(nodes, e.name+" "+node+" "+added.Messages.last().kind())
			}
		}
		if want := []string{"updates model call", "updates tools tool", "updates model ai"}; !slices.Equal(nodes, want) {
			t.Errorf("the updates are %q, want %q", nodes, want)
		}
	})

	t.Run("messages-tuple shows each token once", func(t *testing.T) {
		t.Parallel()
		thread, s := in(t, "messages-tuple")
		if got, want := s.shown(t), thread.state(t).last().Content; got != want {
			t.Errorf("the tokens make %q, the answer is %q", got, want)
		}
	})

	t.Run("messages shows each message as it grows, and complete at last", func(t *testing.T) {
		t.Parallel()
		thread, s := in(t, "messages")
		final := thread.state(t)
		before := ""
		completed := []string{}
		for _, e := range s.seen[1:] {
			var now messages
			switch e.name {
			case "messages/partial":
				decode(t, e.data, &now)
				if text := now.last().Content; now.last().ID == final.last().ID && !strings.HasPrefix(text, before) {
					t.Fatalf("%q does not continue %q", text, before)
				}
				before = now.last().Content
			case "messages/complete":
				decode(t, e.data, &now)
				completed = append(completed, now.last().ID)
			case "messages/metadata":
			default:
				t.Errorf("there is an event %+v", e)
			}
		}
		if before != final.last().Content {
			t.Errorf("the last partial message is %q, the answer %q", before, final.last().Content)
		}
		if want := []string{final[1].ID, final[2].ID, final[3].ID}; !slices.Equal(completed, want) {
			t.Errorf("the messages %v were completed, want %v", completed, want)
		}
	})

	t.Run("several modes come in one stream, and one of them can be chosen later", func(t *testing.T) {
		t.Parallel()
		thread, s := in(t, "updates", "values", "messages-tuple")
		if s.count("updates") != 3 || s.count("values") != 4 || s.count("messages") < 10 {
			t.Errorf("the events are %v", s.names())
		}
		chosen := agent.server.open(t, "GET", thread.url+"/runs/"+s.run()+"/stream?stream_mode=updates", nil)
		chosen.rest(t)
		want := slices.DeleteFunc(slices.Clone(s.seen), func(e event) bool { return e.name != "updates" && e.name != "metadata" })
		expectSame(t, "the chosen mode", chosen.seen, want)
	})

	t.Run("without a mode, values are streamed", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		s := thread.stream(t, ask(askSF, fast))
		s.rest(t)
		if want := []string{"metadata", "values", "values", "values", "values"}; !slices.Equal(s.names(), want) {
			t.Errorf("the events are %v", s.names())
		}
	})
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	agent := shared(t)

	t.Run("keeps connections open that have nothing to tell", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		s := thread.stream(t, ask(askSF, map[string]any{"node_delay_ms": 0, "token_delay_ms": 5500, "answer_words": 1}))
		joined := agent.server.call(t, http.StatusOK, "GET", thread.url+"/runs/"+s.run()+"/join", nil, nil)
		s.rest(t)
		if want := []string{"metadata", "values", "values", "values", "values"}; !slices.Equal(s.names(), want) {
			t.Errorf("the events are %v", s.names())
		}
		if len(s.comments) == 0 || s.comments[0] != " heartbeat" {
			t.Errorf("the stream has the comments %q", s.comments)
		}
		if !bytes.HasPrefix(joined.body, []byte("\n")) || joined.header.Get("Content-Type") != "application/json" {
			t.Errorf("the join has the body %q as %s", joined.body, joined.header.Get("Content-Type"))
		}
		var left values
		decode(t, string(joined.body), &left)
		left.Messages.expect(t, answered...)
	})

	t.Run("for a run returns its values, and says which run it was", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		var left values
		got := agent.server.call(t, http.StatusOK, "POST", thread.url+"/runs/wait", ask(askSF, fast), &left)
		left.Messages.expect(t, answered...)
		run := thread.list(t)[0].ID
		if want := "/threads/" + thread.ID + "/runs/" + run; got.header.Get("Content-Location") != want {
			t.Errorf("Content-Location is %q, want %q", got.header.Get("Content-Location"), want)
		}
		var joined values
		agent.server.call(t, http.StatusOK, "GET", agent.url+got.header.Get("Location"), nil, &joined)
		joined.Messages.expect(t, answered...)
	})

	t.Run("for a run that fails returns why", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		left := thread.wait(t, ask(askSF, map[string]any{"node_delay_ms": 0, "fail": "model"}))
		if left.Error == nil || left.Error.Name != "NodeError" || left.Error.Message == "" {
			t.Errorf("the values are %+v", left)
		}
		thread.state(t).expect(t, "human")
	})

	t.Run("is what a busy thread says until it is idle", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		run := thread.run(t, ask(askSF, unhurried))
		if status := thread.status(t); status != "busy" {
			t.Errorf("the thread is %s", status)
		}
		thread.join(t, run.ID)
		if status := thread.status(t); status != "idle" {
			t.Errorf("the thread is %s", status)
		}
	})

	t.Run("is not needed: a run goes on when its client has gone", func(t *testing.T) {
		t.Parallel()
		thread := agent.thread(t)
		s := thread.stream(t, ask(askSF, brisk).streaming())
		s.untilShown(t, 2)
		check.Must(t, s.body.Close())
		thread.join(t, s.run()).Messages.expect(t, answered...)
		thread.expectRuns(t, "success")
	})
}

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestServerIsKilledDuringARollout several times in the same step, also right after a restart.
func TestServerIsKilledDuringARollout(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, point := range []struct {
		name string
		// status is the status of the revision when the server is killed, "" if the test has
		// not read it.
		status string
		held   func(gate) framework
	}{
		{"right after the request", "", func(g gate) framework { return agentConfig().with("build", g.wait()) }},
		{"while it builds", "BUILDING", func(g gate) framework { return agentConfig().with("build", g.wait()) }},
		{"while the agent starts", "DEPLOYING", func(g gate) framework { return agentConfig().with("start", g.wait()+"; exec ./agent") }},
	} {
		t.Run(point.name, func(t *testing.T) {
			gate := newGate(t)
			repo := agentRepository(t)
			repo.branch(t, "held", point.held(gate))
			agent, created := s.create(t, creation(repo.url(), "held"))
			revision := value(created.LatestRevision)
			if point.status != "" {
				agent.awaitStatus(t, revision, point.status)
			}
			for range 3 {
				s.kill9(t)
				s.restart(t)
				if point.status != "" {
					agent.awaitStatus(t, revision, point.status)
				}
			}
			s.kill9(t)
			gate.open(t)
			s.restart(t)
			agent.awaitDeployed(t, revision)
			if got := agent.get(t); value(got.ActiveRevision) != revision {
				t.Errorf("the active revision is %s, want %s", value(got.ActiveRevision), revision)
			}
			agent.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
		})
	}
}

// unhurried lets a test see the middle of an answer, and lets the run end soon after it.
var unhurried = map[string]any{"token_delay_ms": 40, "node_delay_ms": 100}

// lengthy lets a test end a process in the middle of an answer, even on a slow machine.
var lengthy = map[string]any{"token_delay_ms": 40, "answer_words": 250, "node_delay_ms": 100}

func TestServerIsKilledDuringARun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	agent := s.deploy(t, agentRepository(t), "main")

	t.Run("before the first token", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, map[string]any{"node_delay_ms": 500, "token_delay_ms": 1}).streaming())
		seen.untilMessages(t, 1)
		s.kill9(t)
		seen.drain()
		s.restart(t)
		expectRecovered(t, thread, seen)
	})

	t.Run("between the tool and the answer", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, map[string]any{"node_delay_ms": 300, "token_delay_ms": 1}).streaming())
		before := seen.untilMessages(t, 3)
		s.kill9(t)
		seen.drain()
		s.restart(t)
		expectRecovered(t, thread, seen)
		if after := thread.state(t); after[1].ID != before[1].ID || after[2].ID != before[2].ID {
			t.Errorf("the tool was called again: %+v, before %+v", after, before)
		}
	})

	t.Run("in the middle of the answer", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, unhurried).streaming())
		seen.untilShown(t, 10)
		s.kill9(t)
		seen.drain()
		s.restart(t)
		expectRecovered(t, thread, seen)
	})

	t.Run("twice in the middle of the answer", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, unhurried).streaming())
		for range 2 {
			seen.untilShown(t, 5)
			s.kill9(t)
			seen.drain()
			s.restart(t)
			resumed := thread.follow(t, seen.run(), seen.lastID())
			resumed.seen = seen.seen
			seen = resumed
		}
		seen.rest(t)
		expectRecovered(t, thread, seen)
	})

	t.Run("with runs queued behind", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask("what's the weather in sf, 0?", unhurried).streaming())
		want := []string{"what's the weather in sf, 0?"}
		for i := range 3 {
			want = append(want, fmt.Sprintf("what's the weather in sf, %d?", i+1))
			thread.run(t, ask(want[i+1], fast))
		}
		seen.untilShown(t, 5)
		s.kill9(t)
		seen.drain()
		s.restart(t)
		runs := thread.list(t)
		thread.join(t, runs[3].ID)
		thread.expectRuns(t, "success", "success", "success", "success")
		final := thread.state(t)
		final.expect(t, slices.Concat(answered, answered, answered, answered)...)
		if got := questions(final); !slices.Equal(got, want) {
			t.Errorf("the questions are %q, want %q", got, want)
		}
	})

	t.Run("when it had been interrupted and its successor had not begun", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, lengthy).streaming())
		seen.untilShown(t, 10)
		second := thread.run(t, ask(askNYC, map[string]any{"node_delay_ms": 500, "token_delay_ms": 0}).interrupting())
		s.kill9(t)
		seen.drain()
		s.restart(t)
		thread.join(t, second.ID)
		final := thread.state(t)
		final.expect(t, "human", "call", "tool", "partial", "human", "call", "tool", "ai")
		if !strings.HasPrefix(final[3].Content, seen.shown(t)) {
			t.Errorf("the thread keeps %q, the client was shown %q", final[3].Content, seen.shown(t))
		}
		thread.expectRuns(t, "interrupted", "success")
	})
}

// expectRecovered checks that a run which lost its worker ends as if nothing had happened, for the
// thread and for a client that streams it.
func expectRecovered(t *testing.T, thread *thread, seen *stream) {
	t.Helper()
	thread.join(t, seen.run()).Messages.expect(t, answered...)
	thread.expectRuns(t, "success")
	final := thread.state(t)
	final.expect(t, answered...)

	all := thread.follow(t, seen.run(), "-1")
	all.rest(t)
	expectIncreasing(t, all.seen)
	before := len(seen.seen)
	if before > len(all.seen) {
		t.Fatalf("the client had seen %d events, now there are %d", before, len(all.seen))
	}
	expectSame(t, "what the client had seen", all.seen[:before], seen.seen)
	resumed := thread.follow(t, seen.run(), seen.lastID())
	resumed.rest(t)
	expectSame(t, "what the client sees when it comes back", resumed.seen, all.seen[before:])
	if text := final.last().Content; !strings.HasSuffix(all.shown(t), text) {
		t.Errorf("the answer %q is not what was streamed: %q", text, all.shown(t))
	}
}

// expectTakenOver checks that the run of a server that has ended continues as soon as the next
// server is ready, and not only when a lease of thirty seconds is over.
func expectTakenOver(t *testing.T, thread *thread, seen *stream, began time.Time) {
	t.Helper()
	next := thread.follow(t, seen.run(), seen.lastID())
	next.until(t, "the next attempt", func(e event) bool { return e.name == "metadata" })
	next.body.Close()
	if took := time.Since(began); took > grace {
		t.Errorf("the run was taken up after %s", took)
	}
}

func TestAgentIsKilledDuringARun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	agent := s.deploy(t, agentRepository(t), "main")
	revision := value(agent.get(t).ActiveRevision)

	t.Run("the run ends well, and the tool is called once", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, unhurried).streaming())
		seen.untilShown(t, 10)
		before := thread.state(t)
		old, err := s.agents(revision)
		check.Must(t, err)
		check.Must(t, s.killAgents(revision))
		seen.rest(t)
		expectRecovered(t, thread, seen)
		if after := thread.state(t); after[1].ID != before[1].ID || after[2].ID != before[2].ID {
			t.Errorf("the tool was called again: %+v, before %+v", after, before)
		}
		restarted, err := s.agents(revision)
		anew := !slices.ContainsFunc(restarted, func(pid int) bool { return slices.Contains(old, pid) })
		if err != nil || len(restarted) == 0 || !anew {
			t.Errorf("the agent's processes are %v (%v), before %v", restarted, err, old)
		}
	})

	t.Run("other runs of the agent end well too", func(t *testing.T) {
		seen := agent.thread(t).stream(t, ask(askSF, unhurried).streaming())
		var threads []*thread
		var runs []runBody
		for range 5 {
			thread := agent.thread(t)
			threads, runs = append(threads, thread), append(runs, thread.run(t, ask(askSF, unhurried)))
		}
		seen.untilShown(t, 5)
		check.Must(t, s.killAgents(revision))
		for i, thread := range threads {
			thread.join(t, runs[i].ID).Messages.expect(t, answered...)
			thread.expectRuns(t, "success")
		}
	})

	t.Run("a run that kills its agent each time ends in words, and what it showed is kept", func(t *testing.T) {
		thread := agent.thread(t)
		seen := thread.stream(t, ask(askSF, map[string]any{"node_delay_ms": 0, "token_delay_ms": 1, "crash_attempts": 100}).streaming())
		behind := thread.run(t, ask(askNYC, fast))
		seen.rest(t)
		failure := thread.join(t, seen.run()).Error
		if failure == nil || failure.Name == "" || failure.Message == "" {
			t.Errorf("the run's values do not say why: %+v", failure)
		}
		thread.join(t, behind.ID)
		thread.expectRuns(t, "error", "success")
		final := thread.state(t)
		final.expect(t, slices.Concat([]string{"human", "call", "tool", "partial"}, answered)...)
		if !strings.HasPrefix(final[3].Content, firstWords) {
			t.Errorf("the thread keeps %q", final[3].Content)
		}
	})
}

// grace is how long a server that is asked to end lets runs continue, slack is the additional
// time on a busy machine.
const grace, slack = 10 * time.Second, 5 * time.Second

func TestServerIsTerminatedDuringARun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	agent := s.deploy(t, agentRepository(t), "main")
	short, long := agent.thread(t), agent.thread(t)
	shortRun := short.run(t, ask(askSF, unhurried))
	seen := long.stream(t, ask(askNYC, map[string]any{"token_delay_ms": 60, "answer_words": 250, "node_delay_ms": 0}).streaming())
	seen.untilShown(t, 3)

	asked := time.Now()
	exit, err := s.terminate()
	if err != nil || exit != 0 {
		t.Errorf("the server ended with code %d (%v)", exit, err)
	}
	if took := time.Since(asked); took > grace+slack {
		t.Errorf("the server took %s to end", took)
	}
	seen.drain()
	s.restart(t)
	began := time.Now()
	expectTakenOver(t, long, seen, began)

	t.Run("what was near its end had ended", func(t *testing.T) {
		if status := short.get(t, shortRun.ID).Status; status != "success" {
			t.Errorf("the short run is %s", status)
		}
		short.state(t).expect(t, answered...)
	})
	t.Run("what was not goes on after the next start", func(t *testing.T) {
		expectRecovered(t, long, seen)
	})
}

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestNothingIsDroppedDuringARollout has clients that send requests all the time while a
// second revision takes over from the first revision.
func TestNothingIsDroppedDuringARollout(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	repo := agentRepository(t)
	// This agent lets no work finish after it is asked to end: the server must not ask it too
	// early.
	repo.branch(t, "hasty", agentConfig().with("start", `./agent & trap "kill -9 $!" TERM; wait`))
	agent := s.deploy(t, repo, "hasty")
	first := value(agent.get(t).ActiveRevision)

	// Runs that are in the middle of their answers when the second revision takes over.
	inFlight := agent.thread(t)
	streamed := inFlight.stream(t, ask(askSF, map[string]any{"token_delay_ms": 30, "answer_words": 200, "node_delay_ms": 0}).streaming())
	streamed.untilShown(t, 3)

	ended := make(chan struct{})
	var clients sync.WaitGroup
	problems := make(chan error, 8)
	for range cap(problems) {
		thread := agent.thread(t)
		clients.Go(func() { problems <- keepAsking(t, thread, ended) })
	}
	second := agent.patch(t, "refs/tags/v2")
	agent.awaitDeployed(t, second)
	after := agent.thread(t).wait(t, ask(askSF, fast)).Messages
	close(ended)
	clients.Wait()
	for range cap(problems) {
		if err := <-problems; err != nil {
			t.Error(err)
		}
	}
	after.expect(t, answered...)
	if text := after.last().Content; !strings.HasPrefix(text, secondWords) {
		t.Errorf("the second revision answers %q", text)
	}
	streamed.rest(t)
	expectRecovered(t, inFlight, streamed)
	if text := inFlight.state(t).last().Content; !strings.HasPrefix(text, firstWords) {
		t.Errorf("the run that began on the first revision answers %q", text)
	}
	if streamed.count("metadata") != 1 {
		t.Errorf("the run was begun again: %v", streamed.names())
	}
	eventually(t, "the first revision's agent has ended", func() (bool, any) {
		pids, err := s.agents(first)
		return err == nil && len(pids) == 0, pids
	})
}

// TestARunOutlastsTheDraining of the revision that began it: the next revision continues the
// run from its last step, and no shown text is lost.
func TestARunOutlastsTheDraining(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--drain-limit", "1s")
	repo := agentRepository(t)
	repo.branch(t, "hasty", agentConfig().with("start", `./agent & trap "kill -9 $!" TERM; wait`))
	agent := s.deploy(t, repo, "hasty")
	first := value(agent.get(t).ActiveRevision)
	thread := agent.thread(t)
	seen := thread.stream(t, ask(askSF, map[string]any{"token_delay_ms": 60, "answer_words": 1000, "node_delay_ms": 0}).streaming())
	seen.untilShown(t, 3)
	agent.awaitDeployed(t, agent.patch(t, "refs/tags/v2"))
	seen.until(t, "the next attempt", func(event) bool { return seen.count("metadata") == 2 })
	eventually(t, "the first revision's agent has ended", func() (bool, any) {
		pids, err := s.agents(first)
		return err == nil && len(pids) == 0, pids
	})
	seen.untilShown(t, 20)
	thread.server.call(t, http.StatusNoContent, "POST", thread.url+"/runs/"+seen.run()+"/cancel?wait=1", nil, nil)
	seen.rest(t)
	all := thread.follow(t, seen.run(), "-1")
	all.rest(t)
	expectIncreasing(t, all.seen)
	expectSame(t, "the replay", all.seen, seen.seen)
	thread.expectRuns(t, "interrupted")
	final := thread.state(t)
	final.expect(t, "human", "call", "tool", "partial", "partial")
	if before, after := final[3].Content, final[4].Content; !strings.HasPrefix(before, firstWords) || !strings.HasPrefix(after, secondWords) {
		t.Errorf("the first revision has shown %q, the second goes on with %q", before, after)
	}
	if seen.count("metadata") != 2 {
		t.Errorf("the run was begun more than once again: %v", seen.names())
	}
}

// keepAsking runs, reads and lists until it is told to stop, and returns the first error.
func keepAsking(t *testing.T, thread *thread, ended <-chan struct{}) error {
	asked := 0
	for {
		select {
		case <-ended:
			return nil
		default:
		}
		asked++
		for _, request := range []struct {
			method, address string
			body            any
		}{
			{"POST", thread.url + "/runs/wait", ask(askNYC, map[string]any{"token_delay_ms": 2, "node_delay_ms": 2})},
			{"GET", thread.url + "/runs", nil},
			{"GET", thread.url + "/state", nil},
		} {
			got, err := thread.server.do(t.Context(), request.method, request.address, request.body)
			if err == nil && got.status != http.StatusOK {
				err = fmt.Errorf("%s %s: status %d: %s", request.method, request.address, got.status, got.body)
			}
			if err != nil {
				return err
			}
			if err := checkAsked(request.address, got.body, asked); err != nil {
				return err
			}
		}
	}
}

// checkAsked checks, by the final values of a run, that the given number of questions were
// answered.
func checkAsked(address string, body []byte, asked int) error {
	if !strings.HasSuffix(address, "/wait") {
		return nil
	}
	var left values
	if err := json.Unmarshal(body, &left); err != nil {
		return err
	}
	if len(left.Messages) != asked*len(answered) {
		return fmt.Errorf("after %d questions the thread reads %v (%+v)", asked, left.Messages.kinds(), left.Error)
	}
	return nil
}

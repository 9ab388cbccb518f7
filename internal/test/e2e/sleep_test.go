//go:build !lambda

package e2e_test

import (
	"net/http"
	"sync"
	"testing"
)

// TestAnAgentThatNobodyCallsSleeps has an agent sleep between requests, during a rollout, and
// when it is deleted. A run that lasts longer than the limit is not cut.
func TestAnAgentThatNobodyCallsSleeps(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--sleep-after", "300ms")
	repo := agentRepository(t)
	agent := s.deploy(t, repo, "refs/tags/v1")
	first := value(agent.get(t).ActiveRevision)
	sleeps := func(revision string) {
		t.Helper()
		eventually(t, "the agent sleeps", func() (bool, any) {
			pids, err := s.agents(revision)
			return err == nil && len(pids) == 0, pids
		})
	}
	sleeps(first)
	s.call(t, http.StatusOK, "GET", agent.url+"/ok", nil, nil)
	s.call(t, http.StatusOK, "GET", agent.url+"/info", nil, nil)
	if got := agent.revision(t, first).Status; got != "DEPLOYED" {
		t.Errorf("the revision is %s", got)
	}
	if pids, err := s.agents(first); err != nil || len(pids) > 0 {
		t.Errorf("a look has woken %v, %v", pids, err)
	}

	var callers sync.WaitGroup
	for range 5 {
		thread := agent.thread(t)
		callers.Go(func() {
			got, err := s.do(t.Context(), "POST", thread.url+"/runs/wait", ask(askSF, fast))
			if err != nil || got.status != http.StatusOK {
				t.Errorf("got %d %s, %v", got.status, got.body, err)
			}
		})
	}
	callers.Wait()
	thread := agent.thread(t)
	long := thread.stream(t, ask(askSF, map[string]any{"token_delay_ms": 10, "answer_words": 200, "node_delay_ms": 0}).streaming())
	long.rest(t)
	if long.count("metadata") != 1 {
		t.Errorf("the run was begun again: %v", long.names())
	}
	thread.expectRuns(t, "success")
	sleeps(first)

	second := agent.patch(t, "refs/tags/v2")
	agent.awaitDeployed(t, second)
	sleeps(second)
	agent.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	sleeps(second)
	for _, revision := range []string{first, second} {
		if why := agent.revision(t, revision).Reason; why != nil {
			t.Errorf("a revision that slept has the reason %s", *why)
		}
	}
	s.call(t, http.StatusNoContent, "DELETE", agent.path, nil, nil)
	eventually(t, "the deployment is gone", func() (bool, any) {
		got, err := s.do(t.Context(), "GET", agent.path, nil)
		return err == nil && got.status == http.StatusNotFound, got.status
	})
}

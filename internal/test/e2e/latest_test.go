//go:build lambda

// The function reconcile runs every few seconds in these tests, and once a minute on one machine.

package e2e_test

import (
	"net/http"
	"testing"
)

// TestThreadsKeepTheirLatestState has threads lose their history, and not their state, after the
// time that the configuration file says.
func TestThreadsKeepTheirLatestState(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	repo := agentRepository(t)
	repo.branch(t, "latest", agentConfig().with("checkpointer", map[string]any{"ttl": map[string]any{"strategy": "keep_latest", "default_ttl": 0.1}}))
	th := s.deploy(t, repo, "latest").thread(t)
	th.wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	eventually(t, "the history has one state", func() (bool, any) {
		var states []struct{ Values values }
		s.call(t, http.StatusOK, "POST", th.url+"/history", map[string]any{"limit": 100}, &states)
		if len(states) == 0 {
			t.Fatal("the thread has no state any more")
		}
		return len(states) == 1, len(states)
	})
	th.state(t).expect(t, answered...)
}

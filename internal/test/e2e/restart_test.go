package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// onceThen starts only the agent the first time, and runs the command before the agent each
// later time.
func onceThen(command string) framework {
	return agentConfig().with("start", `if [ -e "$HOME/begun" ]; then `+command+`; fi; touch "$HOME/begun"; exec ./agent`)
}

// restartInPlace requests a restart and returns its id.
func (d *deployment) restartInPlace(t *testing.T) string {
	t.Helper()
	var begun struct {
		ID         string `json:"id"`
		Deployment string `json:"deployment_id"`
		Revision   string `json:"revision_id"`
	}
	d.server.call(t, http.StatusAccepted, "POST", d.path+"/restart", nil, &begun)
	if begun.ID == "" || begun.Deployment != d.ID || begun.Revision != value(d.get(t).ActiveRevision) {
		t.Errorf("the restart is %+v", begun)
	}
	return begun.ID
}

// awaitTold waits for the event that reports the result of a restart, and returns its type and
// message.
func (d *deployment) awaitTold(t *testing.T, restart string) (kind, words string) {
	t.Helper()
	eventually(t, "the end of the restart is told", func() (bool, any) {
		var page struct {
			Resources []struct {
				Type string
				Data struct {
					Message string `json:"status_message"`
					Reason  string `json:"status_reason"`
				}
			}
		}
		d.server.call(t, http.StatusOK, "GET", d.path+"/events?limit=100", nil, &page)
		for _, e := range page.Resources {
			if strings.Contains(e.Data.Message, restart) {
				kind, words = e.Type, e.Data.Reason+": "+e.Data.Message
			}
		}
		return kind != "", page
	})
	return kind, words
}

// TestARestartInPlace has a successor take the place of an agent that is in the middle of an
// answer. No request is refused, and no answer is cut.
func TestARestartInPlace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	gate := newGate(t)
	repo := agentRepository(t)
	repo.branch(t, "held", onceThen(gate.wait()))
	d := s.deploy(t, repo, "held")
	revision := value(d.get(t).ActiveRevision)
	before, err := s.agents(revision)
	if err != nil || len(before) == 0 {
		t.Fatalf("processes %v, %v", before, err)
	}
	th := d.thread(t)
	answer := th.stream(t, ask(askSF, map[string]any{"token_delay_ms": 300, "node_delay_ms": 20}).streaming())
	answer.untilShown(t, 2)

	restart := d.restartInPlace(t)
	d.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	gate.open(t)
	if kind, words := d.awaitTold(t, restart); kind != "deployment.restarted" {
		t.Errorf("told is %s %s", kind, words)
	}
	d.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	answer.rest(t)
	th.expectRuns(t, "success")
	th.state(t).expect(t, answered...)
	th.wait(t, ask(askNYC, fast))
	eventually(t, "only the successor runs", func() (bool, any) {
		now, err := s.agents(revision)
		old := slices.ContainsFunc(now, func(pid int) bool { return slices.Contains(before, pid) })
		return err == nil && len(now) > 0 && !old, now
	})
	if got := d.get(t); value(got.LatestRevision) != revision || value(got.ActiveRevision) != revision {
		t.Errorf("after the restart the newest revision is %s, active is %s, before it was %s", value(got.LatestRevision), value(got.ActiveRevision), revision)
	}
}

// TestARestartWhoseSuccessorCannotStart does not change the serving agent, and reports the
// reason.
func TestARestartWhoseSuccessorCannotStart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	repo := agentRepository(t)
	repo.branch(t, "once", onceThen("echo there is no second time; exit 7"))
	d := s.deploy(t, repo, "once")
	revision := value(d.get(t).ActiveRevision)
	before, err := s.agents(revision)
	check.Must(t, err)
	kind, words := d.awaitTold(t, d.restartInPlace(t))
	if kind != "deployment.restart_failed" || !strings.Contains(words, "START_FAILED") || !strings.Contains(words, "there is no second time") {
		t.Errorf("told is %s %s", kind, words)
	}
	d.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	if now, err := s.agents(revision); err != nil || !slices.Equal(now, before) {
		t.Errorf("processes %v run, before it was %v (%v)", now, before, err)
	}
}

package e2e_test

import (
	"net/http"
	"testing"
)

// TestADeploymentIsUndeleted deletes a deployment with a recovery window while another
// deployment uses its name, restores it with its threads, and lets the next window end.
func TestADeploymentIsUndeleted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	repo := agentRepository(t)
	d := s.deploy(t, repo, "main")
	name, first := d.get(t).Name, value(d.get(t).ActiveRevision)
	kept := d.thread(t)
	kept.wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	namesake := creation(repo.url(), "main")
	namesake["name"] = name
	var other *deployment
	story(t,
		step{"its agent stops, and its name is free at once", func(t *testing.T) {
			s.call(t, http.StatusNoContent, "DELETE", d.path+"?recovery_window_seconds=3600", nil, nil)
			if got := d.get(t); got.Status != "AWAITING_DELETE" {
				t.Errorf("it is %s", got.Status)
			}
			s.call(t, http.StatusNotFound, "GET", d.url+"/threads/"+kept.ID, nil, nil)
			eventually(t, "its agent has ended", func() (bool, any) {
				pids, err := s.agents(first)
				return err == nil && len(pids) == 0, pids
			})
			other, _ = s.create(t, namesake)
		}},
		step{"it cannot come back while its name is another's", func(t *testing.T) {
			s.call(t, http.StatusConflict, "POST", d.path+"/undelete", nil, nil)
			s.call(t, http.StatusNoContent, "DELETE", other.path, nil, nil)
		}},
		step{"a server that is killed in the window keeps it", func(t *testing.T) {
			s.kill9(t)
			s.restart(t)
			if got := d.get(t); got.Status != "AWAITING_DELETE" {
				t.Errorf("it is %s", got.Status)
			}
		}},
		step{"undeleted, it is deployed again, and its thread goes on", func(t *testing.T) {
			var back deploymentBody
			s.call(t, http.StatusOK, "POST", d.path+"/undelete", nil, &back)
			if back.Status != "READY" || value(back.LatestRevision) == first {
				t.Errorf("it is back as %+v", back)
			}
			d.awaitDeployed(t, value(back.LatestRevision))
			s.call(t, http.StatusConflict, "POST", d.path+"/undelete", nil, nil)
			all := kept.wait(t, ask(askNYC, fast)).Messages
			if len(all) != 2*len(answered) {
				t.Errorf("the thread has %d messages: %+v", len(all), all)
			}
		}},
		step{"after its next window it is gone", func(t *testing.T) {
			s.call(t, http.StatusNoContent, "DELETE", d.path+"?recovery_window_seconds=1", nil, nil)
			eventually(t, "it is not found", func() (bool, any) {
				got, err := s.do(t.Context(), "GET", d.path, nil)
				return err == nil && got.status == http.StatusNotFound, string(got.body)
			})
			s.call(t, http.StatusNotFound, "POST", d.path+"/undelete", nil, nil)
		}},
	)
}

package e2e_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

type listenerBody struct {
	ID       string  `json:"id"`
	Version  *string `json:"version"`
	LastSeen *string `json:"last_seen_at"`
	Online   bool    `json:"online"`
}

// newListener creates a listener and returns a process of it.
func (s *server) newListener(t *testing.T) (*listener, listenerBody) {
	t.Helper()
	var created listenerBody
	s.call(t, http.StatusCreated, "POST", "/v2/listeners", map[string]any{
		"compute_type": "k8s", "compute_id": "cluster-" + rand.Text(), "compute_config": map[string]any{"k8s_namespaces": []string{"agents"}},
	}, &created)
	return &listener{server: s, path: "/v2/listeners/" + created.ID, holder: rand.Text(), cluster: newCluster(t)}, created
}

// another returns a further process of the same listener.
func (l *listener) another() *listener {
	return &listener{server: l.server, path: l.path, holder: rand.Text(), cluster: l.cluster}
}

func (l *listener) read(t *testing.T) listenerBody {
	t.Helper()
	var body listenerBody
	l.server.call(t, http.StatusOK, "GET", l.path, nil, &body)
	return body
}

// placedAt returns the body that creates a deployment that a listener runs.
func placedAt(listenerID, image string, secrets ...secret) map[string]any {
	body := creation("", "", secrets...)
	body["source"] = "external_docker"
	body["source_config"] = map[string]any{"listener_id": listenerID, "resource_spec": map[string]any{"cpu": 1}}
	body["source_revision_config"] = map[string]any{"image_uri": image}
	return body
}

// image gives a deployment another image and returns the new revision.
func (d *deployment) image(t *testing.T, image string) string {
	t.Helper()
	var after deploymentBody
	d.server.call(t, http.StatusOK, "PATCH", d.path, map[string]any{"source_revision_config": map[string]any{"image_uri": image}}, &after)
	return value(after.LatestRevision)
}

// expectAnswer runs the agent once on a new thread.
func (d *deployment) expectAnswer(t *testing.T, words string) {
	t.Helper()
	got := d.thread(t).wait(t, ask(askSF, fast)).Messages
	got.expect(t, answered...)
	if text := got.last().Content; !strings.HasPrefix(text, words) {
		t.Errorf("the agent answers %q, want %q", text, words)
	}
}

// TestAListenerRunsADeployment follows a deployment from its creation to its end.
func TestAListenerRunsADeployment(t *testing.T) {
	t.Parallel()
	on := newLocal(t.TempDir(), "--verbose", "--private-addresses") // the cluster is this machine
	s := startServer(t, on)
	mine, theirs := "mine-"+rand.Text(), "theirs-"+rand.Text()
	l, created := s.newListener(t)
	bystander, other := s.newListener(t)
	l.start(t)
	bystander.start(t)
	d, body := s.create(t, placedAt(created.ID, "weather:v1", secret{"MINE", mine}))
	foreign, beside := s.create(t, placedAt(other.ID, "weather:v1", secret{"THEIRS", theirs}))
	first, second := value(body.LatestRevision), ""
	story(t,
		step{"the revision is deployed, and runs go to its agent", func(t *testing.T) {
			d.awaitDeployed(t, first)
			foreign.awaitDeployed(t, value(beside.LatestRevision))
			d.expectAnswer(t, firstWords)
			if pids, err := s.agents(first); err != nil || len(pids) != 1 {
				t.Errorf("its agents are %v (%v)", pids, err)
			}
			if seen := l.read(t); !seen.Online || value(seen.Version) != "reference" || seen.LastSeen == nil {
				t.Errorf("the listener is %+v", seen)
			}
		}},
		step{"secrets are with the agent that they are for, and nowhere else", func(t *testing.T) {
			if got := l.cluster.release(first).env["MINE"]; got != mine {
				t.Errorf("the agent got %q", got)
			}
			for _, c := range []*cluster{l.cluster, bystander.cluster} {
				for revision, release := range c.releases {
					text, err := json.Marshal(release.env)
					check.Must(t, err)
					if strings.Contains(string(text), mine) != (revision == first) || strings.Contains(string(text), s.APIKey) {
						t.Errorf("revision %s got %s", revision, text)
					}
				}
			}
			expectNowhere(t, on, mine, theirs, l.cluster.release(first).env["SLIPWAY_INVOKE_TOKEN"])
		}},
		step{"what the agent prints is in its log", func(t *testing.T) {
			eventually(t, "the log says where it listens", func() (bool, any) {
				got, err := s.do(t.Context(), "GET", d.path+"/revisions/"+first+"/logs?type=deploy", nil)
				return err == nil && strings.Contains(string(got.body), "listening address="), string(got.body)
			})
		}},
		step{"a server that comes back finds its agents", func(t *testing.T) {
			s.kill9(t)
			s.restart(t)
			d.expectAnswer(t, firstWords)
		}},
		step{"a second revision takes over", func(t *testing.T) {
			second = d.image(t, "weather:v2")
			d.awaitDeployed(t, second)
			d.expectAnswer(t, secondWords)
			eventually(t, "the first agent has ended", func() (bool, any) {
				release := l.cluster.release(first)
				return release.process == nil, release
			})
		}},
		step{"that the agent which serves has ended is told, in the listener's words", func(t *testing.T) {
			release := l.cluster.release(second)
			w := work{Deployment: d.ID, Revision: second, Order: release.order}
			for _, status := range []int{
				l.report(t.Context(), w, "progressing", "reason", "OUT_OF_MEMORY", "message", "it used too much memory"), l.report(t.Context(), w, "healthy", "url", release.url),
			} {
				if status != http.StatusNoContent {
					t.Fatalf("the report got %d", status)
				}
			}
			got, err := s.do(t.Context(), "GET", d.path+"/events?limit=100", nil)
			if err != nil || strings.Count(string(got.body), `"agent.crashed"`) != 1 || !strings.Contains(string(got.body), "it used too much memory") {
				t.Errorf("the events are %s (%v)", got.body, err)
			}
			d.expectAnswer(t, secondWords)
		}},
		step{"an image that is not there fails in the listener's words", func(t *testing.T) {
			d.awaitFailed(t, d.image(t, "no-such:image"), "DEPLOY_FAILED", "IMAGE_UNAVAILABLE", "there is no image no-such:image")
			d.expectAnswer(t, secondWords)
		}},
		step{"what is in use stays", func(t *testing.T) {
			s.call(t, http.StatusConflict, "DELETE", l.path, nil, nil)
		}},
		step{"a deleted deployment is removed from the cluster", func(t *testing.T) {
			s.call(t, http.StatusNoContent, "DELETE", d.path, nil, nil)
			eventually(t, "the deployment and its agent are gone", func() (bool, any) {
				got, err := s.do(t.Context(), "GET", d.path, nil)
				return err == nil && got.status == http.StatusNotFound && l.cluster.release(second).process == nil, string(got.body)
			})
			eventually(t, "the listener is deleted", func() (bool, any) {
				got, err := s.do(t.Context(), "DELETE", l.path, nil)
				return err == nil && got.status == http.StatusNoContent, string(got.body)
			})
		}},
	)
}

// TestAListenerThatGoesAway kills the process that acts for a listener; another process takes
// its place when the session is over.
func TestAListenerThatGoesAway(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--private-addresses")
	l, created := s.newListener(t)
	kill := l.start(t)
	d, body := s.create(t, placedAt(created.ID, "weather:v1"))
	first := value(body.LatestRevision)
	d.awaitDeployed(t, first)
	s.call(t, http.StatusConflict, "POST", l.path+"/claim", map[string]any{"holder": "too early", "wait": 0}, nil)
	kill()
	seen := value(l.read(t).LastSeen)
	second := d.image(t, "weather:v2")
	d.expectAnswer(t, firstWords)

	next := l.another()
	next.start(t)
	d.awaitDeployed(t, second)
	d.expectAnswer(t, secondWords)
	after := l.read(t)
	if !after.Online || value(after.LastSeen) <= seen {
		t.Errorf("the listener was seen at %s, and is now %+v", seen, after)
	}
	// The first process comes back, and the server answers that its session is over.
	release := l.cluster.release(second)
	got, err := s.do(t.Context(), "POST", l.path+"/report", map[string]any{
		"session": l.session, "deployment_id": d.ID, "revision_id": second, "order": release.order, "number": 1000, "state": "failed",
		"reason": "STOLEN", "message": "it is dead",
	})
	if err != nil || got.status != http.StatusConflict || !strings.Contains(string(got.body), "is over") {
		t.Errorf("got %d %s, %v", got.status, got.body, err)
	}
	d.expectAnswer(t, secondWords)
	s.call(t, http.StatusNoContent, "DELETE", d.path, nil, nil)
	eventually(t, "both agents have ended", func() (bool, any) {
		return l.cluster.release(first).process == nil && l.cluster.release(second).process == nil, nil
	})
}

// TestAListenersRevisionIsRolledBack has the listener report that the agent that took over has
// failed.
func TestAListenersRevisionIsRolledBack(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--private-addresses")
	l, created := s.newListener(t)
	l.start(t)
	guarded := placedAt(created.ID, "weather:v1")
	guarded["auto_rollback"] = true
	d, body := s.create(t, guarded)
	d.awaitDeployed(t, value(body.LatestRevision))
	second := d.image(t, "weather:v2")
	d.awaitDeployed(t, second)
	failed := work{Deployment: d.ID, Revision: second, Order: l.cluster.release(second).order}
	if status := l.report(t.Context(), failed, "failed", "reason", "CRASH_LOOP", "message", "it ends time and again"); status != http.StatusNoContent {
		t.Fatalf("the report got %d", status)
	}
	eventually(t, "the revision before is deployed again", func() (bool, any) {
		now := d.get(t)
		third := value(now.LatestRevision)
		return third != second && d.revision(t, third).Status == "DEPLOYED", now
	})
	d.expectAnswer(t, firstWords)
	if got := d.revision(t, second); value(got.Reason) != "ROLLED_BACK" || !strings.Contains(value(got.Text), "it ends time and again") {
		t.Errorf("the reason is %s: %s", value(got.Reason), value(got.Text))
	}
}

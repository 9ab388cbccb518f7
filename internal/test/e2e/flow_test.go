package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestClientFlow follows the client flow that the interface recommends. The commands of the README
// and the demo, which CI runs too, do the same with an agent that is built from its source.
func TestClientFlow(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	repo := agentRepository(t)
	first, second := repo.git(t, "rev-parse", "v1"), repo.git(t, "rev-parse", "v2")
	repo.git(t, "tag", "--annotate", "--force", "v2", "v2", "--message", "The second version")

	for _, where := range []struct{ name, prefix string }{
		{"on the host of the control plane", ""}, {"under the prefix of a self-hosted installation", "/api-host"},
	} {
		t.Run(where.name, func(t *testing.T) {
			f := flow{server: s, prefix: where.prefix, repo: repo, first: first, second: second}
			story(
				t,
				step{"a deployment is created", f.create},
				step{"it can be read", f.read},
				step{"its revision is deployed from the commit of the branch", f.deployed},
				step{"its agent answers", f.answers},
				step{"a change of the ref rolls a second revision out", f.change},
				step{"the second version answers", f.answersAnew},
				step{"the revisions are listed, latest first", f.listed},
				step{"a deployment that is deleted is gone from the list at once and altogether soon", f.delete},
			)
		})
	}
}

// flow is the client's side of the flow.
type flow struct {
	server        *server
	prefix        string
	repo          *repository
	first, second string
	agent         *deployment
	created       deploymentBody
	revision      string
}

func (f *flow) create(t *testing.T) {
	body := creation(f.repo.url(), "main", secret{"GREETING", "hello"})
	f.server.call(t, http.StatusCreated, "POST", f.prefix+"/v2/deployments", body, &f.created)
	if f.created.ID == "" || value(f.created.LatestRevision) == "" || f.created.ActiveRevision != nil || f.created.Name != body["name"] {
		t.Errorf("created %+v", f.created)
	}
	f.revision = value(f.created.LatestRevision)
	f.agent = &deployment{
		server: f.server, path: f.prefix + "/v2/deployments/" + f.created.ID, ID: f.created.ID, url: value(f.created.SourceConfig.CustomURL),
	}
}

func (f *flow) read(t *testing.T) {
	got := f.agent.get(t)
	if got.ID != f.created.ID || value(got.LatestRevision) != f.revision || !slices.Equal(got.Secrets, f.created.Secrets) {
		t.Errorf("read %+v, created %+v", got, f.created)
	}
}

func (f *flow) deployed(t *testing.T) {
	revision := f.agent.awaitDeployed(t, f.revision)
	got := f.agent.get(t)
	if value(got.ActiveRevision) != f.revision || got.Status != "READY" {
		t.Errorf("the deployment is %+v, want its revision %s active", got, f.revision)
	}
	for _, config := range []revisionConfig{revision.Config, got.RevisionConfig} {
		if value(config.CommitSHA) != f.first || value(config.RepoRef) != "main" {
			t.Errorf("the revision is of %s at %s, want %s at main", value(config.CommitSHA), value(config.RepoRef), f.first)
		}
	}
}

func (f *flow) answers(t *testing.T) { f.expectAnswer(t, firstWords) }

func (f *flow) expectAnswer(t *testing.T, words string) {
	t.Helper()
	left := f.agent.thread(t).wait(t, ask(askSF, fast)).Messages
	left.expect(t, answered...)
	if text := left.last().Content; !strings.HasPrefix(text, words) {
		t.Errorf("the agent answers %q, want %q first", text, words)
	}
}

func (f *flow) change(t *testing.T) {
	before := f.revision
	f.revision = f.agent.patch(t, "refs/tags/v2")
	if got := f.agent.get(t); value(got.ActiveRevision) != before && value(got.ActiveRevision) != f.revision {
		t.Errorf("while the second revision is rolled out, the deployment is %+v", got)
	}
	revision := f.agent.awaitDeployed(t, f.revision)
	if value(revision.Config.CommitSHA) != f.second || value(revision.Config.RepoRef) != "refs/tags/v2" {
		t.Errorf("the revision is of %s, want the commit %s of the tag", value(revision.Config.CommitSHA), f.second)
	}
	if got := f.agent.get(t); value(got.ActiveRevision) != f.revision || value(got.LatestRevision) != f.revision {
		t.Errorf("the deployment is %+v, want revision %s active", got, f.revision)
	}
	f.expectNoAgent(t, before)
}

func (f *flow) answersAnew(t *testing.T) { f.expectAnswer(t, secondWords) }

func (f *flow) listed(t *testing.T) {
	var list struct{ Resources []revisionBody }
	f.server.call(t, http.StatusOK, "GET", f.agent.path+"/revisions", nil, &list)
	if len(list.Resources) != 2 || list.Resources[0].ID != f.revision || list.Resources[1].ID != value(f.created.LatestRevision) {
		t.Errorf("the revisions are %+v", list.Resources)
	}
}

func (f *flow) delete(t *testing.T) {
	thread := f.agent.thread(t)
	got := f.server.call(t, http.StatusNoContent, "DELETE", f.agent.path, nil, nil)
	if len(got.body) > 0 {
		t.Errorf("204 has a body: %s", got.body)
	}
	listed(t, "it is not listed", func() (bool, any) {
		var list struct{ Resources []deploymentBody }
		f.server.call(t, http.StatusOK, "GET", f.prefix+"/v2/deployments?limit=100", nil, &list)
		return !slices.ContainsFunc(list.Resources, func(d deploymentBody) bool { return d.ID == f.agent.ID }), list
	})
	f.server.call(t, http.StatusNotFound, "GET", thread.url, nil, nil)
	eventually(t, "the deployment is not found", func() (bool, any) {
		got, err := f.server.do(t.Context(), "GET", f.agent.path, nil)
		check.Must(t, err)
		if got.status == http.StatusOK && !strings.Contains(string(got.body), `"AWAITING_DELETE"`) {
			t.Fatalf("it is not being deleted: %s", got.body)
		}
		return got.status == http.StatusNotFound, string(got.body)
	})
	f.expectNoAgent(t, f.revision)
	f.server.call(t, http.StatusNotFound, "GET", f.agent.path+"/revisions/"+f.revision, nil, nil)
	f.server.call(t, http.StatusNotFound, "DELETE", f.agent.path, nil, nil)
}

// expectNoAgent waits until no process of a revision is left.
func (f *flow) expectNoAgent(t *testing.T, revision string) {
	t.Helper()
	eventually(t, "no process of the revision is left", func() (bool, any) {
		pids, err := f.server.agents(revision)
		check.Must(t, err)
		return len(pids) == 0, pids
	})
}

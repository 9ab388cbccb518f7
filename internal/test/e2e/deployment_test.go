package e2e_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
)

// deploymentBody is a deployment as the control plane shows it.
type deploymentBody struct {
	ID             string  `json:"id"`
	Name           string  `json:"name"`
	Status         string  `json:"status"`
	LatestRevision *string `json:"latest_revision_id"`
	ActiveRevision *string `json:"active_revision_id"`
	SourceConfig   struct {
		CustomURL *string `json:"custom_url"`
	} `json:"source_config"`
	RevisionConfig revisionConfig `json:"source_revision_config"`
	Secrets        []secret       `json:"secrets"`
}

type revisionConfig struct {
	RepoRef   *string `json:"repo_ref"`
	CommitSHA *string `json:"repo_commit_sha"`
}

type secret struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type revisionBody struct {
	ID     string         `json:"id"`
	Status string         `json:"status"`
	Reason *string        `json:"status_reason"`
	Text   *string        `json:"status_message"`
	Config revisionConfig `json:"source_revision_config"`
}

func (r revisionBody) failed() bool { return strings.Contains(r.Status, "FAILED") }

// deployment is a deployment, for a client that uses it and its agent.
type deployment struct {
	server *server
	// path is the deployment's path on the control plane.
	path string
	ID   string
	// url is the address of its agent.
	url string
}

// creation returns the body that creates a deployment.
func creation(repo, ref string, secrets ...secret) map[string]any {
	return map[string]any{
		"name": "test-" + rand.Text(), "source": "github", "secrets": append([]secret{}, secrets...),
		"source_config":          map[string]any{"repo_url": repo},
		"source_revision_config": map[string]any{"repo_ref": ref, "framework_config_path": "framework.json"},
	}
}

// create creates a deployment and returns without waiting for its revision.
func (s *server) create(t *testing.T, body map[string]any) (*deployment, deploymentBody) {
	t.Helper()
	var created deploymentBody
	s.call(t, http.StatusCreated, "POST", "/v2/deployments", body, &created)
	d := &deployment{server: s, path: "/v2/deployments/" + created.ID, ID: created.ID, url: value(created.SourceConfig.CustomURL)}
	return d, created
}

// deploy creates a deployment and waits until it is served.
func (s *server) deploy(t *testing.T, repo *repository, ref string, secrets ...secret) *deployment {
	t.Helper()
	d, created := s.create(t, creation(repo.url(), ref, secrets...))
	d.awaitDeployed(t, value(created.LatestRevision))
	return d
}

func (d *deployment) get(t *testing.T) deploymentBody {
	t.Helper()
	var body deploymentBody
	d.server.call(t, http.StatusOK, "GET", d.path, nil, &body)
	return body
}

// patch changes the ref and returns the new revision.
func (d *deployment) patch(t *testing.T, ref string) string {
	t.Helper()
	before := value(d.get(t).LatestRevision)
	var after deploymentBody
	body := map[string]any{"source_revision_config": map[string]any{"repo_ref": ref}}
	d.server.call(t, http.StatusOK, "PATCH", d.path, body, &after)
	if value(after.LatestRevision) == before {
		t.Fatalf("the change made no revision: %+v", after)
	}
	return value(after.LatestRevision)
}

func (d *deployment) revision(t *testing.T, id string) revisionBody {
	t.Helper()
	var body revisionBody
	d.server.call(t, http.StatusOK, "GET", d.path+"/revisions/"+id, nil, &body)
	return body
}

// awaitStatus waits until a revision has the status; a revision that ends with another status
// ends the test.
func (d *deployment) awaitStatus(t *testing.T, revision, status string) revisionBody {
	t.Helper()
	var last revisionBody
	eventually(t, "revision is "+status, func() (bool, any) {
		last = d.revision(t, revision)
		if last.Status != status && (last.failed() || last.Status == "DEPLOYED") {
			t.Fatalf("the revision is %s, want %s: %s", last.Status, status, value(last.Text))
		}
		return last.Status == status, last
	})
	return last
}

func (d *deployment) awaitDeployed(t *testing.T, revision string) revisionBody {
	t.Helper()
	return d.awaitStatus(t, revision, "DEPLOYED")
}

// awaitFailed waits until a revision has failed, and checks its reason and message.
func (d *deployment) awaitFailed(t *testing.T, revision, status, reason string, words ...string) {
	t.Helper()
	got := d.awaitStatus(t, revision, status)
	if value(got.Reason) != reason {
		t.Errorf("the reason is %q, want %q", value(got.Reason), reason)
	}
	for _, want := range words {
		if !strings.Contains(value(got.Text), want) {
			t.Errorf("the message does not say %q: %s", want, value(got.Text))
		}
	}
}

// value returns the text to which a pointer points, or "".
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// wantExplained checks that the interface explains why a revision failed: the cause begins so, and
// the remedy contains the words.
func (d *deployment) wantExplained(t *testing.T, revision, cause, remedy string) {
	t.Helper()
	var got struct {
		Cause  string  `json:"cause"`
		Remedy *string `json:"remedy"`
	}
	d.server.call(t, http.StatusOK, "GET", d.path+"/revisions/"+revision+"/explanation", nil, &got)
	if !strings.HasPrefix(got.Cause, cause) || !strings.Contains(value(got.Remedy), remedy) {
		t.Errorf("the failure is explained by %q, %q; want %q, %q", got.Cause, value(got.Remedy), cause, remedy)
	}
}

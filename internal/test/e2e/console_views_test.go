//go:build browser

package e2e_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBrowserConsoleViews acts as a person who opens each view in each of its states, and goes to
// some of them by the command palette:
// testdata/browser/console-views.cjs contains the story.
func TestBrowserConsoleViews(t *testing.T) {
	s := newServer(t, "--private-addresses")
	repo := scriptedRepository(t)
	repo.write(t, "framework.json", agentConfig().with("build", "echo planted line"))
	repo.commit(t)
	d := s.deploy(t, repo, "main", secret{"PLANTED", "a-secret-value"})
	repo.git(t, "branch", "release")
	var changed deploymentBody
	s.call(t, http.StatusOK, "PATCH", d.path, map[string]any{
		"source_revision_config": map[string]any{"repo_ref": "release"}, "secrets": []secret{{"PLANTED", "another-value"}},
	}, &changed)
	d.awaitDeployed(t, value(changed.LatestRevision))
	type story struct {
		Findings, Complaints, Overflow, Unreached, Copied []string
		Views                                             int
	}
	var saw story
	browse(t, &saw, "console-views.cjs", s.BaseURL, s.APIKey, d.ID, pictures())
	want := story{Findings: []string{}, Complaints: []string{}, Overflow: []string{}, Unreached: []string{}, Copied: []string{}, Views: 16}
	if diff := cmp.Diff(want, saw); diff != "" {
		t.Errorf("(-want +saw):\n%s", diff)
	}
}

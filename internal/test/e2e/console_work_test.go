//go:build browser

package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// maxNodes is how many nodes the page of a long log may have.
const maxNodes = 2000

// TestBrowserConsoleWork acts as a person who uses the keyboard, enlarges the page, reads a log of
// 100,000 lines, rolls back and reads the inbox: testdata/browser/console-work.cjs contains the
// story.
func TestBrowserConsoleWork(t *testing.T) {
	s := newServer(t)
	repo := scriptedRepository(t)
	d := s.deploy(t, repo, "main")
	repo.write(t, "framework.json", agentConfig().with("build", "seq 100000"))
	repo.commit(t)
	d.awaitDeployed(t, d.patch(t, "main"))
	other := s.deploy(t, scriptedRepository(t), "main")
	type story struct {
		Findings, Complaints       []string
		Moving, Flipped, Copied    bool
		Reduced, Downloaded, Marks int
		Marked                     string
		Statuses, Inbox, Missed    []string
		Overflow, Nodes            []int
	}
	var saw story
	browse(t, &saw, "console-work.cjs", s.BaseURL, s.APIKey, d.ID, other.ID, pictures())
	if len(saw.Nodes) != 4 {
		t.Errorf("the nodes were counted %d times", len(saw.Nodes))
	}
	for _, nodes := range saw.Nodes {
		if nodes == 0 || nodes >= maxNodes {
			t.Errorf("the page of a long log has %d nodes, want less than %d", nodes, maxNodes)
		}
	}
	saw.Nodes = nil
	want := story{
		Findings: []string{}, Complaints: []string{}, Overflow: []int{0, 0, 0},
		Moving: true, Flipped: true, Copied: true, Downloaded: 100_000, Marks: 1, Statuses: []string{"interrupted", "success", "interrupted"}, Marked: "99999", Inbox: []string{"May I send it?", "Which one?"}, Missed: []string{"Still there?"},
	}
	if diff := cmp.Diff(want, saw); diff != "" {
		t.Errorf("(-want +saw):\n%s", diff)
	}
}

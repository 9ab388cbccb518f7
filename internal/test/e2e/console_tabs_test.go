//go:build browser

package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBrowserConsoleTabs acts as a person with many pages: testdata/browser/console-tabs.cjs
// contains the story.
func TestBrowserConsoleTabs(t *testing.T) {
	s := newServer(t)
	d := s.deploy(t, scriptedRepository(t), "main")
	type story struct {
		Read     []string
		Answered int
	}
	var saw story
	browse(t, &saw, "console-tabs.cjs", s.BaseURL, s.APIKey, d.ID)
	if diff := cmp.Diff(story{Read: []string{"never-served"}, Answered: 16}, saw); diff != "" {
		t.Errorf("(-want +saw):\n%s", diff)
	}
}

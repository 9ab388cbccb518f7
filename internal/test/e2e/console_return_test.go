//go:build browser

package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBrowserConsoleReturn acts as a person who goes through long lists and conversations and comes
// back: testdata/browser/console-return.cjs contains the story.
func TestBrowserConsoleReturn(t *testing.T) {
	s := newServer(t)
	d := s.deploy(t, scriptedRepository(t), "main")
	type story struct {
		Title, Focused, Chosen, Sought string
		Rows, Wide                     int
		EndsLeft                       bool
		Troubles                       []string
	}
	var saw story
	browse(t, &saw, "console-return.cjs", s.BaseURL, s.APIKey, d.ID)
	want := story{
		Title: "Thread · Slipway", Focused: "main", Chosen: "idle", Sought: "nothing has this name", Rows: 1, EndsLeft: true,
		Troubles: []string{"The server does not answer."},
	}
	if diff := cmp.Diff(want, saw); diff != "" {
		t.Errorf("(-want +saw):\n%s", diff)
	}
}

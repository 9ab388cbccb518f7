//go:build browser

package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBrowserDocs acts as a person who reads the documentation: testdata/browser/docs.cjs contains
// the story.
func TestBrowserDocs(t *testing.T) {
	s := newServer(t)
	type story struct {
		Findings, Complaints []string
		Turned               []bool
	}
	var saw story
	browse(t, &saw, "docs.cjs", s.BaseURL)
	if diff := cmp.Diff(story{Findings: []string{}, Complaints: []string{}, Turned: []bool{false, true}}, saw); diff != "" {
		t.Errorf("(-want +saw):\n%s", diff)
	}
}

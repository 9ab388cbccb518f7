//go:build agents

package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAgentsInInbox has graphs ask a person in the form that Agent Inbox shows, and makes the calls
// of this application.
func TestAgentsInInbox(t *testing.T) {
	s := newAgentServer(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			repo := newRepository(t)
			if err := os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "inbox", language))); err != nil {
				t.Fatal(err)
			}
			repo.commit(t)
			s.deployExample(t, language, repo).lives(t, "JavaScript inbox", "inbox")
		})
	}
}

//go:build agents

package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAgentsInInbox has graphs ask a person in the form that Agent Inbox shows, and makes the calls
// of this application.
func TestAgentsInInbox(t *testing.T) {
	s := newAgentServer(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			repo := newRepository(t)
			check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "inbox", language))))
			repo.commit(t)
			s.deployExample(t, language, repo).lives(t, "JavaScript inbox", "inbox")
		})
	}
}

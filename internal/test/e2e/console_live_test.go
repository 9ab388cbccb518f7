//go:build browser

package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBrowserConsoleLive acts as a person who watches a rollout, and follows a log while the server
// is killed twice: testdata/browser/console-live.cjs contains the story.
func TestBrowserConsoleLive(t *testing.T) {
	const lines = 3000
	s := newServer(t)
	held := newGate(t)
	repo := scriptedRepository(t)
	d := s.deploy(t, repo, "main")
	repo.git(t, "checkout", "--quiet", "-b", "held")
	repo.write(t, "framework.json", agentConfig().with("build", held.wait()).with("start",
		// A process of its own takes a moment: the agent still prints when the server is killed.
		`i=0; (while [ $i -lt `+strconv.Itoa(lines)+` ]; do i=$((i + 1)); echo "line $i"; (:); done) & exec ./agent`))
	repo.commit(t)
	again := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.kill()
		if err == nil {
			_, err = s.target.start(r.Context())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(again.Close)
	type story struct {
		AppearedAfter, Gaps int
		Together, Backwards []string
		Kept, Same          bool
	}
	var saw story
	browse(t, &saw, "console-live.cjs", s.BaseURL, s.APIKey, d.ID, held.file, again.URL, strconv.Itoa(lines))
	t.Logf("the new deployment appeared after %d ms", saw.AppearedAfter)
	saw.AppearedAfter = 0
	if diff := cmp.Diff(story{Same: true, Together: []string{"BUILDING", "DEPLOYED"}, Backwards: []string{}, Kept: true}, saw); diff != "" {
		t.Errorf("(-want +saw):\n%s", diff)
	}
}

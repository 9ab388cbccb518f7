//go:build browser

package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestBrowserAgentChat acts as a person in the application Agent Chat, which
// testdata/browser/setup.sh builds from its package: testdata/browser/agent-chat.cjs contains the
// story. A message is its type, its content and its id.
func TestBrowserAgentChat(t *testing.T) {
	pages := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(built.root, ".tools", "browser", "agent-chat", "pages"))))
	t.Cleanup(pages.Close)
	repo := newRepository(t)
	check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "inbox", "node"))))
	repo.commit(t)
	agent := newServer(t).deploy(t, repo, "main")
	var saw struct {
		Complaints, Runs               []string
		Shown                          string
		Stopped, Talked, Edited, Again [][3]string
		Answers                        [][][3]string
		Commands                       []*struct{ Goto any }
	}
	browse(t, &saw, "agent-chat.cjs", pages.URL, agent.url, agent.server.APIKey)
	if len(saw.Complaints) > 0 {
		t.Errorf("the browser complains: %q", saw.Complaints)
	}
	if len(saw.Stopped) != 2 || !strings.HasPrefix(saw.Stopped[1][1], saw.Shown) || !slices.Equal(saw.Runs, []string{"interrupted"}) {
		t.Fatalf("%q was shown of the answer that was stopped, kept are %q, and the runs are %q", saw.Shown, saw.Stopped, saw.Runs)
	}
	for name, talk := range map[string][][3]string{"and Bern?": saw.Talked, "and Rome?": saw.Edited} {
		if len(talk) != 4 || talk[2][1] != name || !strings.HasPrefix(talk[3][1], "You ask: "+name) {
			t.Fatalf("after the question %q the thread has %q", name, talk)
		}
		if diff := cmp.Diff(saw.Stopped, talk[:2]); diff != "" {
			t.Errorf("the first answer is not kept before the question %q (-want +got):\n%s", name, diff)
		}
	}
	if len(saw.Again) != 4 || !slices.Equal(saw.Again[:3], saw.Edited[:3]) || saw.Again[3][1] != saw.Edited[3][1] {
		t.Errorf("the thread with the answer that was written anew has %q, want %q", saw.Again, saw.Edited)
	}
	var answers [][]string
	for _, thread := range saw.Answers {
		var texts []string
		for _, message := range thread {
			texts = append(texts, message[1])
		}
		answers = append(answers, texts)
	}
	want := [][]string{
		{"Ada", "A mail to Ada", "The answer was accept"}, {"Bob", "A mail to Bob", "The answer was ignore"},
		{"Cem", "A mail to Cem", "The answer was response Not now"}, {"Dan", "A mail to Dan", "The answer was edit A mail to all"},
	}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("the threads with answers (-want +got):\n%s", diff)
	}
	if len(saw.Commands) != 2 || saw.Commands[0] == nil || saw.Commands[1] != nil {
		t.Errorf("the runs before the answer have the commands %v", saw.Commands)
	}
}

//go:build browser

package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slipway-run/slipway/internal/test/check"
)

// chatPage builds infra/examples/chat-react as its README says, with the packages that
// testdata/browser/setup.sh has installed for it, and serves it on a separate origin.
func chatPage(t *testing.T) string {
	t.Helper()
	source := filepath.Join("..", "..", "..", "infra", "examples", "chat-react")
	installed, err := filepath.Abs(filepath.Join("..", "..", "..", ".tools", "browser", "chat-react", "node_modules"))
	check.Must(t, err)
	dir := t.TempDir()
	for _, name := range []string{"index.html", "package.json", "vite.config.js", "src"} {
		check.Must(t, exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(source, name), dir).Run())
	}
	check.Must(t, os.Symlink(installed, filepath.Join(dir, "node_modules")))
	build := exec.CommandContext(t.Context(), "npm", "run", "build")
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	pages := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, "dist"))))
	t.Cleanup(pages.Close)
	return pages.URL
}

// TestBrowserChat acts as a person in the example page of the newest hooks:
// testdata/browser/chat.cjs contains the story.
func TestBrowserChat(t *testing.T) {
	weather, follower := newServer(t).deploy(t, agentRepository(t), "main"), scriptedRepository(t)
	scripted := weather.server.deploy(t, follower, "main")
	var saw struct {
		Complaints       []string
		Shown            string
		Thread, Approved string
		Talked, Forked   [][2]string
	}
	browse(t, &saw, "chat.cjs", chatPage(t), weather.url, scripted.url, weather.server.APIKey)
	if len(saw.Complaints) > 0 {
		t.Errorf("the browser complains: %q", saw.Complaints)
	}
	if want := []string{"human", "ai", "tool", "ai", "human", "ai", "tool", "ai"}; !slices.Equal(kindsOf(saw.Talked), want) || !slices.Equal(kindsOf(saw.Forked), want) {
		t.Fatalf("the page showed %q, and after the edit %q", saw.Talked, saw.Forked)
	}
	if !strings.HasPrefix(saw.Talked[3][1], saw.Shown) || len(strings.Fields(saw.Talked[7][1])) != 300 {
		t.Errorf("the answers are %q, and %q was shown of the first", []string{saw.Talked[3][1], saw.Talked[7][1]}, saw.Shown)
	}
	if diff := cmp.Diff(saw.Talked[:4], saw.Forked[:4]); diff != "" || saw.Forked[4][1] != "and in rome?" || !strings.Contains(saw.Forked[7][1], "Rome") {
		t.Errorf("the branch is %q (-before +after):\n%s", saw.Forked, diff)
	}
	if diff := cmp.Diff(keptMessages(t, weather, saw.Thread), saw.Forked); diff != "" {
		t.Errorf("what the page shows is not what is kept (-kept +shown):\n%s", diff)
	}
	var runs []struct {
		Kwargs struct {
			Command struct{ Resume map[string]map[string]bool }
		}
	}
	weather.server.call(t, http.StatusOK, "GET", "/d/"+scripted.ID+"/threads/"+saw.Approved+"/runs", nil, &runs)
	want := map[string]map[string]bool{"q-delete": {"approved": false}, "q-send": {"approved": true}}
	if len(runs) != 2 || !cmp.Equal(runs[0].Kwargs.Command.Resume, want) {
		t.Errorf("the runs are %+v", runs)
	}
}

func kindsOf(messages [][2]string) []string {
	kinds := make([]string, len(messages))
	for i, message := range messages {
		kinds[i] = message[0]
	}
	return kinds
}

// keptMessages returns the types and the contents of a thread's messages.
func keptMessages(t *testing.T, d *deployment, thread string) [][2]string {
	t.Helper()
	var state struct {
		Values struct {
			Messages []struct{ Type, Content string }
		}
	}
	d.server.call(t, http.StatusOK, "GET", "/d/"+d.ID+"/threads/"+thread+"/state", nil, &state)
	kept := make([][2]string, len(state.Values.Messages))
	for i, message := range state.Values.Messages {
		kept[i] = [2]string{message.Type, message.Content}
	}
	return kept
}

//go:build browser

package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shownMessage is a message in the form in which the console shows it.
type shownMessage struct{ ID, Text string }

// TestBrowserConsole acts as a person in the console: testdata/browser/console.cjs contains
// the story.
func TestBrowserConsole(t *testing.T) {
	s := newServer(t)
	d := s.deploy(t, agentRepository(t), "main", secret{"GREETING", "a-secret-value"})
	var saw struct {
		Findings, Complaints, Elsewhere, Cookies []string
		KeyInPage, Enabled, Ran, Proven          bool
		First, Overflow, Edges                   int
		Drawn                                    [][]string
		Failure, Copied, Thread, ProofAfter      string
		Shown, AfterReload, AtCut                []shownMessage
	}
	browse(t, &saw, "console.cjs", s.BaseURL, s.APIKey, d.ID, pictures())
	for what, found := range map[string][]string{
		"axe finds": saw.Findings, "the browser complains": saw.Complaints, "the page loads from elsewhere": saw.Elsewhere, "after the sign-out there are cookies": saw.Cookies,
	} {
		if len(found) > 0 {
			t.Errorf("%s: %q", what, found)
		}
	}
	if saw.KeyInPage || saw.Ran || saw.Overflow > 0 || !saw.Enabled {
		t.Errorf("key in the page: %t, a planted script ran: %t, %d pixels too wide, composer enabled: %t", saw.KeyInPage, saw.Ran, saw.Overflow, saw.Enabled)
	}
	if !saw.Proven || saw.ProofAfter != "" {
		t.Errorf("only the cookie with the proof acts: %t, and after the sign-out the page keeps the proof %q", saw.Proven, saw.ProofAfter)
	}
	if diff := cmp.Diff([][]string{{"__start__"}, {"model"}, {"__end__", "tools"}}, saw.Drawn); diff != "" || saw.Edges != 4 {
		t.Errorf("the graph is drawn with %d edges and the layers (-want +drawn):\n%s", saw.Edges, diff)
	}
	if saw.First == 0 || saw.First > 150_000 {
		t.Errorf("the first load is %d bytes", saw.First)
	}
	if !strings.HasPrefix(saw.Failure, "REPOSITORY_UNREACHABLE") {
		t.Errorf("the failure is shown as %q", saw.Failure)
	}
	if want := "curl -sS --fail-with-body -H \"X-Api-Key: $KEY\" '" + s.BaseURL + d.path + "'"; saw.Copied != want {
		t.Errorf("the copied command is %s, want %s", saw.Copied, want)
	}

	copied := exec.CommandContext(t.Context(), "sh", "-c", saw.Copied)
	copied.Env = append(os.Environ(), "KEY="+s.APIKey)
	var answered deploymentBody
	if output, err := copied.Output(); err != nil || json.Unmarshal(output, &answered) != nil || answered.ID != d.ID {
		t.Errorf("the copied command answers %s (%v)", output, err)
	}

	// The shown text is the stored text, before and after a reload, and at the interruption it
	// is the text that the person saw.
	var state struct {
		Values struct {
			Messages []struct{ ID, Type, Content string }
		}
	}
	s.call(t, http.StatusOK, "GET", "/d/"+d.ID+"/threads/"+saw.Thread+"/state", nil, &state)
	var want []shownMessage
	cut := 0
	for _, m := range state.Values.Messages {
		if m.Type == "human" && len(want) > 0 {
			cut = len(want)
		}
		if m.Type == "tool" {
			m.Content = "" // the console folds it in
		}
		want = append(want, shownMessage{m.ID, m.Content})
	}
	for name, shown := range map[string][]shownMessage{"shown": saw.Shown, "after a reload": saw.AfterReload} {
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("%s (-state +shown):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(want[:cut], saw.AtCut); diff != "" {
		t.Errorf("at the cut (-state +shown):\n%s", diff)
	}
}

// TestBrowserConsoleInTrouble acts as a person whose actions fail:
// testdata/browser/console-trouble.cjs contains the story.
func TestBrowserConsoleInTrouble(t *testing.T) {
	s := newServer(t)
	d := s.deploy(t, agentRepository(t), "main")
	var viewer struct{ Key string }
	s.call(t, http.StatusCreated, "POST", "/v2/api-keys", map[string]any{"name": "viewer", "role": "viewer"}, &viewer)
	var saw struct {
		FromNow                      bool
		Stayed, Kept, Reason         string
		Sizes                        []int
		RunsRead, Tabs               int
		SendTroubles, ChangeTroubles []string
		Disabled                     []bool
	}
	browse(t, &saw, "console-trouble.cjs", s.BaseURL, s.APIKey, d.ID, viewer.Key)
	if !saw.FromNow || !strings.HasSuffix(saw.Stayed, "admin") {
		t.Errorf("events from now on: %t, after the link was refused the session is %q", saw.FromNow, saw.Stayed)
	}
	if saw.Tabs != 8 {
		t.Errorf("%d of eight tabs show what happened", saw.Tabs)
	}
	if len(saw.Sizes) != 1 || saw.RunsRead != 1 {
		t.Errorf("the thread was shown with %v messages in turn, the runs were read %d times", saw.Sizes, saw.RunsRead)
	}
	if saw.Kept != "worth keeping" || saw.Reason != "Your role is viewer. This needs the role admin." {
		t.Errorf("the composer has %q, the button's reason is %q", saw.Kept, saw.Reason)
	}
	if diff := cmp.Diff([][]string{{"Planted quota."}, {"Planted conflict."}}, [][]string{saw.SendTroubles, saw.ChangeTroubles}); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{true, true, true}, saw.Disabled); diff != "" {
		t.Errorf("disabled (-want +got):\n%s", diff)
	}
}

// TestBrowserPictures makes the pictures of the README, into infra/pictures if `make pictures`
// asks for them: testdata/browser/pictures.cjs contains the story.
func TestBrowserPictures(t *testing.T) {
	s := newServer(t)
	deploy := exec.CommandContext(t.Context(), built.slipway, "deploy", built.weather, "--name", "weather")
	deploy.Env = append(os.Environ(), "SLIPWAY_URL="+s.BaseURL, "SLIPWAY_API_KEY="+s.APIKey)
	if output, err := deploy.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var list struct{ Resources []deploymentBody }
	s.call(t, http.StatusOK, "GET", "/v2/deployments", nil, &list)
	directory := pictures()
	if directory == "" {
		directory = t.TempDir()
	}
	var sizes map[string]int
	browse(t, &sizes, "pictures.cjs", s.BaseURL, s.APIKey, list.Resources[0].ID, directory)
	if len(sizes) != 4 {
		t.Errorf("got the pictures %v", sizes)
	}
	for name, size := range sizes {
		if size == 0 || size > maxPicture {
			t.Errorf("%s has %d bytes, want at most %d", name, size, maxPicture)
		}
	}
}

// maxPicture is how large a picture of the README may be, in bytes.
const maxPicture = 1 << 20

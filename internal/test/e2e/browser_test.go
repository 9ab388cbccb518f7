//go:build browser

package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/tenant/authservice/oauthtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// visited is the result of testdata/browser/consent.cjs.
type visited struct {
	Asks, Address, Title, Text, HTML, Border string
	// Question is the text of the page that asks whether the account may be connected. Back is the
	// title of the page to which the back button leads afterwards.
	Question, Back string
	// Findings and Overflow are the faults of the pages for people with disabilities, and by how
	// many pixels each page is too wide for a narrow screen.
	Findings []string
	Overflow []int

	Status     int
	Ran        bool
	Complaints []string
	Waited     struct {
		Status, Token, Error string
		ErrorDescription     string `json:"error_description"`
	}
}

// decide lets a user decide in a browser. testdata/browser/setup.sh installs the needed
// programs.
func (s *server) decide(t *testing.T, user, decision string) visited {
	t.Helper()
	picture := pictures()
	if picture != "" {
		picture = filepath.Join(picture, decision+".png")
	}
	var saw visited
	browse(t, &saw, "consent.cjs", s.BaseURL, s.APIKey, user, decision, picture)
	return saw
}

// pictures returns the directory for pictures of the pages, or "" if the test makes no
// pictures.
func pictures() string { return os.Getenv("SLIPWAY_E2E_PICTURES") }

// browse runs a script of testdata/browser, and decodes its result.
func browse(t *testing.T, saw any, script string, args ...string) {
	t.Helper()
	output, complaints, err := perform(t, script, args...)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, complaints, output)
	}
	if err := json.Unmarshal(output, saw); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// perform runs a script of testdata/browser, and returns what it prints and its complaints.
func perform(t *testing.T, script string, args ...string) (output []byte, complaints string, err error) {
	t.Helper()
	installed, err := filepath.Abs(filepath.Join("..", "..", "..", ".tools", "browser", "node_modules"))
	check.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	cmd.Dir = filepath.Join("testdata", "browser")
	cmd.Env = append(os.Environ(), "NODE_PATH="+installed)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err = cmd.Output()
	return output, stderr.String(), err
}

// TestBrowserStoryTellsTheFirstError has a page fail and then hang.
func TestBrowserStoryTellsTheFirstError(t *testing.T) {
	output, complaints, err := perform(t, "broken.cjs")
	if err == nil || !strings.HasPrefix(complaints, "The page failed: Error: planted fault") || !strings.Contains(complaints, "never shown") {
		t.Errorf("the story ends with %v, says %q and complains %q", err, output, complaints)
	}
}

// TestBrowserConsent has users decide in a real browser, with a real authorization server behind
// the buttons. It has a private address, which only the one-machine server calls.
func TestBrowserConsent(t *testing.T) {
	s := newServer(t, "--private-addresses")
	oauth := oauthtest.New(t, s.BaseURL)
	s.call(t, http.StatusOK, "POST", "/v2/auth/providers", map[string]any{
		"provider_id": "calendar", "name": "Calendar", "client_id": oauthtest.ClientID, "client_secret": oauthtest.ClientSecret,
		"auth_url": oauth.URL + "/authorize", "token_url": oauth.URL + "/token", "uses_pkce": true,
	}, nil)

	t.Run("Allow", func(t *testing.T) {
		saw := s.decide(t, "ada", "Allow")
		s.wantCallback(t, saw, "/v2/auth/setup/calendar?", "Connected")
		if !strings.Contains(saw.Question, "user “ada” of the workspace “") || !strings.Contains(saw.Question, "“Calendar”") {
			t.Errorf("the user is asked: %s", saw.Question)
		}
		if saw.Back != "Already connected" {
			t.Errorf("the back button leads to %q", saw.Back)
		}
		if saw.Waited.Status != "completed" || !oauth.Accepts(saw.Waited.Token) {
			t.Errorf("the wait ended %+v", saw.Waited)
		}
		for _, secret := range oauth.Issued() {
			if strings.Contains(saw.HTML, secret) || strings.Contains(s.log(), secret) {
				t.Error("a token is in the page or in the log")
			}
		}
	})
	t.Run("Deny", func(t *testing.T) {
		saw := s.decide(t, "bob", "Deny")
		s.wantCallback(t, saw, "/v2/auth/callback/calendar?", "Not connected")
		if !strings.Contains(saw.Text, "access_denied: The user said <no>.") {
			t.Errorf("the page does not say why: %s", saw.Text)
		}
		if saw.Waited.Status != "not_found" || saw.Waited.Error != "access_denied" || saw.Waited.Token != "" {
			t.Errorf("the wait ended %+v", saw.Waited)
		}
	})
}

// wantCallback checks the last page, and the beginning of its address at the server.
func (s *server) wantCallback(t *testing.T, saw visited, at, title string) {
	t.Helper()
	if saw.Status != http.StatusOK || saw.Title != title || !strings.Contains(saw.Asks, "read") {
		t.Errorf("got %+v", saw)
	}
	if saw.Border != "solid" || saw.Ran {
		t.Errorf("the page's policy lets in the wrong things: border %s, a script ran: %t", saw.Border, saw.Ran)
	}
	if len(saw.Findings) > 0 || len(saw.Overflow) == 0 || slices.Max(saw.Overflow) > 0 {
		t.Errorf("axe finds %q, the pages are too wide by %v", saw.Findings, saw.Overflow)
	}
	for _, complaint := range saw.Complaints {
		if !strings.Contains(complaint, "script") { // the script of the test, which must not run
			t.Errorf("the browser complains: %s", complaint)
		}
	}
	address, err := url.Parse(saw.Address)
	if err != nil || !strings.HasPrefix(saw.Address, s.BaseURL+at) {
		t.Fatalf("the browser is at %s (%v)", saw.Address, err)
	}
	for name, values := range address.Query() {
		if (name == "code" || name == "state") && (strings.Contains(saw.HTML, values[0]) || strings.Contains(s.log(), values[0])) {
			t.Errorf("the page or the log repeats the %s", name)
		}
	}
}

//go:build browser

package e2e_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestBrowserSignIn signs a member and a stranger in to the console at an issuer:
// testdata/browser/sign-in.cjs contains the story.
func TestBrowserSignIn(t *testing.T) {
	issuer := oidctest.New(t)
	s := newServer(t, "--sign-in", issuer.URL+"="+oidctest.ClientID)
	s.call(t, http.StatusCreated, "POST", "/v2/workspaces/current/members", map[string]any{"user": "ann@example.test", "role": "viewer"}, nil)
	at, err := url.Parse(issuer.URL)
	check.Must(t, err)
	for _, c := range []struct {
		person, end, address string
		cookies              []string
	}{
		{"ann@example.test", "default · viewer", "/console/#/members", []string{"slipway_session Strict true"}},
		{"bob@example.test", "You are not a member of this workspace.", "/console/#/", []string{}},
	} {
		issuer.SetPerson(map[string]any{"sub": c.person[:3], "email": c.person, "email_verified": true})
		var saw struct {
			Complaints, Cookies, Findings    []string
			Refused, Taken                   bool
			Overflow                         int
			Planted, Button, Address, InPage string
		}
		browse(t, &saw, "sign-in.cjs", s.BaseURL, c.end)
		if len(saw.Complaints) > 0 {
			t.Errorf("%s: the browser complains: %q", c.person, saw.Complaints)
		}
		if !saw.Refused || !saw.Taken || len(saw.Findings) > 0 || saw.Overflow > 0 {
			t.Errorf("a misspelt name is refused: %t, a right one taken: %t, axe finds %q, the door is %d pixels too wide", saw.Refused, saw.Taken, saw.Findings, saw.Overflow)
		}
		if !strings.Contains(saw.Planted, "was not begun in this browser") || saw.Button != "Sign in with "+at.Host {
			t.Errorf("%s: a planted link shows %q, the button is %q", c.person, saw.Planted, saw.Button)
		}
		if saw.Address != c.address || !slices.Equal(saw.Cookies, c.cookies) || strings.Contains(saw.InPage, "slipway") || strings.Contains(saw.InPage, "slws_") {
			t.Errorf("%s: at %s, with the cookies %q, and in the page %s", c.person, saw.Address, saw.Cookies, saw.InPage)
		}
	}
}

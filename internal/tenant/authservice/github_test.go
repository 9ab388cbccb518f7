package authservice_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// TestGitHubNamesNoContainedScopes has an answer as GitHub sends it: separated by commas, and
// without the scopes that another granted scope contains.
func TestGitHubNamesNoContainedScopes(t *testing.T) {
	t.Parallel()
	for path, asksAgain := range map[string]bool{"/login/oauth/access_token": false, "/token": true} {
		f := setUp(t)
		f.createProvider(t, func(p *authservice.NewProvider) { p.TokenURL = f.oauth.URL + path })
		f.oauth.at(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token":"gho_1","token_type":"bearer","scope":"gist,user"}`)
		})
		asked := asking("user", "gist", "user:email")
		f.connect(t, asked)
		want := authservice.Completed
		if asksAgain { // another provider has named all that it granted
			want = authservice.Pending
		}
		f.ask(t, asked, want)
		f.ask(t, asking("user", "repo:status"), authservice.Pending)
	}
}

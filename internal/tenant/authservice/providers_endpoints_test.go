package authservice_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// TestNothingIsSentToAnotherAddressThanItWasGivenFor has an editor who does not know the
// secret point the provider at the editor's own server.
func TestNothingIsSentToAnotherAddressThanItWasGivenFor(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	thief := newOAuthServer(t)
	held := f.connect(t, asking("read"))
	pending := f.ask(t, asking("write"), authservice.Pending)
	callback := back(f.oauth.visit(t, pending.URL))
	for name, patch := range map[string]authservice.ProviderPatch{
		"auth_url": {AuthURL: new(thief.URL + "/authorize")}, "token_url": {TokenURL: new(thief.URL + "/token")},
		"revocation_url": {RevocationURL: new(thief.URL + "/revoke")},
	} {
		if _, err := f.PatchProvider(t.Context(), workspace, providerID, patch); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s without the secret: got %v", name, err)
		}
	}
	same := authservice.ProviderPatch{TokenURL: new(f.oauth.URL + "/token"), Name: new("Still here"), RevocationURL: new("")}
	if _, err := f.PatchProvider(t.Context(), workspace, providerID, same); err != nil {
		t.Fatal(err)
	}
	if again := f.ask(t, asking("read"), authservice.Completed); again.Token != held.Token {
		t.Error("a patch that moves nothing costs the token")
	}
	moved := authservice.ProviderPatch{TokenURL: new(thief.URL + "/token"), RevocationURL: new(thief.URL + "/revoke"), ClientSecret: new("theirs")}
	if _, err := f.PatchProvider(t.Context(), workspace, providerID, moved); err != nil {
		t.Fatal(err)
	}
	if got := f.tokens(t); len(got) != 0 {
		t.Errorf("got %d tokens of the former address", len(got))
	}
	f.ask(t, asking("read"), authservice.Pending)
	if _, err := f.Complete(t.Context(), callback); !fault.Is(err, fault.NotFound) {
		t.Errorf("a code of the former address: got %v", err)
	}
	f.clock.Pass(2 * time.Hour)
	if _, err := f.DeleteTokens(t.Context(), owner, providerID); err != nil {
		t.Fatal(err)
	}
	if sent := thief.requests(); sent != 0 || len(thief.revoked) != 0 {
		t.Errorf("the other address was sent %d requests, and %d tokens to revoke", sent, len(thief.revoked))
	}
}

// TestAPublicClientMovesWithoutItsTokens has a client that has no secret.
func TestAPublicClientMovesWithoutItsTokens(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.ClientSecret = nil })
	f.imported(t)
	thief := newOAuthServer(t)
	if _, err := f.PatchProvider(t.Context(), workspace, providerID, authservice.ProviderPatch{RevocationURL: new(thief.URL + "/revoke")}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.DeleteTokens(t.Context(), owner, providerID); err != nil || len(thief.revoked) != 0 || len(f.tokens(t)) != 0 {
		t.Errorf("%d were sent, %d are left (%v)", len(thief.revoked), len(f.tokens(t)), err)
	}
}

// TestRevocationsShareOneDeadline has a provider that answers no revocation: the request takes
// as long as one call may take, for any number of tokens.
func TestRevocationsShareOneDeadline(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.config.Timeout = 2 * time.Second // at least two of the calls reach the provider in this time
	f.Service = authservice.New(f.config)
	f.createProvider(t)
	const tokens = 40
	for range tokens {
		f.imported(t)
	}
	var asked atomic.Int64
	f.oauth.at("/revoke", func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		r.ParseForm() // so that the server notices when the client disconnects
		<-r.Context().Done()
	})
	begun := time.Now()
	if _, err := f.DeleteTokens(t.Context(), owner, providerID); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > tokens*f.config.Timeout/4 || len(f.tokens(t)) != tokens {
		t.Errorf("it took %v, and %d tokens are left", took, len(f.tokens(t)))
	}
	// Eight revocations run at a time, and each worker may just have begun another one when
	// the time is up.
	if n := asked.Load(); n < 2 || n > 16 {
		t.Errorf("%d revocations were begun, want several, and no more than there is time for", n)
	}
	f.oauth.recover()
	f.config.Timeout = time.Minute
	f.Service = authservice.New(f.config)
	if n, err := f.DeleteTokens(t.Context(), owner, providerID); err != nil || n != tokens || len(f.tokens(t)) != 0 {
		t.Errorf("got %d (%v)", n, err)
	}
}

// TestADiscoveryHasOneDeadline has an MCP server whose addresses are all slow.
func TestADiscoveryHasOneDeadline(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.config.Timeout = 500 * time.Millisecond
	f.Service = authservice.New(f.config)
	var asked atomic.Int64
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-r.Context().Done():
		case <-time.After(f.config.Timeout * 3 / 5):
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(slow.Close)
	in := f.discovery()
	in.MCPServerURL = slow.URL + "/mcp"
	if _, err := f.Discover(t.Context(), in); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
	if n := asked.Load(); n > 2 {
		t.Errorf("%d calls were made, one after the other, in the time of one", n)
	}
}

// TestAGrantOfFormerURLsIsNotKept moves the provider while it answers with a token.
func TestAGrantOfFormerURLsIsNotKept(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	callback := back(f.oauth.visit(t, f.ask(t, asking("read"), authservice.Pending).URL))
	f.oauth.during("/token", func() {
		moved := authservice.ProviderPatch{TokenURL: new(f.oauth.URL + "/elsewhere"), ClientSecret: new(clientSecret)}
		if _, err := f.PatchProvider(t.Context(), workspace, providerID, moved); err != nil {
			t.Error(err)
		}
	})
	if outcome, err := f.Complete(t.Context(), callback); outcome.Error == "" {
		t.Errorf("the user is told that it is connected (%v)", err)
	}
	if kept := f.tokens(t); len(kept) != 0 {
		t.Errorf("%d tokens are kept that nobody can use", len(kept))
	}
}

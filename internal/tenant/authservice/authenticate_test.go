package authservice_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestAUserConsentsAndTheTokenIsHandedOut(t *testing.T) {
	t.Parallel()
	for _, method := range []authservice.ClientAuth{authservice.AuthPost, authservice.AuthBasic, authservice.AuthNone} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.createProvider(t, func(p *authservice.NewProvider) {
				p.ClientAuth = method
				if method == authservice.AuthNone {
					p.ClientSecret, p.ClientID = nil, "public"
					f.oauth.addClient(t, "public", "")
				}
			})
			pending := f.ask(t, asking("read", "write"), authservice.Pending)
			if answer := f.wait(t, pending.AuthID, authservice.Pending); answer.Token != "" {
				t.Error("there is a token before the consent")
			}
			f.consent(t, pending)
			first := f.wait(t, pending.AuthID, authservice.Completed)
			second := f.ask(t, asking("read"), authservice.Completed)
			if first.Token == "" || !f.oauth.accepts(first.Token) || second.Token != first.Token {
				t.Errorf("the provider does not accept the token, or another was handed out")
			}
			tokens := f.tokens(t)
			if len(tokens) != 1 || !tokens[0].IsDefault || tokens[0].ProviderID != providerID || tokens[0].Status != authservice.Valid ||
				!slices.Equal(tokens[0].Scopes, []string{"read", "write"}) || !tokens[0].Expires.After(f.clock.Now().Add(59*time.Minute)) {
				t.Errorf("got tokens %+v", tokens)
			}
			f.assertNoSecrets(t)
		})
	}
}

func TestTheConsentURLIsWhatOAuthAsksFor(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	seen := map[string]bool{}
	for range 3 {
		u, err := url.Parse(f.ask(t, asking("read", "write"), authservice.Pending).URL)
		check.Must(t, err)
		q := u.Query()
		challenge, state := q.Get("code_challenge"), q.Get("state")
		q.Del("code_challenge")
		q.Del("state")
		want := url.Values{
			"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirectURI}, "scope": {"read write"}, "code_challenge_method": {"S256"},
		}
		if diff := cmp.Diff(want, q); diff != "" || len(challenge) != 43 || len(state) < 60 || seen[challenge] || seen[state] {
			t.Errorf("challenge %s, state %s (-want +got):\n%s", challenge, state, diff)
		}
		seen[challenge], seen[state] = true, true
	}
}

func TestWithoutPKCEThereIsNoChallenge(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.UsesPKCE = false })
	if answer := f.ask(t, asking("read"), authservice.Pending); strings.Contains(answer.URL, "code_challenge") {
		t.Errorf("got %s", answer.URL)
	}
	f.connect(t, asking("read"))
}

// TestARepeatedCallbackIsToldWhatItConnects repeats a callback before, during and after the
// exchange of its code.
func TestARepeatedCallbackIsToldWhatItConnects(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	pending := f.ask(t, asking("read"), authservice.Pending)
	callback := back(f.oauth.visit(t, pending.URL))
	forged := callback
	forged.State = callback.State[:len(callback.State)-1] + "_"
	want := func(back authservice.Callback, done, underWay bool) {
		t.Helper()
		if gotDone, gotUnderWay := f.Connects(t.Context(), back); gotDone != done || gotUnderWay != underWay {
			t.Errorf("done: %t, under way: %t", gotDone, gotUnderWay)
		}
	}
	want(callback, false, false)
	f.oauth.set(func() {
		f.oauth.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" {
				want(callback, false, true)
				want(forged, false, false)
			}
			return false
		}
	})
	if outcome, err := f.Complete(t.Context(), callback); err != nil || outcome.Error != "" {
		t.Fatalf("got %+v (%v)", outcome, err)
	}
	want(callback, true, false)
	want(forged, false, false)
}

func TestAStateIsGoodOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	pending := f.ask(t, asking("read"), authservice.Pending)
	callback := back(f.oauth.visit(t, pending.URL))
	if _, err := f.Complete(t.Context(), callback); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Complete(t.Context(), callback); !fault.Is(err, fault.Invalid) {
		t.Errorf("a replayed state: got %v", err)
	}
	callback.Code = f.oauth.visit(t, pending.URL).Get("code") // the same state with a fresh code
	if _, err := f.Complete(t.Context(), callback); !fault.Is(err, fault.Invalid) {
		t.Errorf("a replayed state with another code: got %v", err)
	}
	if got := f.oauth.granted("authorization_code"); got != 1 {
		t.Errorf("%d codes were exchanged", got)
	}
}

func TestOfTwoCallbacksThatMeetOneGetsTheToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	callback := back(f.oauth.visit(t, f.ask(t, asking("read"), authservice.Pending).URL))
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() { _, errs[i] = authservice.New(f.config).Complete(t.Context(), callback) })
	}
	group.Wait()
	good := 0
	for _, err := range errs {
		if err == nil {
			good++
		} else if !fault.Is(err, fault.Invalid) {
			t.Errorf("got %v", err)
		}
	}
	asked := f.oauth.requests()
	if good != 1 || asked != 1 || len(f.tokens(t)) != 1 {
		t.Errorf("%d callbacks succeeded, the provider was asked %d times, there are %d tokens", good, asked, len(f.tokens(t)))
	}
}

func TestAStateExpires(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	pending := f.ask(t, asking("read"), authservice.Pending)
	callback := back(f.oauth.visit(t, pending.URL))
	f.clock.Pass(10*time.Minute - time.Second)
	f.wait(t, pending.AuthID, authservice.Pending)
	f.clock.Pass(time.Second)
	if _, err := f.Complete(t.Context(), callback); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
	if answer := f.wait(t, pending.AuthID, authservice.NotFound); answer.Error != "authorization_expired" {
		t.Errorf("got %+v", answer)
	}
	f.clock.Pass(24 * time.Hour)
	if answer := f.wait(t, pending.AuthID, authservice.NotFound); answer.Error != "" {
		t.Errorf("it is remembered: %+v", answer)
	}
}

func TestOtherStatesAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.ProviderID = "mail" })
	good := back(f.oauth.visit(t, f.ask(t, asking("read"), authservice.Pending).URL))
	foreign := back(f.oauth.visit(t, f.ask(t, asking("read"), authservice.Pending).URL))
	parts, others := strings.Split(good.State, "."), strings.Split(foreign.State, ".")
	for name, change := range map[string]func(*authservice.Callback){
		"none":                       func(c *authservice.Callback) { c.State = "" },
		"without its random part":    func(c *authservice.Callback) { c.State = parts[0] + "." + parts[1] + "." },
		"another random part":        func(c *authservice.Callback) { c.State = parts[0] + "." + parts[1] + "." + others[2] },
		"another workspace":          func(c *authservice.Callback) { c.State = other + "." + parts[1] + "." + parts[2] },
		"a key in the workspace":     func(c *authservice.Callback) { c.State = workspace + "#AUTH-REQUEST#." + parts[1] + "." + parts[2] },
		"another request":            func(c *authservice.Callback) { c.State = parts[0] + "." + others[1] + "." + parts[2] },
		"an unknown request":         func(c *authservice.Callback) { c.State = parts[0] + "." + unknown + "." + parts[2] },
		"one more part":              func(c *authservice.Callback) { c.State += ".x" },
		"another provider":           func(c *authservice.Callback) { c.ProviderID = "mail" },
		"a caller of another tenant": func(c *authservice.Callback) { c.Caller = &authservice.Owner{Workspace: other} },
		"another user":               func(c *authservice.Callback) { c.Caller = &authservice.Owner{Workspace: workspace, User: "eve"} },
	} {
		bad := good
		change(&bad)
		outcome, err := f.Complete(t.Context(), bad)
		if !fault.Is(err, fault.Invalid) || outcome != (authservice.Outcome{}) {
			t.Errorf("%s: got %+v (%v)", name, outcome, err)
		}
	}
	good.Caller = &owner
	if _, err := f.Complete(t.Context(), good); err != nil { // no earlier callback has used it up
		t.Error(err)
	}
	f.assertNoSecrets(t)
}

func TestAWrongVerifierIsRefusedByTheProvider(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	mine := f.ask(t, asking("read"), authservice.Pending)
	// The code belongs to another request: an injected code (RFC 9700, section 4.5).
	injected := f.oauth.visit(t, f.ask(t, asking("read"), authservice.Pending).URL).Get("code")
	callback := back(f.oauth.visit(t, mine.URL))
	callback.Code = injected
	outcome, err := f.Complete(t.Context(), callback)
	if err != nil || outcome.Error == "" {
		t.Errorf("got %+v (%v)", outcome, err)
	}
	if answer := f.wait(t, mine.AuthID, authservice.NotFound); answer.Error == "" || answer.Error != outcome.Error || len(f.tokens(t)) != 0 {
		t.Errorf("got %+v", answer)
	}
	f.assertNoSecrets(t)
}

func TestScopesThatAreNotGrantedNeedConsentAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	first := f.connect(t, asking("read"))
	pending := f.ask(t, asking("write"), authservice.Pending)
	if u, _ := url.Parse(pending.URL); u.Query().Get("scope") != "write read" {
		t.Errorf("asked for %q", u.Query().Get("scope"))
	}
	if answer := f.ask(t, asking("read"), authservice.Completed); answer.Token != first.Token {
		t.Error("the token cannot be used meanwhile")
	}
	f.consent(t, pending)
	second := f.ask(t, asking("read", "write"), authservice.Completed)
	if tokens := f.tokens(t); len(tokens) != 1 || second.TokenID != first.TokenID || second.Token == first.Token {
		t.Errorf("got %d tokens, %s after %s", len(tokens), second.TokenID, first.TokenID)
	}
}

func TestForceNewMakesAFurtherToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	first := f.connect(t, asking("read"))
	further := asking("read")
	further.ForceNew, further.Default = true, false
	second := f.connect(t, further)
	if got := f.ask(t, asking("read"), authservice.Completed); got.TokenID != first.TokenID {
		t.Errorf("got %s, want the default %s", got.TokenID, first.TokenID)
	}
	named := asking("read")
	named.TokenID = second.TokenID
	if got := f.ask(t, named, authservice.Completed); got.Token != second.Token {
		t.Errorf("got %s, want the one that was named, %s", got.TokenID, second.TokenID)
	}
	further.Default = true
	third := f.connect(t, further)
	if got := f.ask(t, asking("read"), authservice.Completed); got.TokenID != third.TokenID {
		t.Errorf("got %s, want the new default %s", got.TokenID, third.TokenID)
	}
	named.TokenID = unknown
	if _, err := f.Authenticate(t.Context(), named); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown token: got %v", err)
	}
}

func TestTokensAreScopedByWorkspaceUserAndAgent(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.Workspace = other })
	answer := f.connect(t, asking("read"))
	for name, change := range map[string]func(*authservice.AuthRequest){
		"another workspace": func(r *authservice.AuthRequest) { r.Workspace = other },
		"another user":      func(r *authservice.AuthRequest) { r.User = "eve" },
		"an odd user":       func(r *authservice.AuthRequest) { r.User = user + "#TOKEN" },
		"an agent":          func(r *authservice.AuthRequest) { r.Agent = "assistant" },
	} {
		r := asking("read")
		change(&r)
		f.ask(t, r, authservice.Pending)
		r.TokenID = answer.TokenID
		if got, err := f.Authenticate(t.Context(), r); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s, by its id: got %+v (%v)", name, got, err)
		}
	}
	r := asking("read")
	r.Agent = "assistant"
	mine := f.connect(t, r)
	if f.ask(t, r, authservice.Completed).TokenID != mine.TokenID || f.ask(t, asking("read"), authservice.Completed).TokenID != answer.TokenID {
		t.Error("the agent's token and the user's own are mixed up")
	}
}

func TestRequestsThatBreakARuleAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	for name, c := range map[string]struct {
		change func(*authservice.AuthRequest)
		want   fault.Kind
	}{
		"nobody":            {func(r *authservice.AuthRequest) { r.User = "" }, fault.Invalid},
		"a long user":       {func(r *authservice.AuthRequest) { r.User = strings.Repeat("x", 257) }, fault.Invalid},
		"no redirect":       {func(r *authservice.AuthRequest) { r.RedirectURI = "/callback" }, fault.Invalid},
		"a quoted scope":    {func(r *authservice.AuthRequest) { r.Scopes = []string{`"`} }, fault.Invalid},
		"an empty scope":    {func(r *authservice.AuthRequest) { r.Scopes = []string{""} }, fault.Invalid},
		"too many scopes":   {func(r *authservice.AuthRequest) { r.Scopes = slices.Repeat([]string{"x"}, 101) }, fault.Invalid},
		"unknown provider":  {func(r *authservice.AuthRequest) { r.ProviderID = "unknown" }, fault.NotFound},
		"no provider":       {func(r *authservice.AuthRequest) { r.ProviderID = "" }, fault.NotFound},
		"another workspace": {func(r *authservice.AuthRequest) { r.Workspace = other }, fault.NotFound},
	} {
		r := asking("read")
		c.change(&r)
		if answer, err := f.Authenticate(t.Context(), r); !fault.Is(err, c.want) {
			t.Errorf("%s: got %+v (%v), want a fault of kind %s", name, answer, err, c.want)
		}
	}
}

// TestTheIssuerMustBeTheProviders tests the check of RFC 9207.
func TestTheIssuerMustBeTheProviders(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.Issuer, p.NamesIssuer = f.oauth.URL, true })
	for iss, good := range map[string]bool{f.oauth.URL: true, "": false, "https://evil.test": false} {
		callback := back(f.oauth.visit(t, f.ask(t, asking("read"), authservice.Pending).URL))
		callback.Issuer = iss
		outcome, err := f.Complete(t.Context(), callback)
		if err != nil || (outcome.Error == "") != good {
			t.Errorf("%q: got %+v (%v)", iss, outcome, err)
		}
		for _, token := range f.tokens(t) {
			check.Must(t, f.DeleteToken(t.Context(), token.TokenRef))
		}
	}
}

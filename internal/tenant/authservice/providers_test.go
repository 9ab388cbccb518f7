package authservice_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestAProviderIsReadBack(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made := f.createProvider(t)
	read, err := f.Provider(t.Context(), workspace, providerID)
	if diff := cmp.Diff(made, read, cmpopts.IgnoreUnexported(authservice.Provider{})); err != nil || diff != "" {
		t.Errorf("%v (-made +read):\n%s", err, diff)
	}
	if !id.Valid(made.ID) || !made.HasSecret || made.Workspace != workspace || made.ClientAuth != authservice.AuthPost || made.CodeChallengeMethod != "S256" {
		t.Errorf("got %+v", made)
	}
	if shown := fmt.Sprintf("%+v %s", read, check.Value(json.Marshal(read))); strings.Contains(shown, clientSecret) {
		t.Error("the secret is shown")
	}
	f.createProvider(t, func(p *authservice.NewProvider) { p.ProviderID = "a-mail" })
	f.createProvider(t, func(p *authservice.NewProvider) { p.Workspace = other })
	list, err := f.ListProviders(t.Context(), workspace)
	if err != nil || len(list) != 2 || list[0].ProviderID != "a-mail" || list[1].ID != made.ID {
		t.Errorf("got %+v (%v)", list, err)
	}
	f.assertNoSecrets(t)
}

func TestAProviderIDIsTakenOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() { _, errs[i] = f.CreateProvider(t.Context(), f.newProvider()) })
	}
	group.Wait()
	good := 0
	for _, err := range errs {
		if err == nil {
			good++
		} else if !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v", err)
		}
	}
	if good != 1 {
		t.Errorf("%d were created", good)
	}
}

func TestProvidersThatBreakARuleAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, change := range map[string]func(*authservice.NewProvider){
		"no id":               func(p *authservice.NewProvider) { p.ProviderID = "" },
		"a path for an id":    func(p *authservice.NewProvider) { p.ProviderID = "a/b" },
		"a key for an id":     func(p *authservice.NewProvider) { p.ProviderID = "a#b" },
		"no name":             func(p *authservice.NewProvider) { p.Name = "" },
		"no client":           func(p *authservice.NewProvider) { p.ClientID = "" },
		"a long secret":       func(p *authservice.NewProvider) { p.ClientSecret = new(strings.Repeat("x", 8193)) },
		"plain challenge":     func(p *authservice.NewProvider) { p.CodeChallengeMethod = "plain" },
		"unknown type":        func(p *authservice.NewProvider) { p.Type = "other" },
		"unknown method":      func(p *authservice.NewProvider) { p.ClientAuth = "private_key_jwt" },
		"none with a secret":  func(p *authservice.NewProvider) { p.ClientAuth = authservice.AuthNone },
		"basic without one":   func(p *authservice.NewProvider) { p.ClientAuth, p.ClientSecret = authservice.AuthBasic, nil },
		"public without PKCE": func(p *authservice.NewProvider) { p.UsesPKCE, p.ClientSecret = false, nil },
		"relative URL":        func(p *authservice.NewProvider) { p.AuthURL = "/authorize" },
		"http":                func(p *authservice.NewProvider) { p.TokenURL = "http://provider.test/token" },
		"another scheme":      func(p *authservice.NewProvider) { p.TokenURL = "file:///etc/passwd" },
		"credentials":         func(p *authservice.NewProvider) { p.TokenURL = "https://a:b@provider.test/token" },
		"a fragment":          func(p *authservice.NewProvider) { p.AuthURL = "https://provider.test/#x" },
		"revocation":          func(p *authservice.NewProvider) { p.RevocationURL = "http://provider.test/" },
	} {
		request := f.newProvider()
		change(&request)
		if _, err := f.CreateProvider(t.Context(), request); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want a fault of kind invalid", name, err)
		}
	}
	if list, err := f.ListProviders(t.Context(), workspace); err != nil || len(list) != 0 {
		t.Errorf("got %v (%v)", list, err)
	}
}

func TestAProviderIsPatched(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made := f.createProvider(t, func(p *authservice.NewProvider) { p.ClientSecret = new("wrong") })
	pending := f.ask(t, asking("read"), authservice.Pending)
	if outcome, err := f.Complete(t.Context(), back(f.oauth.visit(t, pending.URL))); err != nil || outcome.Error == "" {
		t.Errorf("with a wrong secret: got %+v (%v)", outcome, err)
	}
	patched, err := f.PatchProvider(t.Context(), workspace, providerID, authservice.ProviderPatch{Name: new("New"), ClientSecret: new(clientSecret)})
	if err != nil || patched.Name != "New" || patched.ClientID != clientID || patched.ID != made.ID || !patched.Updated.After(made.Updated) {
		t.Errorf("got %+v (%v)", patched, err)
	}
	f.connect(t, asking("read"))
	for name, patch := range map[string]authservice.ProviderPatch{
		"a bad URL": {TokenURL: new("http://provider.test")}, "no secret for basic": {ClientAuth: new(authservice.AuthBasic), ClientSecret: new("")},
	} {
		if _, err := f.PatchProvider(t.Context(), workspace, providerID, patch); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := f.PatchProvider(t.Context(), other, providerID, authservice.ProviderPatch{Name: new("x")}); !fault.Is(err, fault.NotFound) {
		t.Errorf("another workspace: got %v", err)
	}
}

func TestPatchesThatMeetAreBothKept(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	var group sync.WaitGroup
	for _, patch := range []authservice.ProviderPatch{{Name: new("n")}, {ClientID: new("c")}, {UsesPKCE: new(false)}, {Type: new(authservice.Slack)}} {
		group.Go(func() {
			if _, err := f.PatchProvider(t.Context(), workspace, providerID, patch); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := f.Provider(t.Context(), workspace, providerID)
	if err != nil || got.Name != "n" || got.ClientID != "c" || got.UsesPKCE || got.Type != authservice.Slack || !got.HasSecret {
		t.Errorf("got %+v (%v)", got, err)
	}
}

func TestADeletedProviderTakesItsTokensWithIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.ProviderID = "mail" })
	f.imported(t)
	kept := f.imported(t, func(in *authservice.ImportedToken) { in.ProviderID = "mail" })
	f.imported(t, func(in *authservice.ImportedToken) { in.User = "eve" })
	pending := f.ask(t, asking("write"), authservice.Pending)
	callback := back(f.oauth.visit(t, pending.URL))
	if err := f.DeleteProvider(t.Context(), other, providerID, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("another workspace: got %v", err)
	}
	check.Must(t, f.DeleteProvider(t.Context(), workspace, providerID, nil))
	if err := f.DeleteProvider(t.Context(), workspace, providerID, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("again: got %v", err)
	}
	for _, who := range []string{user, "eve"} {
		found, err := f.ListTokens(t.Context(), authservice.Owner{Workspace: workspace, User: who}, authservice.TokenFilter{ProviderID: providerID})
		if err != nil || len(found) != 0 {
			t.Errorf("%s: got %d tokens (%v)", who, len(found), err)
		}
	}
	if _, err := f.Token(t.Context(), kept.TokenRef); err != nil {
		t.Error(err)
	}
	if _, err := f.Authenticate(t.Context(), asking("read")); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	f.createProvider(t) // of the same name, but a different provider
	if _, err := f.Complete(t.Context(), callback); !fault.Is(err, fault.NotFound) {
		t.Errorf("a callback of the provider before: got %v", err)
	}
	f.ask(t, asking("read"), authservice.Pending)
}

// TestAPatchThatChangesNothingIsNoChange sends patches with the values that are there already. A
// client secret is never compared with the one that is there.
func TestAPatchThatChangesNothingIsNoChange(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made := f.createProvider(t)
	for name, c := range map[string]struct {
		patch authservice.ProviderPatch
		by    int64
	}{
		"nothing":       {},
		"the same":      {patch: authservice.ProviderPatch{Name: &made.Name, AuthURL: &made.AuthURL, UsesPKCE: &made.UsesPKCE}},
		"a secret":      {authservice.ProviderPatch{ClientSecret: new(clientSecret)}, 1},
		"another name":  {authservice.ProviderPatch{Name: new("another")}, 1},
		"nothing, once": {patch: authservice.ProviderPatch{Expect: nil}},
	} {
		before, err := f.Provider(t.Context(), workspace, providerID)
		check.Must(t, err)
		if c.patch.Name == &made.Name {
			c.patch.Name = &before.Name
		}
		after, err := f.PatchProvider(t.Context(), workspace, providerID, c.patch)
		if err != nil || after.Version() != before.Version()+c.by || after.Updated.Equal(before.Updated) != (c.by == 0) {
			t.Errorf("%s: version %d of %s, then %d of %s (%v)", name, before.Version(), before.Updated, after.Version(), after.Updated, err)
		}
	}
}

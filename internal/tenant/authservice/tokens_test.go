package authservice_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/test/check"
)

func (f *fixture) imported(t *testing.T, change ...func(*authservice.ImportedToken)) authservice.Token {
	t.Helper()
	in := authservice.ImportedToken{
		Owner: owner, ProviderID: providerID, AccessToken: "imported-access", RefreshToken: "imported-refresh",
		Scopes: []string{"read"}, Label: "ada@work", Metadata: json.RawMessage(`{ "team": "a" }`), Default: true,
	}
	for _, c := range change {
		c(&in)
	}
	token, err := f.ImportToken(t.Context(), in)
	check.Must(t, err)
	return token
}

func TestDeletingRevokesAtTheProviderFirst(t *testing.T) {
	t.Parallel()
	for _, method := range []authservice.ClientAuth{authservice.AuthPost, authservice.AuthBasic} {
		f := setUp(t)
		f.createProvider(t, func(p *authservice.NewProvider) { p.ClientAuth = method })
		answer := f.connect(t, asking("read"))
		ref := owner.Token(answer.TokenID)
		for _, thief := range []authservice.Owner{{Workspace: workspace, User: "eve"}, {Workspace: other, User: user}, {Workspace: workspace}} {
			if err := f.DeleteToken(t.Context(), thief.Token(answer.TokenID)); !fault.Is(err, fault.NotFound) {
				t.Errorf("%v: got %v", thief, err)
			}
		}
		if !f.oauth.accepts(answer.Token) {
			t.Fatal("somebody else revoked it")
		}
		f.oauth.at("/revoke", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		if err := f.DeleteToken(t.Context(), ref); !fault.Is(err, fault.Unavailable) || len(f.tokens(t)) != 1 {
			t.Errorf("the provider is down: got %v, %d tokens", err, len(f.tokens(t)))
		}
		f.oauth.recover()
		check.Must(t, f.DeleteToken(t.Context(), ref))
		if f.oauth.accepts(answer.Token) || len(f.oauth.revoked) != 1 || len(f.tokens(t)) != 0 {
			t.Errorf("revoked %d, accepted %v, %d tokens left", len(f.oauth.revoked), f.oauth.accepts(answer.Token), len(f.tokens(t)))
		}
		if err := f.DeleteToken(t.Context(), ref); !fault.Is(err, fault.NotFound) {
			t.Errorf("again: got %v", err)
		}
		f.ask(t, asking("read"), authservice.Pending)
		if notes, err := table.AllItems(t.Context(), f.table, keys.AuthDefaults(workspace, user)); err != nil || len(notes) != 0 {
			t.Errorf("%d notes of a default are left (%v)", len(notes), err)
		}
		if got := f.events(t); !slices.Equal(got, []authservice.EventType{authservice.TokenDeleted, authservice.TokenCreated}) {
			t.Errorf("got events %v", got)
		}
		f.assertNoSecrets(t)
	}
}

func TestAProviderThatRefusesForGoodHindersNoDelete(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	answer := f.connect(t, asking("read"))
	f.oauth.at("/revoke", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"unsupported_token_type","error_description":"%s"}`, r.FormValue("token"))
	})
	if err := f.DeleteToken(t.Context(), owner.Token(answer.TokenID)); err != nil || len(f.tokens(t)) != 0 {
		t.Errorf("got %v, %d tokens", err, len(f.tokens(t)))
	}
	f.assertNoSecrets(t)
}

func TestDeletingByProvider(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.ProviderID = "mail" })
	for range 3 {
		f.imported(t)
	}
	mail := f.imported(t, func(in *authservice.ImportedToken) { in.ProviderID = "mail" })
	eves := f.imported(t, func(in *authservice.ImportedToken) { in.User = "eve" })
	if n, err := f.DeleteTokens(t.Context(), owner, providerID); err != nil || n != 3 {
		t.Errorf("got %d (%v)", n, err)
	}
	if left := f.tokens(t); len(left) != 1 || left[0].Token != mail.Token || len(f.oauth.revoked) != 3 {
		t.Errorf("got %+v", left)
	}
	if _, err := f.Token(t.Context(), eves.TokenRef); err != nil {
		t.Error(err)
	}
}

func TestAnImportedTokenIsUsedAndRefreshed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	answer := f.connect(t, asking("read")) // a refresh token that is valid at the provider
	f.oauth.mu.Lock()
	access, refresh := f.oauth.issued[1], f.oauth.issued[2]
	f.oauth.mu.Unlock()
	token := f.imported(t, func(in *authservice.ImportedToken) {
		in.AccessToken, in.RefreshToken, in.Lifetime, in.User = access, refresh, time.Minute, "bea"
	})
	if answer.Token != access || token.Label != "ada@work" || string(token.Metadata) != `{"team":"a"}` || !token.IsDefault {
		t.Errorf("got %+v", token)
	}
	r := asking("read")
	r.User = "bea"
	got := f.ask(t, r, authservice.Completed)
	if got.Token != access || string(got.Metadata) != `{"team":"a"}` {
		t.Error("it is not what was imported")
	}
	f.clock.Pass(time.Minute)
	if got = f.ask(t, r, authservice.Completed); got.Token == access || !f.oauth.accepts(got.Token) {
		t.Error("it was not refreshed")
	}
	f.assertNoSecrets(t)
}

func TestImportsThatBreakARuleAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	for name, c := range map[string]struct {
		change func(*authservice.ImportedToken)
		want   fault.Kind
	}{
		"no token":       {func(in *authservice.ImportedToken) { in.AccessToken = "" }, fault.Invalid},
		"a line break":   {func(in *authservice.ImportedToken) { in.AccessToken = "secret-part\nX" }, fault.Invalid},
		"refresh":        {func(in *authservice.ImportedToken) { in.RefreshToken = "secret-part X" }, fault.Invalid},
		"no user":        {func(in *authservice.ImportedToken) { in.User = "" }, fault.Invalid},
		"an agent alone": {func(in *authservice.ImportedToken) { in.User, in.Agent = "", "a" }, fault.Invalid},
		"metadata":       {func(in *authservice.ImportedToken) { in.Metadata = json.RawMessage(`[]`) }, fault.Invalid},
		"null metadata":  {func(in *authservice.ImportedToken) { in.Metadata = json.RawMessage(`null`) }, fault.Invalid},
		"large metadata": {func(in *authservice.ImportedToken) {
			in.Metadata = json.RawMessage(`{"a":"` + strings.Repeat("x", 4096) + `"}`)
		}, fault.Invalid},
		"a long label":      {func(in *authservice.ImportedToken) { in.Label = strings.Repeat("x", 257) }, fault.Invalid},
		"unknown provider":  {func(in *authservice.ImportedToken) { in.ProviderID = "mail" }, fault.NotFound},
		"another workspace": {func(in *authservice.ImportedToken) { in.Workspace = other }, fault.NotFound},
	} {
		in := authservice.ImportedToken{Owner: owner, ProviderID: providerID, AccessToken: "secret-part"}
		c.change(&in)
		if _, err := f.ImportToken(t.Context(), in); !fault.Is(err, c.want) || strings.Contains(err.Error(), "secret-part") {
			t.Errorf("%s: got %v, want a fault of kind %s", name, err, c.want)
		}
	}
}

func TestWhatIsNotedOfATokenCanBeChanged(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	first, second := f.imported(t), f.imported(t)
	patched, err := f.PatchToken(t.Context(), first.TokenRef, authservice.TokenPatch{Label: new("home"), Metadata: json.RawMessage(`{"b": 1}`), Default: new(true)})
	if err != nil || patched.Label != "home" || string(patched.Metadata) != `{"b":1}` || !patched.IsDefault || !patched.Updated.After(first.Updated) {
		t.Errorf("got %+v (%v)", patched, err)
	}
	if got, err := f.Token(t.Context(), second.TokenRef); err != nil || got.IsDefault {
		t.Errorf("there are two defaults (%v)", err)
	}
	if patched, err = f.PatchToken(t.Context(), first.TokenRef, authservice.TokenPatch{Default: new(false)}); err != nil || patched.IsDefault || patched.Label != "home" {
		t.Errorf("got %+v (%v)", patched, err)
	}
	if got := f.ask(t, asking("read"), authservice.Completed); got.TokenID != second.Token {
		t.Error("without a default it is not the newest")
	}
	for _, thief := range []authservice.Owner{{Workspace: workspace, User: "eve"}, {Workspace: other, User: user}} {
		if _, err := f.PatchToken(t.Context(), thief.Token(first.Token), authservice.TokenPatch{Label: new("x")}); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: got %v", thief, err)
		}
	}
	if _, err := f.PatchToken(t.Context(), first.TokenRef, authservice.TokenPatch{Metadata: json.RawMessage(`7`)}); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}

func TestListsHoldTheOwnersTokensOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.createProvider(t, func(p *authservice.NewProvider) { p.ProviderID = "mail" })
	f.imported(t)
	f.imported(t, func(in *authservice.ImportedToken) { in.Agent = "assistant" })
	f.imported(t, func(in *authservice.ImportedToken) { in.ProviderID = "mail" })
	f.imported(t, func(in *authservice.ImportedToken) { in.User = "eve" })
	for name, c := range map[string]struct {
		owner  authservice.Owner
		filter authservice.TokenFilter
		want   int
	}{
		"all":               {owner, authservice.TokenFilter{}, 3},
		"of a provider":     {owner, authservice.TokenFilter{ProviderID: providerID}, 2},
		"of an agent":       {owner, authservice.TokenFilter{Agent: "assistant"}, 1},
		"of both":           {owner, authservice.TokenFilter{ProviderID: "mail", Agent: "assistant"}, 0},
		"another user":      {authservice.Owner{Workspace: workspace, User: "eve"}, authservice.TokenFilter{}, 1},
		"a prefix":          {authservice.Owner{Workspace: workspace, User: "ad"}, authservice.TokenFilter{}, 0},
		"another workspace": {authservice.Owner{Workspace: other, User: user}, authservice.TokenFilter{}, 0},
	} {
		found, err := f.ListTokens(t.Context(), c.owner, c.filter)
		exists, existsErr := f.TokenExists(t.Context(), c.owner, c.filter)
		if err != nil || existsErr != nil || len(found) != c.want || exists != (c.want > 0) {
			t.Errorf("%s: got %d tokens, exists %v (%v, %v)", name, len(found), exists, err, existsErr)
		}
		if shown := fmt.Sprintf("%+v", found) + string(check.Value(json.Marshal(found))); strings.Contains(shown, "imported-") {
			t.Errorf("%s: a value is shown", name)
		}
	}
	if _, err := f.ListTokens(t.Context(), authservice.Owner{Workspace: workspace}, authservice.TokenFilter{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("nobody's: got %v", err)
	}
}

func TestEventsArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	var want []string
	for range 5 {
		want = append([]string{f.imported(t).Token}, want...)
	}
	f.imported(t, func(in *authservice.ImportedToken) { in.User = "eve" })
	var got []string
	for offset := 0; offset < 6; offset += 2 {
		page, err := f.ListEvents(t.Context(), owner, "", record.Window{Offset: offset, Limit: 2})
		check.Must(t, err)
		for _, event := range page {
			if event.Type != authservice.TokenImported || event.ProviderID != providerID || event.At.IsZero() {
				t.Errorf("got %+v", event)
			}
			got = append(got, event.TokenID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAnAgentUsesWhatIsConnectedToIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	token := f.imported(t)
	alone := authservice.AuthRequest{Workspace: workspace, ProviderID: providerID, Agent: "assistant", Scopes: []string{"read"}, RedirectURI: redirectURI}
	f.ask(t, alone, authservice.ConnectionRequired)
	made, err := f.Connect(t.Context(), token.TokenRef, "assistant")
	if err != nil || made.TokenRef.Token != token.Token || made.User != user || made.Label != "ada@work" || !slices.Equal(made.Scopes, []string{"read"}) {
		t.Fatalf("got %+v (%v)", made, err)
	}
	if _, err := f.Connect(t.Context(), token.TokenRef, "assistant"); !fault.Is(err, fault.Conflict) {
		t.Errorf("again: got %v", err)
	}
	if got := f.ask(t, alone, authservice.Completed); got.Token != "imported-access" || got.User != user {
		t.Errorf("got %+v", got)
	}
	for name, c := range map[string]struct {
		change func(*authservice.AuthRequest)
		want   authservice.Status
	}{
		"for its owner":       {func(r *authservice.AuthRequest) { r.User = user }, authservice.Completed},
		"by its id":           {func(r *authservice.AuthRequest) { r.TokenID = token.Token }, authservice.Completed},
		"for another user":    {func(r *authservice.AuthRequest) { r.User = "eve" }, authservice.Pending},
		"for other scopes":    {func(r *authservice.AuthRequest) { r.Scopes = []string{"write"} }, authservice.ConnectionRequired},
		"another agent":       {func(r *authservice.AuthRequest) { r.Agent = "intruder" }, authservice.ConnectionRequired},
		"a user of no agent":  {func(r *authservice.AuthRequest) { r.User, r.Agent = "eve", "" }, authservice.Pending},
		"anew, for its owner": {func(r *authservice.AuthRequest) { r.User, r.ForceNew = user, true }, authservice.Pending},
	} {
		r := alone
		c.change(&r)
		if got, err := f.Authenticate(t.Context(), r); err != nil || got.Status != c.want {
			t.Errorf("%s: got %s (%v), want %s", name, got.Status, err, c.want)
		}
	}
	for _, agent := range []string{"intruder", "", strings.Repeat("x", 300)} {
		if list, err := f.ListConnections(t.Context(), workspace, agent); err != nil || len(list) != 0 {
			t.Errorf("%.20q: got %v (%v)", agent, list, err)
		}
	}
	if list, err := f.ListConnections(t.Context(), other, "assistant"); err != nil || len(list) != 0 {
		t.Errorf("another workspace: got %v (%v)", list, err)
	}
	if err := f.Disconnect(t.Context(), other, "assistant", made.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another workspace: got %v", err)
	}
	check.Must(t, f.Disconnect(t.Context(), workspace, "assistant", made.ID))
	if err := f.Disconnect(t.Context(), workspace, "assistant", made.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("again: got %v", err)
	}
	f.ask(t, alone, authservice.ConnectionRequired)
	want := []authservice.EventType{authservice.TokenDisconnected, authservice.TokenConnected, authservice.TokenImported}
	if got := f.events(t); !slices.Equal(got, want) {
		t.Errorf("got events %v", got)
	}
}

func TestOnlyTheOwnerConnectsAToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	token := f.imported(t)
	for _, thief := range []authservice.Owner{{Workspace: workspace, User: "eve"}, {Workspace: other, User: user}, {Workspace: workspace}} {
		if _, err := f.Connect(t.Context(), thief.Token(token.Token), "assistant"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: got %v", thief, err)
		}
	}
	if _, err := f.Connect(t.Context(), token.TokenRef, ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("no agent: got %v", err)
	}
}

func TestADeletedTokenIsTakenFromAllAgents(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	token := f.imported(t)
	for i := range 120 {
		if _, err := f.Connect(t.Context(), token.TokenRef, fmt.Sprintf("agent#%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	left, err := f.table.Get(t.Context(), keys.AuthConnection(workspace, "agent#0", token.Token))
	check.Must(t, err)
	check.Must(t, f.DeleteToken(t.Context(), token.TokenRef))
	if items, err := table.AllItems(t.Context(), f.table, keys.AuthConnectionList(workspace, token.Token)); err != nil || len(items) != 0 {
		t.Errorf("%d connections are left (%v)", len(items), err)
	}
	// A connection that was made at that very moment has no effect.
	check.Must(t, f.table.Transact(t.Context(), table.Put{Item: *left}))
	for _, agent := range []string{"agent#0", "agent#119"} {
		if list, err := f.ListConnections(t.Context(), workspace, agent); err != nil || len(list) != 0 {
			t.Errorf("%s: got %v (%v)", agent, list, err)
		}
	}
}

func TestATokenPatchThatChangesNothingIsNoChange(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	token := f.imported(t)
	full := authservice.TokenPatch{Label: new("home"), Metadata: json.RawMessage(`{"b": 1}`), Default: new(true)}
	before, err := f.PatchToken(t.Context(), token.TokenRef, full)
	check.Must(t, err)
	events := f.events(t)
	for _, patch := range []authservice.TokenPatch{{}, full, {Default: new(true)}} {
		after, err := f.PatchToken(t.Context(), token.TokenRef, patch)
		if err != nil || !after.Updated.Equal(before.Updated) {
			t.Errorf("%+v: of %s, then of %s (%v)", patch, before.Updated, after.Updated, err)
		}
	}
	if diff := cmp.Diff(events, f.events(t)); diff != "" {
		t.Errorf("events (-before +after):\n%s", diff)
	}
}

package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	roles "github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	workspace = "0197a000-0000-7000-8000-00000000000a"
	stranger  = "0197a000-0000-7000-8000-00000000000b"
)

// setUp returns an authenticator that knows one key.
func setUp(t *testing.T) (authenticator auth.Authenticator, key string) {
	t.Helper()
	hasher := fixtures.Key(t)
	tb := fixtures.Table(t)
	check.Must(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: keys.Workspace(workspace)}}))
	store := apikey.NewStore(tb, hasher, clock.System)
	key, err := store.Create(t.Context(), workspace)
	check.Must(t, err)
	return auth.NewWithTokens(store, tokens{}), key
}

// tokens is an auth.Tokens that knows one token, which is valid for each workspace except
// stranger.
type tokens struct{}

func (tokens) Authenticate(_ context.Context, token, tenant string) (roles.Principal, error) {
	switch {
	case token != "a.b.c":
		return roles.Principal{}, fault.New(fault.Unauthorized, "The bearer token is not valid.")
	case tenant == "" || tenant == stranger:
		return roles.Principal{}, fault.New(fault.Forbidden, "The token is not for this workspace.")
	default:
		return roles.Principal{Workspace: strings.ToLower(tenant), Role: "viewer", Subject: "s"}, nil
	}
}

func request(t *testing.T, headers map[string]string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return r
}

// TestWhoMayCall sends every combination of credentials, in both ways to authenticate.
func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	authenticator, key := setUp(t)
	tenant := func(r *http.Request) (roles.Principal, error) { return auth.Tenant(authenticator, r) }
	for name, c := range map[string]struct {
		headers     map[string]string
		key, tenant fault.Kind
	}{
		"nothing":                     {nil, fault.Unauthorized, fault.Unauthorized},
		"a tenant only":               {map[string]string{auth.HeaderTenant: workspace}, fault.Unauthorized, fault.Unauthorized},
		"an empty key":                {map[string]string{auth.HeaderKey: ""}, fault.Unauthorized, fault.Unauthorized},
		"an unknown key":              {map[string]string{auth.HeaderKey: key + "a"}, fault.Unauthorized, fault.Unauthorized},
		"the key in capitals":         {map[string]string{auth.HeaderKey: strings.ToUpper(key)}, fault.Unauthorized, fault.Unauthorized},
		"the key":                     {map[string]string{auth.HeaderKey: key}, "", ""},
		"the key and its tenant":      {map[string]string{auth.HeaderKey: key, auth.HeaderTenant: workspace}, "", ""},
		"the tenant in capitals":      {map[string]string{auth.HeaderKey: key, auth.HeaderTenant: strings.ToUpper(workspace)}, "", ""},
		"another spelling of headers": {map[string]string{"x-api-key": key, "X-Tenant-ID": workspace}, "", ""},
		"the key and another tenant":  {map[string]string{auth.HeaderKey: key, auth.HeaderTenant: stranger}, "", fault.Forbidden},
		"a key as a bearer token":     {map[string]string{auth.HeaderBearer: "Bearer " + key}, "", ""},
		"in small letters":            {map[string]string{auth.HeaderBearer: "bearer  " + key + " ", auth.HeaderTenant: workspace}, "", ""},
		"that key and another tenant": {map[string]string{auth.HeaderBearer: "Bearer " + key, auth.HeaderTenant: stranger}, "", fault.Forbidden},
		"an unknown key as a token":   {map[string]string{auth.HeaderBearer: "Bearer slw_x", auth.HeaderTenant: workspace}, fault.Unauthorized, fault.Unauthorized},
		"another scheme":              {map[string]string{auth.HeaderBearer: "Basic " + key}, fault.Unauthorized, fault.Unauthorized},
		"a scheme alone":              {map[string]string{auth.HeaderBearer: "Bearer "}, fault.Unauthorized, fault.Unauthorized},
		"a token alone":               {map[string]string{auth.HeaderBearer: "Bearer a.b.c"}, fault.Forbidden, fault.Forbidden},
		"a token and its tenant":      {map[string]string{auth.HeaderBearer: "Bearer a.b.c", auth.HeaderTenant: workspace}, "", ""},
		"that tenant in capitals":     {map[string]string{auth.HeaderBearer: "Bearer a.b.c", auth.HeaderTenant: strings.ToUpper(workspace)}, "", ""},
		"a token and another tenant":  {map[string]string{auth.HeaderBearer: "Bearer a.b.c", auth.HeaderTenant: stranger}, fault.Forbidden, fault.Forbidden},
		"a bad token and a tenant":    {map[string]string{auth.HeaderBearer: "Bearer x", auth.HeaderTenant: workspace}, fault.Unauthorized, fault.Unauthorized},
		"a key and a bad token":       {map[string]string{auth.HeaderKey: key, auth.HeaderBearer: "Bearer x"}, "", ""},
		"a bad key and a token":       {map[string]string{auth.HeaderKey: "x", auth.HeaderBearer: "Bearer a.b.c", auth.HeaderTenant: workspace}, fault.Unauthorized, fault.Unauthorized},
		"an unknown key and a tenant": {map[string]string{auth.HeaderKey: "slw_x", auth.HeaderTenant: stranger}, fault.Unauthorized, fault.Unauthorized},
	} {
		for method, authenticate := range map[string]struct {
			call func(*http.Request) (roles.Principal, error)
			want fault.Kind
		}{"Key": {authenticator.Key, c.key}, "Tenant": {tenant, c.tenant}} {
			principal, err := authenticate.call(request(t, c.headers))
			if authenticate.want == "" && (err != nil || principal.Workspace != workspace) {
				t.Errorf("%s with %s: got %v (%v), want the workspace", method, name, principal, err)
			}
			if authenticate.want != "" && (!fault.Is(err, authenticate.want) || principal != roles.Principal{}) {
				t.Errorf("%s with %s: got %v (%v), want a fault of kind %s", method, name, principal, err, authenticate.want)
			}
		}
	}
}

func TestARequestActsForItsWorkspace(t *testing.T) {
	t.Parallel()
	want := roles.Principal{Workspace: workspace, Key: "k", Role: "viewer", Subject: "s"}
	ctx := auth.With(t.Context(), want)
	if got := auth.Workspace(ctx); got != workspace || auth.Of(ctx) != want {
		t.Errorf("got %s and %v", got, auth.Of(ctx))
	}
}

// TestAHandlerWithoutAnAuthenticatorPanics checks that a route which was registered by mistake
// serves no caller.
func TestAHandlerWithoutAnAuthenticatorPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it has a workspace")
		}
	}()
	auth.Workspace(t.Context())
}

// TestAServerWithoutIssuers checks a server that accepts keys in both headers, and no tokens.
func TestAServerWithoutIssuers(t *testing.T) {
	t.Parallel()
	authenticator := auth.New(apikey.NewStore(nil, nil, clock.System))
	_, err := authenticator.Key(request(t, map[string]string{auth.HeaderBearer: "Bearer a.b.c", auth.HeaderTenant: workspace}))
	if !fault.Is(err, fault.Unauthorized) {
		t.Errorf("got %v, want a fault of kind unauthorized", err)
	}
}

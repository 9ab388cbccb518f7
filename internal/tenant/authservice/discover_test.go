package authservice_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/test/check"
)

func (f *fixture) discovery() authservice.NewDiscovered {
	return authservice.NewDiscovered{
		Workspace: workspace, ProviderID: providerID, Name: "Tools", MCPServerURL: f.oauth.URL + "/mcp", RedirectURI: redirectURI,
	}
}

func TestAProviderIsDiscoveredBehindAnMCPServer(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	p, err := f.Discover(t.Context(), f.discovery())
	check.Must(t, err)
	if !p.Dynamic || p.ClientID != "registered" || !p.HasSecret || p.ClientAuth != authservice.AuthPost || !p.UsesPKCE || p.Issuer != f.oauth.URL ||
		p.MCPServerURL != f.oauth.URL+"/mcp" || p.RevocationURL != f.oauth.URL+"/revoke" {
		t.Errorf("got %+v", p)
	}
	pending := f.ask(t, asking("read"), authservice.Pending)
	if u, _ := url.Parse(pending.URL); u.Query().Get("resource") != f.oauth.URL+"/mcp" { // RFC 8707
		t.Errorf("got %s", pending.URL)
	}
	f.consent(t, pending)
	if got := f.ask(t, asking("read"), authservice.Completed); !f.oauth.accepts(got.Token) {
		t.Error("the token is not good")
	}
	if got := f.oauth.asked[0].Get("resource"); got != f.oauth.URL+"/mcp" {
		t.Errorf("the token is asked for %q", got)
	}
	if _, err := f.Discover(t.Context(), f.discovery()); !fault.Is(err, fault.Conflict) {
		t.Errorf("again: got %v", err)
	}
	f.assertNoSecrets(t)
}

// TestWhereMetadataIsFound has servers that offer different metadata.
func TestWhereMetadataIsFound(t *testing.T) {
	t.Parallel()
	const resource, server = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
	const challenge = "challenge" // the path that the server names to a caller without a token
	for name, c := range map[string]struct {
		paths map[string]string // the content of each path, with %s for the server's URL
		want  string            // the issuer's path, or a part of the fault
	}{
		"named by a challenge": {map[string]string{
			challenge: "/elsewhere", "/elsewhere": `{"resource":"%[1]s/mcp","authorization_servers":["%[1]s/tenant"]}`, server + "/tenant": metadata("/tenant", ""),
		}, "/tenant"},
		"the origin's, named by a challenge": {map[string]string{challenge: resource, resource: protected(""), server + "/as": metadata("/as", "")}, "/as"},
		"the origin's at every path": {map[string]string{
			resource + "/mcp": protected(""), resource: protected(""), server + "/as": metadata("/as", ""),
		}, "/as"},
		"the origin's, from elsewhere": {map[string]string{
			challenge: "/elsewhere", "/elsewhere": protected(""), server + "/as": metadata("/as", ""),
		}, "! of another resource"},
		"of a part of the server": {map[string]string{
			challenge: resource + "/mc", resource + "/mc": protected("/mc"), server + "/as": metadata("/as", ""),
		}, "! of another resource"},
		"at the root":              {map[string]string{resource: `{"resource":"%[1]s/","authorization_servers":["%[1]s"]}`, server: metadata("", "")}, ""},
		"the server's own":         {map[string]string{server: metadata("", "")}, ""},
		"OpenID Connect":           {map[string]string{resource + "/mcp": protected("/mcp"), "/.well-known/openid-configuration/as": metadata("/as", "")}, "/as"},
		"OpenID Connect, appended": {map[string]string{resource + "/mcp": protected("/mcp"), "/as/.well-known/openid-configuration": metadata("/as", "")}, "/as"},
		"another resource":         {map[string]string{resource + "/mcp": protected("/other"), server + "/as": metadata("/as", "")}, "! of another resource"},
		"no server":                {map[string]string{resource + "/mcp": `{"resource":"%[1]s/mcp"}`}, "! names no authorization server"},
		"another issuer":           {map[string]string{server: metadata("/evil", "")}, "! of another issuer"},
		"no metadata":              {map[string]string{}, "! has no metadata"},
		"no JSON":                  {map[string]string{server: "<html>"}, "! has no metadata"},
		"no PKCE":                  {map[string]string{server: metadata("", `"code_challenge_methods_supported":["plain"]`)}, "! PKCE"},
		"no registration":          {map[string]string{server: metadata("", `"registration_endpoint":""`)}, "! dynamic client registration"},
		"an endpoint by http":      {map[string]string{server: metadata("", `"token_endpoint":"http://provider.test/token"`)}, "! token_endpoint must be an https URL"},
		"a server by http": {map[string]string{
			resource + "/mcp": `{"resource":"%[1]s/mcp","authorization_servers":["http://10.0.0.1"]}`,
		}, "! authorization_servers must be an https URL"},
		"huge": {map[string]string{server: `{"issuer":"` + strings.Repeat("x", 1<<20) + `"}`}, "! too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.oauth.set(func() {
				f.oauth.intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if named := c.paths[challenge]; r.URL.Path == "/mcp" && named != "" {
						w.Header().Set("WWW-Authenticate", `Bearer realm="x", resource_metadata="`+f.oauth.URL+named+`"`)
						w.WriteHeader(http.StatusUnauthorized)
						return true
					}
					if document := c.paths[r.URL.Path]; document != "" {
						if strings.Contains(document, "%[1]s") {
							document = fmt.Sprintf(document, f.oauth.URL)
						}
						w.Write([]byte(document))
						return true
					}
					if strings.Contains(r.URL.Path, ".well-known") {
						w.WriteHeader(http.StatusNotFound)
						return true
					}
					return false
				}
			})
			p, err := f.Discover(t.Context(), f.discovery())
			if words, refused := strings.CutPrefix(c.want, "! "); refused {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), words) {
					t.Errorf("got %v, want %q", err, words)
				}
				return
			}
			if err != nil || p.Issuer != f.oauth.URL+c.want {
				t.Errorf("got %s (%v), want %s", p.Issuer, err, c.want)
			}
		})
	}
}

func protected(resource string) string {
	return `{"resource":"%[1]s` + resource + `","authorization_servers":["%[1]s/as"]}`
}

// metadata is the metadata of an authorization server; change has other values for some of its
// members.
func metadata(issuer, change string) string {
	document := `{"issuer":"%[1]s` + issuer + `","authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token",` +
		`"registration_endpoint":"%[1]s/register","code_challenge_methods_supported":["S256"]}`
	if change == "" {
		return document
	}
	var members, others map[string]any
	if err := json.Unmarshal([]byte(document), &members); err != nil {
		panic(err)
	}
	if err := json.Unmarshal([]byte("{"+change+"}"), &others); err != nil {
		panic(err)
	}
	maps.Copy(members, others)
	return string(check.Value(json.Marshal(members)))
}

func TestARegistrationThatIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, answer := range map[string]http.HandlerFunc{
		"refused":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"no client": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated); w.Write([]byte(`{}`)) },
		"garbage":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated); w.Write([]byte(`<`)) },
		"gone":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		f.oauth.at("/register", answer)
		if p, err := f.Discover(t.Context(), f.discovery()); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %+v (%v)", name, p, err)
		}
	}
}

// TestAPublicClientThatRegisteredItself needs no secret.
func TestAPublicClientThatRegisteredItself(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.oauth.at("/register", func(w http.ResponseWriter, _ *http.Request) {
		f.oauth.addClient(t, "dynamic", "")
		w.WriteHeader(http.StatusCreated)
		w.Write([]byte(`{"client_id":"dynamic","token_endpoint_auth_method":"none"}`))
	})
	if p, err := f.Discover(t.Context(), f.discovery()); err != nil || p.HasSecret || p.ClientAuth != authservice.AuthNone {
		t.Fatalf("got %+v (%v)", p, err)
	}
	f.connect(t, asking("read"))
}

func TestDiscoveryCallsNoPrivateAddress(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.config.Private, f.config.Timeout = nil, time.Second
	f.Service = authservice.New(f.config)
	f.oauth.set(func() {
		f.oauth.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			t.Errorf("%s was called", r.URL)
			return false
		}
	})
	port := f.oauth.URL[strings.LastIndexByte(f.oauth.URL, ':'):]
	for _, server := range []string{f.oauth.URL + "/mcp", "https://localhost" + port, "https://169.254.169.254/latest/meta-data", "https://[::1]/", "https://127.1" + port, "gopher://x"} {
		in := f.discovery()
		in.MCPServerURL = server
		if p, err := f.Discover(t.Context(), in); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %+v (%v)", server, p, err)
		}
	}
}

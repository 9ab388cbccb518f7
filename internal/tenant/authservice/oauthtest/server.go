// Package oauthtest is an OAuth 2.0 authorization server for tests, with a consent page for a
// browser and, behind an MCP server, its metadata. The library go-oauth2 implements the
// protocol; the page, revocation, registration and metadata, which the library does not have,
// are added around it.
package oauthtest

import (
	"context"
	"encoding/json"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-oauth2/oauth2/v4"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	"github.com/go-oauth2/oauth2/v4/server"
	"github.com/go-oauth2/oauth2/v4/store"
)

// The client that the server knows.
const (
	ClientID     = "client-of-slipway"
	ClientSecret = "s3cret+of/slipway=&%"
	// lifetime is how long access tokens live.
	lifetime = time.Hour
)

// Server is an authorization server on a loopback port.
type Server struct {
	*httptest.Server
	oauth   *server.Server
	manager *manage.Manager
	clients *store.ClientStore

	mu      sync.Mutex
	issued  []string
	revoked []string
}

// New starts a server that sends users back below an address, and ends with the test.
func New(t testing.TB, redirectBase string) *Server {
	t.Helper()
	s := &Server{manager: manage.NewDefaultManager(), clients: store.NewClientStore()}
	s.manager.MapTokenStorage(&memory{by: map[string]oauth2.TokenInfo{}})
	s.manager.MapClientStorage(s.clients)
	s.manager.SetAuthorizeCodeTokenCfg(&manage.Config{AccessTokenExp: lifetime, RefreshTokenExp: 72 * time.Hour, IsGenerateRefresh: true})
	s.manager.SetValidateURIHandler(func(base, redirect string) error {
		if !strings.HasPrefix(redirect, base+"/") {
			return http.ErrNotSupported
		}
		return nil
	})
	s.oauth = server.NewDefaultServer(s.manager)
	s.oauth.Config.AllowedCodeChallengeMethods = []oauth2.CodeChallengeMethod{oauth2.CodeChallengeS256}
	s.oauth.SetClientInfoHandler(server.ClientFormHandler)
	s.oauth.SetUserAuthorizationHandler(func(http.ResponseWriter, *http.Request) (string, error) { return "ada@provider.test", nil })
	s.register(t, ClientID, ClientSecret, redirectBase)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /authorize", s.ask)
	mux.HandleFunc("POST /authorize", s.decide)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) {
		s.note(&s.revoked, r.PostFormValue("token"))
	})
	s.describe(t, mux, redirectBase)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *Server) register(t testing.TB, id, secret, redirectBase string) {
	if err := s.clients.Set(id, &models.Client{ID: id, Secret: secret, Domain: redirectBase}); err != nil {
		t.Error(err)
	}
}

var consentPage = template.Must(template.New("consent").Parse(`<!DOCTYPE html><title>Consent</title>
<h1>Let {{.client_id}} read {{.scope}}?</h1>
<form method="post"><button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></form>`))

// ask shows the consent page.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if _, err := s.oauth.ValidationAuthorizeRequest(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// The browser shows what it gets.
	_ = consentPage.Execute(w, map[string]string{"client_id": query.Get("client_id"), "scope": query.Get("scope")})
}

// decide takes the user's decision back to the client.
func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("decision") == "allow" {
		if err := s.oauth.HandleAuthorizeRequest(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		return
	}
	back := url.Values{
		"error": {"access_denied"}, "error_description": {"The user said <no>."}, "state": {r.URL.Query().Get("state")},
	}
	http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token passes the request to the library, and remembers the answer.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	if err := s.oauth.HandleTokenRequest(answer, r); err != nil {
		http.Error(w, "internal", http.StatusInternalServerError)
		return
	}
	body := answer.Body.Bytes()
	var given struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	if json.Unmarshal(body, &given) == nil && given.Access != "" {
		s.note(&s.issued, given.Access, given.Refresh)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body) // a client that has gone notices by itself
}

// describe serves the metadata of an MCP server and of the authorization server, and registers
// clients.
func (s *Server) describe(t testing.TB, mux *http.ServeMux, redirectBase string) {
	show := func(path string, document func() map[string]any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { encode(t, w, document()) })
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) })
	show("/.well-known/oauth-protected-resource/mcp", func() map[string]any {
		return map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}}
	})
	show("/.well-known/oauth-authorization-server", func() map[string]any {
		return map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
			"revocation_endpoint": s.URL + "/revoke", "registration_endpoint": s.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_post"},
		}
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.register(t, "registered", ClientSecret, redirectBase)
		asked["client_id"], asked["client_secret"] = "registered", ClientSecret
		encode(t, w, asked)
	})
}

func encode(t testing.TB, w http.ResponseWriter, document map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		t.Error(err)
	}
}

// Consent acts as a user without a browser who allows the request at the address. It returns
// the parameters for the callback.
func (s *Server) Consent(t testing.TB, address string) url.Values {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, address, strings.NewReader("decision=allow"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("the provider answered %s and sent the browser to %q: %s (%v)", answer.Status, back, text, err)
	}
	s.note(&s.issued, back.Query().Get("code"))
	return back.Query()
}

func (s *Server) note(list *[]string, texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, texts...)
}

// Issued are the access and refresh tokens that the server gave, and the codes of Consent.
func (s *Server) Issued() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.issued), func(text string) bool { return text == "" })
}

// Revoked are the tokens that clients have revoked.
func (s *Server) Revoked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.revoked)
}

// Accepts reports whether an access token is valid.
func (s *Server) Accepts(token string) bool {
	_, err := s.manager.LoadAccessToken(context.Background(), token)
	return err == nil
}

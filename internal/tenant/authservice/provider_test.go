package authservice_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-oauth2/oauth2/v4"
	oautherrors "github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	"github.com/go-oauth2/oauth2/v4/server"
	"github.com/go-oauth2/oauth2/v4/store"
	"github.com/slipway-run/slipway/internal/test/check"
)

// oauthServer is an OAuth 2.0 authorization server on a loopback port. The library implements
// the protocol; revocation, registration and metadata, which the library does not have, are
// added around it.
type oauthServer struct {
	*httptest.Server
	oauth   *server.Server
	manager *manage.Manager
	clients *store.ClientStore

	mu sync.Mutex
	// intercept, if it is not nil, sees each request first, and answers the request if it
	// returns true.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	// grants counts successful answers of the token endpoint by grant type; asked holds the
	// forms that the endpoint received.
	grants  map[string]int
	asked   []url.Values
	revoked []string
	// issued holds each access and refresh token, and each code, that the server gave.
	issued []string
	deny   bool
}

const (
	clientID     = "client-of-slipway"
	clientSecret = "s3cret+of/slipway=&%"
	// lifetime is how long tokens live.
	lifetime = time.Hour
)

func newOAuthServer(t *testing.T) *oauthServer {
	t.Helper()
	o := &oauthServer{manager: manage.NewDefaultManager(), clients: store.NewClientStore(), grants: map[string]int{}}
	o.manager.MustTokenStorage(store.NewMemoryTokenStore())
	o.manager.MapClientStorage(o.clients)
	o.manager.SetAuthorizeCodeTokenCfg(&manage.Config{AccessTokenExp: lifetime, RefreshTokenExp: 72 * time.Hour, IsGenerateRefresh: true})
	// Refresh tokens are valid for one use.
	o.manager.SetRefreshTokenCfg(&manage.RefreshingConfig{AccessTokenExp: lifetime, IsGenerateRefresh: true, IsRemoveAccess: true, IsRemoveRefreshing: true})
	o.addClient(t, clientID, clientSecret)
	o.oauth = server.NewDefaultServer(o.manager)
	// A request without a challenge counts as plain.
	o.oauth.Config.AllowedCodeChallengeMethods = []oauth2.CodeChallengeMethod{oauth2.CodeChallengeS256, oauth2.CodeChallengePlain}
	o.oauth.SetClientInfoHandler(func(r *http.Request) (string, string, error) {
		if id, secret, ok := r.BasicAuth(); ok {
			// RFC 6749, section 2.3.1: both are form encoded within the header.
			plainID, idErr := url.QueryUnescape(id)
			plainSecret, secretErr := url.QueryUnescape(secret)
			if idErr != nil || secretErr != nil {
				return "", "", oautherrors.ErrInvalidClient
			}
			return plainID, plainSecret, nil
		}
		return r.FormValue("client_id"), r.FormValue("client_secret"), nil
	})
	o.oauth.SetUserAuthorizationHandler(func(http.ResponseWriter, *http.Request) (string, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.deny {
			return "", oautherrors.ErrAccessDenied
		}
		return "ada@provider.test", nil
	})
	o.oauth.SetInternalErrorHandler(func(err error) *oautherrors.Response {
		return oautherrors.NewResponse(oautherrors.ErrInvalidGrant, http.StatusBadRequest)
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		if err := o.oauth.HandleAuthorizeRequest(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("POST /token", o.token)
	mux.HandleFunc("POST /revoke", o.revoke)
	o.metadata(t, mux)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		intercept := o.intercept
		o.mu.Unlock()
		if intercept == nil || !intercept(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *oauthServer) addClient(t *testing.T, id, secret string) {
	t.Helper()
	check.Must(t, o.clients.Set(id, &models.Client{ID: id, Secret: secret, Domain: redirectURI, Public: secret == ""}))
}

// token passes the request to the library, and remembers the answer.
func (o *oauthServer) token(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	if err := o.oauth.HandleTokenRequest(answer, r); err != nil {
		http.Error(w, "internal", http.StatusInternalServerError)
		return
	}
	body := answer.Body.Bytes()
	var given struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	o.mu.Lock()
	o.asked = append(o.asked, r.PostForm)
	if answer.Code == http.StatusOK && json.Unmarshal(body, &given) == nil {
		o.grants[r.FormValue("grant_type")]++
		o.issued = append(o.issued, given.Access, given.Refresh)
	}
	o.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	w.Write(body)
}

// revoke implements RFC 7009 with the library's manager.
func (o *oauthServer) revoke(w http.ResponseWriter, r *http.Request) {
	id, secret, err := o.oauth.ClientInfoHandler(r)
	if err == nil {
		client, clientErr := o.manager.GetClient(r.Context(), id)
		if clientErr != nil || client.GetSecret() != secret {
			err = oautherrors.ErrInvalidClient
		}
	}
	if err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":"invalid_client"}`)
		return
	}
	token := r.PostFormValue("token")
	o.forget(r.Context(), token)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.revoked = append(o.revoked, token)
}

// forget makes a token useless, as when the user withdraws consent.
func (o *oauthServer) forget(ctx context.Context, token string) {
	if info, err := o.manager.LoadRefreshToken(ctx, token); err == nil {
		o.manager.RemoveAccessToken(ctx, info.GetAccess())
		o.manager.RemoveRefreshToken(ctx, token)
		return
	}
	o.manager.RemoveAccessToken(ctx, token)
}

// accepts reports whether an access token is valid at the provider.
func (o *oauthServer) accepts(token string) bool {
	_, err := o.manager.LoadAccessToken(context.Background(), token)
	return err == nil
}

func (o *oauthServer) granted(grantType string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.grants[grantType]
}

// requests is how often the library was asked for a token, for any answer.
func (o *oauthServer) requests() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asked)
}

func (o *oauthServer) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// during calls do when a request to the path has come, before the server answers.
func (o *oauthServer) during(path string, do func()) {
	o.set(func() {
		o.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				do()
			}
			return false
		}
	})
}

// withdraw makes all tokens useless.
func (o *oauthServer) withdraw() {
	o.mu.Lock()
	issued := append([]string{}, o.issued...)
	o.mu.Unlock()
	for _, token := range issued {
		o.forget(context.Background(), token)
	}
}

// atToken answers requests to the token endpoint in the provider's place.
func (o *oauthServer) atToken(answer http.HandlerFunc) { o.at("/token", answer) }

func (o *oauthServer) at(path string, answer http.HandlerFunc) {
	o.set(func() {
		o.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path {
				return false
			}
			answer(w, r)
			return true
		}
	})
}

func (o *oauthServer) recover() { o.set(func() { o.intercept = nil }) }

// metadata serves the documents that Discover reads: an MCP server at /mcp, and the metadata
// of the authorization server.
func (o *oauthServer) metadata(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	show := func(document func() map[string]any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(document())
		}
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) })
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", show(func() map[string]any {
		return map[string]any{"resource": o.URL + "/mcp", "authorization_servers": []string{o.URL}}
	}))
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", show(func() map[string]any {
		return map[string]any{
			"issuer": o.URL, "authorization_endpoint": o.URL + "/authorize", "token_endpoint": o.URL + "/token",
			"revocation_endpoint": o.URL + "/revoke", "registration_endpoint": o.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_post", "none"},
		}
	}))
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		uris, _ := asked["redirect_uris"].([]any)
		if len(uris) != 1 || uris[0] != redirectURI {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		o.addClient(t, "registered", "registered-secret")
		w.WriteHeader(http.StatusCreated)
		asked["client_id"], asked["client_secret"], asked["client_secret_expires_at"] = "registered", "registered-secret", 0
		json.NewEncoder(w).Encode(asked)
	})
}

// visit acts as the user's browser: it opens the consent page, and returns the parameters that
// the provider sends to the callback.
func (o *oauthServer) visit(t *testing.T, consentURL string) url.Values {
	t.Helper()
	browser := &http.Client{
		// Servers that other tests close would cut the connections of the default transport.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := browser.Get(consentURL)
	check.Must(t, err)
	defer answer.Body.Close()
	location := answer.Header.Get("Location")
	if !strings.HasPrefix(location, redirectURI+"?") {
		body, _ := io.ReadAll(answer.Body)
		t.Fatalf("the provider answered %s and sent the browser to %q: %s", answer.Status, location, body)
	}
	u, err := url.Parse(location)
	check.Must(t, err)
	if code := u.Query().Get("code"); code != "" {
		o.set(func() { o.issued = append(o.issued, code) })
	}
	return u.Query()
}

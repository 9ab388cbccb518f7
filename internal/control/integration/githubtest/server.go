// Package githubtest is a server for tests that speaks the part of GitHub's API that the
// integration needs: a GitHub App with installations, their tokens and repositories, users who
// consent, and clones. It checks what GitHub checks.
package githubtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child/childtest"
)

// The registration of the App.
const (
	AppID        = 4711
	Slug         = "slipway"
	ClientID     = "Iv1.client"
	ClientSecret = "client-secret-of-the-app"
)

// rootKey is the App's key; generating a key takes long.
var rootKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// PrivateKey is the App's private key, as GitHub hands it out.
func PrivateKey() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rootKey())}))
}

// Repository is one of an account's repositories.
type Repository struct {
	ID            int64
	Owner, Name   string
	DefaultBranch string
}

// Installation is an installation of the App.
type Installation struct {
	ID int64
	// Account is a user when User is set, otherwise an organization.
	Account   string
	AccountID int64
	User      bool
	Suspended bool
	// Repositories are the repositories that the installation may reach.
	Repositories []Repository
}

// User is a person who has consented. The code that GitHub sends with the browser identifies
// the user.
type User struct {
	ID    int64
	Login string
	// Roles are the user's roles in organizations: admin or member.
	Roles map[string]string
}

// token is an access token of an installation.
type token struct {
	installation int64
	// repositories are the ids of the repositories that the token is for; nil means all
	// repositories of the installation.
	repositories []int64
	permissions  map[string]string
	expires      time.Time
}

// Server is GitHub.
type Server struct {
	*httptest.Server
	// Repos is the folder from which clones are served: owner/name.git.
	Repos string

	now           func() time.Time
	mu            sync.Mutex
	installations map[int64]*Installation
	renamed       map[string]int64
	codes         map[string]User
	users         map[string]User
	tokens        map[string]token
	asked         []string
	intercept     func(http.ResponseWriter, *http.Request) bool
}

// New starts a server. now is the clock by which it checks and grants times.
func New(t testing.TB, now func() time.Time) *Server {
	t.Helper()
	s := &Server{
		Repos: t.TempDir(), now: now, installations: map[int64]*Installation{}, renamed: map[string]int64{},
		codes: map[string]User{}, users: map[string]User{}, tokens: map[string]token{},
	}
	s.Server = httptest.NewTLSServer(s.handler(t))
	t.Cleanup(s.Close)
	return s
}

// APIURL is the address of the API, as on GitHub Enterprise.
func (s *Server) APIURL() string { return s.URL + "/api/v3/" }

// Trust writes the server's certificate to a file.
func (s *Server) Trust(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	// Users of workspaces read it, because their git connects to the server.
	if err := errors.Join(os.WriteFile(path, text, 0o644), childtest.Open(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	return path
}

// Install adds an installation, or changes it.
func (s *Server) Install(i Installation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installations[i.ID] = &i
}

// Installed reports whether there is an installation.
func (s *Server) Installed(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installations[id] != nil
}

// Uninstall removes an installation, as a person does at GitHub.
func (s *Server) Uninstall(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.installations, id)
}

// Renamed makes owner/name an earlier name of a repository.
func (s *Server) Renamed(from string, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renamed[from] = to
}

// Consent returns a code that stands for a user and is valid once.
func (s *Server) Consent(u User) (code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code = "code-" + rand.Text()
	s.codes[code] = u
	return code
}

// Intercept answers requests in place of the server while f returns true; nil ends the
// interception.
func (s *Server) Intercept(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// Asked returns the requests so far, as "METHOD /path?query", without the requests that
// contain one of the texts.
func (s *Server) Asked(without ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(line string) bool {
		return slices.ContainsFunc(without, func(text string) bool { return strings.Contains(line, text) })
	})
}

// Secrets returns all tokens and codes that the server has given, and the secrets that it was
// configured with.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	secrets := []string{ClientSecret, PrivateKey()[40:100]}
	for value := range s.tokens {
		secrets = append(secrets, value)
	}
	for value := range s.users {
		secrets = append(secrets, value)
	}
	for value := range s.codes {
		secrets = append(secrets, value)
	}
	return secrets
}

// Grant is the set of rights of a token.
type Grant struct {
	Repositories []int64
	Permissions  map[string]string
}

// Granted returns the grant with which a token was made.
func (s *Server) Granted(value string) Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[value]
	return Grant{t.repositories, t.permissions}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

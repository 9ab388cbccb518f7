package githubtest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func (s *Server) handler(t testing.TB) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v3/app/installations/{id}", s.asApp(s.getInstallation))
	mux.HandleFunc("DELETE /api/v3/app/installations/{id}", s.asApp(s.deleteInstallation))
	mux.HandleFunc("POST /api/v3/app/installations/{id}/access_tokens", s.asApp(s.createToken))
	mux.HandleFunc("GET /api/v3/installation/repositories", s.asInstallation(s.listRepositories))
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}", s.asInstallation(s.getRepository))
	mux.HandleFunc("GET /api/v3/repositories/{id}", s.asInstallation(s.getRepositoryByID))
	mux.HandleFunc("POST /login/oauth/access_token", s.exchange)
	mux.HandleFunc("GET /api/v3/user", s.asUser(func(w http.ResponseWriter, _ *http.Request, u User) {
		answer(w, http.StatusOK, map[string]any{"id": u.ID, "login": u.Login, "type": "User"})
	}))
	mux.HandleFunc("GET /api/v3/user/memberships/orgs/{org}", s.asUser(func(w http.ResponseWriter, r *http.Request, u User) {
		role := u.Roles[r.PathValue("org")]
		if role == "" {
			refuse(w, http.StatusNotFound, "Not Found")
			return
		}
		state, role, _ := strings.Cut("active "+role, " ")
		if invited, ok := strings.CutPrefix(role, "pending "); ok {
			state, role = "pending", invited
		}
		answer(w, http.StatusOK, map[string]any{"state": state, "role": role})
	}))
	mux.Handle("/git/{owner}/{name}/", s.git(t))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
		intercept := s.intercept
		s.mu.Unlock()
		if intercept != nil && intercept(w, r) {
			return
		}
		// The requests of git, for a URL with or without .git.
		if parts := strings.SplitN(r.URL.Path, "/", 4); len(parts) == 4 && (parts[3] == "info/refs" || parts[3] == "git-upload-pack") {
			r.URL.Path = "/git/" + parts[1] + "/" + strings.TrimSuffix(parts[2], ".git") + ".git/" + parts[3]
		}
		mux.ServeHTTP(w, r)
	})
}

// asApp checks the App's JWT as GitHub does: signed with the App's key, issued by the App, and
// valid for ten minutes at most.
func (s *Server) asApp(next func(http.ResponseWriter, *http.Request, *Installation)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		var claims jwt.RegisteredClaims
		_, err := jwt.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) { return &rootKey().PublicKey, nil },
			jwt.WithValidMethods([]string{"RS256"}), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithTimeFunc(s.now),
			jwt.WithIssuer(strconv.Itoa(AppID)))
		switch {
		case err != nil:
			refuse(w, http.StatusUnauthorized, "A JSON web token could not be decoded: "+err.Error())
			return
		case claims.ExpiresAt.Sub(claims.IssuedAt.Time) > 10*time.Minute:
			refuse(w, http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
			return
		}
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		s.mu.Lock()
		defer s.mu.Unlock()
		installation := s.installations[id]
		if installation == nil {
			refuse(w, http.StatusNotFound, "Not Found")
			return
		}
		next(w, r, installation)
	}
}

func (s *Server) getInstallation(w http.ResponseWriter, _ *http.Request, i *Installation) {
	kind := "Organization"
	if i.User {
		kind = "User"
	}
	body := map[string]any{
		"id": i.ID, "app_id": AppID, "target_type": kind, "account": map[string]any{"id": i.AccountID, "login": i.Account, "type": kind},
	}
	if i.Suspended {
		body["suspended_at"] = s.now().Format(time.RFC3339)
	}
	answer(w, http.StatusOK, body)
}

func (s *Server) deleteInstallation(w http.ResponseWriter, _ *http.Request, i *Installation) {
	delete(s.installations, i.ID)
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) createToken(w http.ResponseWriter, r *http.Request, i *Installation) {
	if i.Suspended {
		refuse(w, http.StatusForbidden, "This installation has been suspended")
		return
	}
	var asked struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	issued := token{installation: i.ID, permissions: asked.Permissions, expires: s.now().Add(time.Hour)}
	var scope []map[string]any
	for _, repository := range i.Repositories {
		named := slices.ContainsFunc(asked.Repositories, func(name string) bool { return strings.EqualFold(name, repository.Name) })
		if named || slices.Contains(asked.RepositoryIDs, repository.ID) {
			issued.repositories = append(issued.repositories, repository.ID)
			scope = append(scope, s.show(repository))
		}
	}
	if len(scope) < len(asked.Repositories)+len(asked.RepositoryIDs) {
		refuse(w, http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
		return
	}
	value := "ghs_" + rand.Text()
	s.tokens[value] = issued
	answer(w, http.StatusCreated, map[string]any{
		"token": value, "expires_at": issued.expires.UTC().Format(time.RFC3339), "permissions": issued.permissions, "repositories": scope,
	})
}

func (s *Server) show(r Repository) map[string]any {
	return map[string]any{
		"id": r.ID, "name": r.Name, "full_name": r.Owner + "/" + r.Name, "owner": map[string]any{"login": r.Owner},
		"html_url": s.URL + "/" + r.Owner + "/" + r.Name, "default_branch": r.DefaultBranch, "private": true,
	}
}

// reach returns the repositories that a token may reach; false when the token is not valid
// now.
func (s *Server) reach(value string) ([]Repository, bool) {
	held, ok := s.tokens[value]
	installation := s.installations[held.installation]
	if !ok || installation == nil || installation.Suspended || !s.now().Before(held.expires) {
		return nil, false
	}
	if held.repositories == nil {
		return installation.Repositories, true
	}
	return slices.DeleteFunc(slices.Clone(installation.Repositories), func(r Repository) bool { return !slices.Contains(held.repositories, r.ID) }), true
}

// asInstallation calls next with the repositories that the bearer of the request may reach.
func (s *Server) asInstallation(next func(http.ResponseWriter, *http.Request, []Repository)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		value, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		all, ok := s.reach(value)
		if !ok {
			refuse(w, http.StatusUnauthorized, "Bad credentials")
			return
		}
		next(w, r, all)
	}
}

func (s *Server) listRepositories(w http.ResponseWriter, r *http.Request, all []Repository) {
	page, size := max(1, number(r.FormValue("page"))), min(100, max(1, number(r.FormValue("per_page"))))
	from, to := min(len(all), (page-1)*size), min(len(all), page*size)
	if to < len(all) {
		w.Header().Set("Link", fmt.Sprintf(`<%[1]sinstallation/repositories?page=%[2]d&per_page=%[3]d>; rel="next", <%[1]sinstallation/repositories?page=%[4]d>; rel="last"`,
			s.APIURL(), page+1, size, (len(all)+size-1)/size))
	}
	shown := []map[string]any{}
	for _, repository := range all[from:to] {
		shown = append(shown, s.show(repository))
	}
	answer(w, http.StatusOK, map[string]any{"total_count": len(all), "repositories": shown})
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }

func (s *Server) getRepository(w http.ResponseWriter, r *http.Request, all []Repository) {
	name := r.PathValue("owner") + "/" + r.PathValue("name")
	if id := s.renamed[name]; id != 0 {
		http.Redirect(w, r, fmt.Sprintf("%srepositories/%d", s.APIURL(), id), http.StatusMovedPermanently)
		return
	}
	s.showOne(w, all, func(found Repository) bool { return strings.EqualFold(found.Owner+"/"+found.Name, name) })
}

func (s *Server) getRepositoryByID(w http.ResponseWriter, r *http.Request, all []Repository) {
	s.showOne(w, all, func(found Repository) bool { return strconv.FormatInt(found.ID, 10) == r.PathValue("id") })
}

func (s *Server) showOne(w http.ResponseWriter, all []Repository, is func(Repository) bool) {
	if n := slices.IndexFunc(all, is); n >= 0 {
		answer(w, http.StatusOK, s.show(all[n]))
	} else {
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

// exchange answers as GitHub does: a refusal has status 200.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, ok := s.codes[r.FormValue("code")]
	delete(s.codes, r.FormValue("code"))
	w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if !ok || r.FormValue("client_id") != ClientID || r.FormValue("client_secret") != ClientSecret {
		fmt.Fprint(w, "error=bad_verification_code&error_description=The+code+passed+is+incorrect+or+expired.")
		return
	}
	value := "ghu_" + rand.Text()
	s.users[value] = user
	fmt.Fprintf(w, "access_token=%s&scope=&token_type=bearer", value)
}

func (s *Server) asUser(next func(http.ResponseWriter, *http.Request, User)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		user, ok := s.users[value]
		s.mu.Unlock()
		if !ok {
			refuse(w, http.StatusUnauthorized, "Bad credentials")
			return
		}
		next(w, r, user)
	}
}

// git serves clones to callers with a token for the repository.
func (s *Server) git(t testing.TB) http.Handler {
	libexec, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Root: "/git", Stderr: io.Discard, Path: filepath.Join(strings.TrimSpace(string(libexec)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + s.Repos, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("owner") + "/" + strings.TrimSuffix(r.PathValue("name"), ".git")
		user, value, _ := r.BasicAuth()
		s.mu.Lock()
		all, ok := s.reach(value)
		contents := s.tokens[value].permissions["contents"]
		s.mu.Unlock()
		if !ok || user != "x-access-token" || contents == "" || !slices.ContainsFunc(all, func(r Repository) bool { return r.Owner+"/"+r.Name == name }) {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
}

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// tokensAsked counts the tokens that GitHub was asked for.
func (f *fixture) tokensAsked() int {
	n := 0
	for _, line := range f.github.Asked() {
		if strings.HasSuffix(line, "/access_tokens") {
			n++
		}
	}
	return n
}

// token gets credentials for a clone, and returns the password.
func (f *fixture) token(t *testing.T, i integration.Installation, repoURL string) string {
	t.Helper()
	got, err := f.CloneCredentials(t.Context(), i.Workspace, i.Integration, repoURL)
	check.Must(t, err)
	password, ok := strings.CutPrefix(got, "x-access-token:")
	if !ok || password == "" {
		t.Fatalf("got credentials of %d bytes, which are not x-access-token's", len(got))
	}
	return password
}

func TestATokenReadsOneRepository(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	read := map[string]string{"contents": "read", "metadata": "read"}
	for path, want := range map[string]int64{
		"/acme/agent": agent.ID, "/acme/agent.git": agent.ID, "/acme/agent/": agent.ID, "/Acme/AGENT": agent.ID, "/acme/secret.git": secret.ID,
	} {
		got := f.github.Granted(f.token(t, i, f.github.URL+path))
		if diff := cmp.Diff(githubtest.Grant{Repositories: []int64{want}, Permissions: read}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if got := f.tokensAsked(); got != 2 {
		t.Errorf("GitHub was asked for %d tokens, want one for each repository", got)
	}
}

func TestATokenIsKeptUntilShortlyBeforeItsEnd(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i, url := f.install(t, workspace), f.repoURL("acme/agent")
	first := f.token(t, i, url)
	f.clock.Pass(39 * time.Minute)
	if f.token(t, i, url) != first {
		t.Error("a token that is good for twenty-one minutes was not used again")
	}
	f.clock.Pass(2 * time.Minute)
	second := f.token(t, i, url)
	if second == first {
		t.Error("a token was handed out nineteen minutes before its end")
	}
	f.Changed(78)
	if f.token(t, i, url) != second {
		t.Error("a change of another installation made GitHub asked anew")
	}
	f.Changed(77)
	if f.token(t, i, url) == second {
		t.Error("a token was used after its installation had changed")
	}
}

func TestWorkspacesOfOneInstallationShareItsTokens(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	mine, theirs, url := f.install(t, workspace), f.install(t, other), f.repoURL("acme/agent")
	if f.token(t, mine, url) != f.token(t, theirs, url) {
		t.Error("one repository has two tokens")
	}
	_, err := f.CloneCredentials(t.Context(), other, mine.Integration, url)
	wantFault(t, err, fault.Invalid, "not found")
}

// TestCallersShareAQuestion holds GitHub's answer back until many callers have asked; one
// caller goes away.
func TestCallersShareAQuestion(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i, url := f.install(t, workspace), f.repoURL("acme/agent")
	asked, gate := make(chan struct{}, 100), make(chan struct{})
	f.github.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/access_tokens") {
			asked <- struct{}{}
			<-gate
		}
		return false
	})
	impatient, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := f.CloneCredentials(impatient, workspace, i.Integration, url)
		gone <- err
	}()
	<-asked
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who went away got %v", err)
	}
	got := make(chan string, 20)
	var callers sync.WaitGroup
	for range cap(got) {
		callers.Go(func() {
			credentials, err := f.CloneCredentials(t.Context(), workspace, i.Integration, url)
			if err != nil {
				t.Error(err)
			}
			got <- credentials
		})
	}
	close(gate)
	callers.Wait()
	first := <-got
	for range cap(got) - 1 {
		if next := <-got; next != first {
			t.Error("callers got different tokens")
		}
	}
	if n := f.tokensAsked(); n != 1 {
		t.Errorf("GitHub was asked %d times, want once", n)
	}
}

// TestAChangeWhileATokenIsMade: the token may be for a repository that the installation may
// not reach any more.
func TestAChangeWhileATokenIsMade(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i, url := f.install(t, workspace), f.repoURL("acme/agent")
	f.github.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/access_tokens") {
			f.Changed(77)
		}
		return false
	})
	first := f.token(t, i, url)
	f.github.Intercept(nil)
	if f.token(t, i, url) == first {
		t.Error("the token was kept")
	}
}

func TestARenamedRepository(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	f.github.Renamed("acme/old-agent", agent.ID)
	f.github.Renamed("old-acme/agent", agent.ID)
	for _, name := range []string{"acme/old-agent", "old-acme/agent"} {
		if got := f.github.Granted(f.token(t, i, f.repoURL(name))).Repositories; len(got) != 1 || got[0] != agent.ID {
			t.Errorf("%s: the token is for %v", name, got)
		}
	}
}

// TestAFailureOfGitHubHasWords checks the messages that a failed build shows.
func TestAFailureOfGitHubHasWords(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	reset := fmt.Sprint(f.clock.Now().Add(90 * time.Second).Unix())
	refused := func(status int, body string, headers ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			for n := 0; n < len(headers); n += 2 {
				w.Header().Set(headers[n], headers[n+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	const secondary = `{"message": "You have exceeded a secondary rate limit", "documentation_url": "https://docs.github.com/rest/overview#secondary-rate-limits"}`
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		kind   fault.Kind
		words  []string
	}{
		"a rate limit":                     {refused(403, `{"message": "API rate limit exceeded"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset), fault.Unavailable, []string{"no more requests", "try again in 1m30s"}},
		"a rate limit, 429":                {refused(429, `{}`, "Retry-After", "17"), fault.Unavailable, []string{"try again in 17s"}},
		"a rate limit, 403":                {refused(403, `{"message": "wait"}`, "Retry-After", "17"), fault.Unavailable, []string{"try again in 17s"}},
		"a secondary rate limit":           {refused(403, secondary, "Retry-After", "60"), fault.Unavailable, []string{"try again in 1m0s"}},
		"a rate limit that says not when":  {refused(429, ``), fault.Unavailable, []string{"try again later"}},
		"trouble":                          {refused(503, `<html>Unicorn!`), fault.Unavailable, []string{"status 503"}},
		"an answer that is not JSON":       {refused(201, `<html>`), fault.Unavailable, []string{"does not answer as it should"}},
		"an answer without a token":        {refused(201, `{}`), fault.Unavailable, []string{"does not answer as it should"}},
		"suspended":                        {refused(403, `{"message": "This installation has been suspended"}`), fault.Conflict, []string{"acme is suspended"}},
		"gone":                             {refused(404, `{"message": "Not Found"}`), fault.Conflict, []string{"not installed at acme any more"}},
		"a permission that is not granted": {refused(403, `{"message": "Resource not accessible"}`), fault.Conflict, []string{"accept the App's permissions"}},
	} {
		f.github.Intercept(c.answer)
		_, err := f.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/agent"))
		if !fault.Is(err, c.kind) {
			t.Errorf("%s: got %v, want a fault of kind %s", name, err, c.kind)
			continue
		}
		wantFault(t, err, c.kind, c.words...)
		f.assertNoSecrets(t, nil, err.Error())
	}
	f.github.Intercept(nil)
	f.github.Install(githubtest.Installation{ID: 77, Account: "acme", Suspended: true})
	_, err := f.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/agent"))
	wantFault(t, err, fault.Conflict, "suspended", "Resume it")
	f.github.Install(githubtest.Installation{ID: 77, Account: "acme", Repositories: []githubtest.Repository{secret}})
	_, err = f.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/agent"))
	wantFault(t, err, fault.Conflict, "no access to the repository acme/agent")
	_, err = f.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("initech/secret"))
	wantFault(t, err, fault.Conflict, "no access to the repository initech/secret")
	f.github.Uninstall(77)
	_, err = f.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/secret"))
	wantFault(t, err, fault.Conflict, "not installed")
	f.github.Install(acme)
	f.token(t, i, f.repoURL("acme/agent"))
}

// TestAKeyThatGitHubDoesNotAccept: the operator must correct this, so it is not a fault.
func TestAKeyThatGitHubDoesNotAccept(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	config := f.config
	config.GitHub = app(f.github)
	config.GitHub.ID = 1
	s, err := integration.New(config)
	check.Must(t, err)
	_, err = s.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/agent"))
	if _, isFault := errors.AsType[*fault.Error](err); err == nil || isFault || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v", err)
	}
}

// TestARedirectElsewhereIsNotFollowed: a redirect would send the App's JWT to the host that
// the answer names.
func TestARedirectElsewhereIsNotFollowed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("got %s %s with %d bytes of Authorization", r.Method, r.URL, len(r.Header.Get("Authorization")))
	}))
	t.Cleanup(elsewhere.Close)
	f.github.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		return true
	})
	if _, err := f.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/agent")); err == nil {
		t.Error("got no error")
	}
}

// TestACloneThatIsRefusedIsAskedAbout suspends an installation while this process holds a
// token of it and does not hear of the suspension.
func TestACloneThatIsRefusedIsAskedAbout(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	url := f.github.URL + "/acme/agent"
	held := f.token(t, i, url)
	check.Must(t, f.CloneRefused(t.Context(), workspace, i.Integration, url))
	if f.token(t, i, url) == held {
		t.Error("the token that was refused is handed out again")
	}
	f.github.Install(githubtest.Installation{ID: i.InstallationID, Account: "acme", Suspended: true})
	if err := f.CloneRefused(t.Context(), workspace, i.Integration, url); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "suspended") {
		t.Errorf("got %v", err)
	}
}

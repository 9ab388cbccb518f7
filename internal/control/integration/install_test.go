package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestAnInstallationIsBoundToTheWorkspaceOfItsState(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	link, err := f.BeginInstall(t.Context(), workspace)
	check.Must(t, err)
	if !strings.HasPrefix(link, f.github.URL+"/github-apps/slipway/installations/new?state=") {
		t.Errorf("got link %s", link)
	}
	got := f.install(t, workspace)
	if !id.Valid(got.Integration) || got.Workspace != workspace || got.InstallationID != 77 || got.Name != "acme" {
		t.Errorf("got %+v", got)
	}
	for name, read := range map[string]func() ([]integration.Installation, error){
		"Installations": func() ([]integration.Installation, error) { return f.Installations(t.Context(), workspace) },
		"InstallationPage": func() ([]integration.Installation, error) {
			page, err := f.InstallationPage(t.Context(), workspace, record.Window{Limit: 20})
			if page.Cursor != "" {
				t.Errorf("got cursor %s", page.Cursor)
			}
			return page.Items, err
		},
		"GetInstallation": func() ([]integration.Installation, error) {
			one, err := f.GetInstallation(t.Context(), got.Ref)
			return []integration.Installation{one}, err
		},
	} {
		found, err := read()
		if diff := cmp.Diff([]integration.Installation{got}, found, cmpopts.IgnoreUnexported(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if found, err := f.Installations(t.Context(), other); err != nil || found == nil || len(found) != 0 {
		t.Errorf("another workspace has %v (%v), want an empty list", found, err)
	}
	_, err = f.GetInstallation(t.Context(), integration.Ref{Workspace: other, Integration: got.Integration})
	wantFault(t, err, fault.NotFound)
}

func TestInstallingAgainKeepsTheIntegration(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first, again := f.install(t, workspace), f.install(t, workspace)
	if diff := cmp.Diff(first, again, cmpopts.IgnoreUnexported(first)); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
	if elsewhere := f.install(t, other); elsewhere.Integration == first.Integration {
		t.Error("two workspaces share an integration")
	}
	workspaces, err := f.Workspaces(t.Context(), 77)
	if diff := cmp.Diff([]string{workspace, other}, workspaces); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if none, err := f.Workspaces(t.Context(), 7); err != nil || len(none) != 0 {
		t.Errorf("got %v (%v)", none, err)
	}
}

func TestAStateIsGoodForOneCallback(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	state := f.begin(t, workspace)
	const callers = 8
	failures := make(chan error, callers)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			_, err := f.CompleteInstall(t.Context(), integration.Callback{State: state, Code: f.github.Consent(ada), InstallationID: 77})
			failures <- err
		})
	}
	all.Wait()
	good := 0
	for range callers {
		if err := <-failures; err == nil {
			good++
		} else {
			wantFault(t, err, fault.Invalid, "state is not valid")
		}
	}
	if good != 1 {
		t.Errorf("%d of %d callbacks were good, want 1", good, callers)
	}
}

// TestAStateIsUsedUpByAFailure: the code and the installation's id may be tried out only once.
func TestAStateIsUsedUpByAFailure(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	state := f.begin(t, workspace)
	_, err := f.CompleteInstall(t.Context(), integration.Callback{State: state, Code: "wrong", InstallationID: 77})
	wantFault(t, err, fault.Invalid, "code")
	_, err = f.CompleteInstall(t.Context(), integration.Callback{State: state, Code: f.github.Consent(ada), InstallationID: 77})
	wantFault(t, err, fault.Invalid, "state is not valid")
}

func TestAStateExpires(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	early, late := f.begin(t, workspace), f.begin(t, workspace)
	f.clock.Pass(59 * time.Minute)
	_, err := f.CompleteInstall(t.Context(), integration.Callback{State: early, Code: f.github.Consent(ada), InstallationID: 77})
	check.Must(t, err)
	f.clock.Pass(2 * time.Minute)
	_, err = f.CompleteInstall(t.Context(), integration.Callback{State: late, Code: f.github.Consent(ada), InstallationID: 77})
	wantFault(t, err, fault.Invalid, "state is not valid")
}

func TestCallbacksThatAreMadeUp(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	good := f.begin(t, workspace)
	parts := strings.Split(good, ".")
	before := len(f.github.Asked())
	for name, state := range map[string]string{
		"none": "", "another workspace": other + "." + parts[1] + "." + parts[2], "another request": parts[0] + "." + unknown + "." + parts[2],
		"another random part": parts[0] + "." + parts[1] + ".AAAAAAAAAAAAAAAAAAAAAAAAAA", "no random part": parts[0] + "." + parts[1] + ".",
		"more parts": good + ".x", "no ids": "a.b.c", "a part of a key": "x#y." + parts[1] + "." + parts[2],
	} {
		_, err := f.CompleteInstall(t.Context(), integration.Callback{State: state, Code: f.github.Consent(ada), InstallationID: 77})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "state is not valid") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, back := range map[string]integration.Callback{
		"no installation yet": {State: good, Code: "c"}, "a negative id": {State: good, Code: "c", InstallationID: -1}, "no code": {State: good, InstallationID: 77},
	} {
		if _, err := f.CompleteInstall(t.Context(), back); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if asked := f.github.Asked()[before:]; len(asked) != 0 {
		t.Errorf("GitHub was asked %v", asked)
	}
	_, err := f.CompleteInstall(t.Context(), integration.Callback{State: good, Code: f.github.Consent(ada), InstallationID: 77})
	check.Must(t, err)
}

// TestAnInstallationOfOthersIsNotBound is about people who know, or guess, the id of an
// installation.
func TestAnInstallationOfOthersIsNotBound(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.github.Install(githubtest.Installation{ID: 78, Account: "bob", AccountID: 2, User: true})
	f.github.Install(githubtest.Installation{ID: 79, Account: "nobody", User: true})
	const unconfirmed = "GitHub does not confirm"
	for name, c := range map[string]struct {
		who          githubtest.User
		installation int64
		want         string
	}{
		"an owner":                        {ada, 77, ""},
		"a member":                        {githubtest.User{ID: 3, Roles: map[string]string{"acme": "member"}}, 77, unconfirmed},
		"a stranger":                      {githubtest.User{ID: 4, Roles: map[string]string{"initech": "admin"}}, 77, unconfirmed},
		"one who was invited":             {githubtest.User{ID: 5, Roles: map[string]string{"acme": "pending admin"}}, 77, unconfirmed},
		"the user":                        {githubtest.User{ID: 2, Login: "bob"}, 78, ""},
		"a user of the name that was":     {githubtest.User{ID: 6, Login: "bob"}, 78, unconfirmed},
		"an account without an id":        {githubtest.User{Login: "nobody"}, 79, unconfirmed},
		"an installation that is nowhere": {ada, 80, unconfirmed},
	} {
		_, err := f.CompleteInstall(t.Context(), integration.Callback{State: f.begin(t, other), Code: f.github.Consent(c.who), InstallationID: c.installation})
		if c.want == "" && err != nil || c.want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if found, err := f.Installations(t.Context(), other); err != nil || len(found) != 2 {
		t.Errorf("got %v (%v), want two", found, err)
	}
}

func TestGitHubIsAwayWhileInstalling(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, path := range []string{"/app/installations/77", "/login/oauth/access_token", "/user/memberships/orgs/acme"} {
		f.github.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, path) {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		})
		_, err := f.CompleteInstall(t.Context(), integration.Callback{State: f.begin(t, workspace), Code: f.github.Consent(ada), InstallationID: 77})
		wantFault(t, err, fault.Unavailable)
	}
	if found, err := f.Installations(t.Context(), workspace); err != nil || len(found) != 0 {
		t.Errorf("got %v (%v)", found, err)
	}
}

func TestInstallationPages(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var want, got []int64
	for n := range int64(5) {
		f.github.Install(githubtest.Installation{ID: 100 + n, Account: "acme", AccountID: 500})
		_, err := f.CompleteInstall(t.Context(), integration.Callback{State: f.begin(t, workspace), Code: f.github.Consent(ada), InstallationID: 100 + n})
		check.Must(t, err)
		want = append(want, 100+n)
	}
	cursor, pages := "", 0
	for {
		page, err := f.InstallationPage(t.Context(), workspace, record.Window{Limit: 2, Cursor: cursor})
		check.Must(t, err)
		for _, i := range page.Items {
			got = append(got, i.InstallationID)
		}
		if pages++; page.Cursor == "" {
			break
		}
		cursor = page.Cursor
	}
	if diff := cmp.Diff(want, got); diff != "" || pages != 3 {
		t.Errorf("in %d pages (-want +got):\n%s", pages, diff)
	}
	for _, bad := range []string{"x", cursor + "x"} {
		_, err := f.InstallationPage(t.Context(), workspace, record.Window{Limit: 2, Cursor: bad})
		wantFault(t, err, fault.Unprocessable)
	}
	_, err := f.InstallationPage(t.Context(), other, record.Window{Limit: 2, Cursor: cursor})
	wantFault(t, err, fault.Unprocessable)
}

func TestAnAppThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, change := range map[string]func(*integration.App){
		"no key":              func(a *integration.App) { a.PrivateKey = "" },
		"a key that is torn":  func(a *integration.App) { a.PrivateKey = a.PrivateKey[:200] },
		"no id":               func(a *integration.App) { a.ID = 0 },
		"no slug":             func(a *integration.App) { a.Slug = "" },
		"no client id":        func(a *integration.App) { a.ClientID = "" },
		"no client secret":    func(a *integration.App) { a.ClientSecret = "" },
		"http":                func(a *integration.App) { a.APIURL = "http://api.example.com" },
		"http for people":     func(a *integration.App) { a.WebURL = "http://example.com" },
		"a URL with password": func(a *integration.App) { a.WebURL = "https://ada:hush@example.com" },
	} {
		config := f.config
		config.GitHub = app(f.github)
		change(config.GitHub)
		_, err := integration.New(config)
		if err == nil {
			t.Errorf("%s: got no error", name)
			continue
		}
		f.assertNoSecrets(t, []string{"hush"}, err.Error())
	}
}

func TestWithoutAnApp(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	config := f.config
	config.GitHub = nil
	s, err := integration.New(config)
	check.Must(t, err)
	_, err = s.BeginInstall(t.Context(), workspace)
	wantFault(t, err, fault.Conflict, "no GitHub App")
	_, err = s.CompleteInstall(t.Context(), integration.Callback{})
	wantFault(t, err, fault.Conflict)
	_, err = s.Repositories(t.Context(), i.Ref)
	wantFault(t, err, fault.Conflict)
	_, err = s.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/agent"))
	wantFault(t, err, fault.Conflict)
	check.Must(t, s.Uninstall(t.Context(), i.Ref))
	if !f.github.Installed(77) {
		t.Error("a server without an App removed one")
	}
}

func TestTheDefaultIsGitHubDotCom(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	config := f.config
	config.GitHub = app(f.github)
	config.GitHub.WebURL, config.GitHub.APIURL = "", ""
	var asked []string
	config.GitHub.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.String())
		return nil, fmt.Errorf("no network")
	})
	s, err := integration.New(config)
	check.Must(t, err)
	link, err := s.BeginInstall(t.Context(), workspace)
	check.Must(t, err)
	state, ok := strings.CutPrefix(link, "https://github.com/apps/slipway/installations/new?state=")
	if !ok {
		t.Errorf("got link %s", link)
	}
	_, err = s.CompleteInstall(t.Context(), integration.Callback{State: state, Code: "c", InstallationID: 77})
	wantFault(t, err, fault.Unavailable)
	if diff := cmp.Diff([]string{"https://api.github.com/app/installations/77"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAStateIsStoredAsItsHashOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	state := f.begin(t, workspace)
	f.assertNoSecrets(t, []string{state, state[strings.LastIndexByte(state, '.')+1:]})
}

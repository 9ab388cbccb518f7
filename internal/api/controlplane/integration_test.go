package controlplane_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// browse opens a page as a browser without credentials. site is the header Sec-Fetch-Site, "" for
// a request without this header.
func (f *fixture) browse(t *testing.T, method, path, site string) opened {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, http.NoBody)
	check.Must(t, err)
	if site != "" {
		request.Header.Set("Sec-Fetch-Site", site)
	}
	answer, err := f.Client().Do(request)
	check.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	check.Must(t, err)
	return opened{answer.StatusCode, answer.Header, string(body), request.URL}
}

// wantHubPage checks a page and its policy, which lets it send a form home if it asks
// something.
func wantHubPage(t *testing.T, p opened, status int, asks bool, words ...string) {
	t.Helper()
	if p.status != status || p.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("got status %d, %s: %s", p.status, p.header.Get("Content-Type"), p.text)
	}
	for _, word := range words {
		if !strings.Contains(p.text, word) {
			t.Errorf("the page does not say %q:\n%s", word, p.text)
		}
	}
	forms := map[bool]string{true: "form-action 'self'", false: "form-action 'none'"}[asks]
	if policy := p.header.Get("Content-Security-Policy"); !strings.Contains(policy, forms) || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	if strings.Contains(p.text, `<form method="post"`) != asks {
		t.Errorf("the page asks: %t\n%s", !asks, p.text)
	}
}

// TestAnInstallationIsConnected goes from the link to the list of repositories, and looks for
// secrets in all answers and log lines.
func TestAnInstallationIsConnected(t *testing.T) {
	t.Parallel()
	rule(t, installFlow)
	rule(t, installLists)
	f := setUpHub(t)
	back := f.link(t, ada)
	asked := f.browse(t, "GET", callbackPath+"?"+back.Encode(), "")
	wantHubPage(t, asked, http.StatusOK, true, "Connect GitHub?", f.own.workspace, "GitHub installation 77")
	done := f.browse(t, "POST", callbackPath+"?"+back.Encode(), "same-origin")
	wantHubPage(t, done, http.StatusOK, false, "Connected", "acme")

	v1 := f.call(t, "GET", "/v1/integrations/github/install", nil)
	wantStatus(t, v1, http.StatusOK)
	id := v1.body.([]any)[0].(object)["id"]
	if diff := cmp.Diff(any([]any{object{"id": id, "installation_id": json.Number("77"), "name": "acme"}}), v1.body); diff != "" {
		t.Errorf("v1 (-want +got):\n%s", diff)
	}
	v2 := f.call(t, "GET", "/v2/integrations/github/installations?page_size=1", nil)
	if diff := cmp.Diff(any(object{"items": v1.body, "next_cursor": nil}), v2.body); diff != "" {
		t.Errorf("v2 (-want +got):\n%s", diff)
	}
	repos := f.call(t, "GET", "/v1/integrations/github/"+id.(string)+"/repos", nil)
	first := object{
		"host_integration_id": id, "id": json.Number("11"), "name": "agent", "owner": "acme", "url": f.hub.URL + "/acme/agent", "default_branch": "main",
	}
	if list := repos.body.([]any); len(list) != 2 || cmp.Diff(any(first), list[0]) != "" {
		t.Errorf("got %s", repos.text)
	}
	paged := "/v2/integrations/github/installations/" + id.(string) + "/repositories?page_size=1"
	page := f.call(t, "GET", paged, nil)
	next := f.call(t, "GET", paged+"&cursor="+url.QueryEscape(page.id("next_cursor")), nil)
	got := append(page.member("items").([]any), next.member("items").([]any)...)
	if diff := cmp.Diff(repos.body, any(got)); diff != "" || next.member("next_cursor") != nil {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	for _, path := range []string{paged + "0000", paged + "&cursor=x", "/v2/integrations/github/installations?page_size=0", "/v2/integrations/github/installations?cursor=x"} {
		wantError(t, f.call(t, "GET", path, nil), http.StatusUnprocessableEntity)
	}

	texts := strings.Join([]string{asked.text, done.text, string(v1.text), string(repos.text), f.log.String()}, "\n")
	for _, secret := range append(f.hub.Secrets(), back.Get("state"), back.Get("code")) {
		if at := strings.Index(texts, secret); at >= 0 {
			t.Errorf("a secret is in clear after %q", texts[max(0, at-60):at])
		}
	}
}

// TestACallbackIsNotTakenFromAnybody sends requests that a stranger can make a browser send.
func TestACallbackIsNotTakenFromAnybody(t *testing.T) {
	t.Parallel()
	rule(t, installCSRF)
	rule(t, installFlow)
	f := setUpHub(t)
	back := f.link(t, ada)
	at := func(changes ...string) string {
		query := maps.Clone(back)
		for i := 0; i < len(changes); i += 2 {
			query.Set(changes[i], changes[i+1])
		}
		return callbackPath + "?" + query.Encode()
	}
	for range 2 { // a GET does not use up the state
		wantHubPage(t, f.browse(t, "GET", at(), ""), http.StatusOK, true)
	}
	wantHubPage(t, f.browse(t, "GET", at("state", "x"), ""), http.StatusBadRequest, false, "Not connected", "state is not valid")
	wantHubPage(t, f.browse(t, "GET", at("installation_id", "0"), ""), http.StatusBadRequest, false, "not installed yet")
	wantHubPage(t, f.browse(t, "GET", at("code", ""), ""), http.StatusBadRequest, false, "GitHub sent no code")
	wantHubPage(t, f.browse(t, "GET", callbackPath+"?error=access_denied&error_description=%3Cb%3Eno", ""), http.StatusOK, false, "access_denied: &lt;b&gt;no")
	wantHubPage(t, f.browse(t, "GET", callbackPath+"?setup_action=update&installation_id=77", ""), http.StatusOK, false, "Installed")
	for _, site := range []string{"cross-site", "same-site", "none"} {
		wantHubPage(t, f.browse(t, "POST", at(), site), http.StatusForbidden, false, "on the page of this server")
	}
	if list := f.call(t, "GET", "/v1/integrations/github/install", nil); len(list.body.([]any)) != 0 {
		t.Fatalf("something is connected: %s", list.text)
	}
	// The first user who confirms uses up the state, whether or not the installation is theirs.
	member := f.link(t, githubtest.User{ID: 2, Login: "bob", Roles: map[string]string{"acme": "member"}})
	wantHubPage(t, f.browse(t, "POST", callbackPath+"?"+member.Encode(), ""), http.StatusBadRequest, false, "GitHub does not confirm")
	wantHubPage(t, f.browse(t, "POST", callbackPath+"?"+member.Encode(), ""), http.StatusBadRequest, false, "state is not valid")
	wantHubPage(t, f.browse(t, "POST", at(), "same-origin"), http.StatusOK, false, "Connected")
	// A repetition of what was connected says so, until it is connected no longer.
	for _, method := range []string{"POST", "GET"} {
		wantHubPage(t, f.browse(t, method, at(), "same-origin"), http.StatusBadRequest, false, "Already connected", "used before")
	}
	wantHubPage(t, f.browse(t, "GET", at("state", back.Get("state")+"x"), ""), http.StatusBadRequest, false, "Not connected", "state is not valid")
	list := f.call(t, "GET", "/v1/integrations/github/install", nil)
	if len(list.body.([]any)) != 1 {
		t.Fatalf("got %s", list.text)
	}
	connected, _ := list.body.([]any)[0].(object)["id"].(string)
	wantStatus(t, f.call(t, "DELETE", "/v2/integrations/github/installations/"+connected, nil), http.StatusNoContent)
	wantHubPage(t, f.browse(t, "POST", at(), "same-origin"), http.StatusBadRequest, false, "Not connected", "state is not valid")
}

// TestWithoutAGitHubApp calls operations that need a GitHub App.
func TestWithoutAGitHubApp(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const detail = "This server has no GitHub App. Its operator can register one; until then, use credentials for the git host."
	wantDetail(t, f.call(t, "POST", "/v2/integrations/github/installation-link", nil), http.StatusConflict, detail)
	if list := f.call(t, "GET", "/v1/integrations/github/install", nil); len(list.body.([]any)) != 0 {
		t.Errorf("got %s", list.text)
	}
	for _, path := range []string{"/v1/integrations/github/" + unknownID + "/repos", "/v2/integrations/github/installations/" + unknownID + "/repositories"} {
		wantDetail(t, f.call(t, "GET", path, nil), http.StatusNotFound, "Integration ID "+unknownID+" not found.")
	}
}

func TestGitCredentials(t *testing.T) {
	t.Parallel()
	rule(t, credentialRules)
	f := setUpHub(t)
	made := f.credential(t, "Git.Example.com:443")
	path := "/v2/integrations/git/credentials/" + made.id("id")
	if made.id("host") != "git.example.com" || made.id("user") != "deploy" {
		t.Errorf("got %s", made.text)
	}
	for _, member := range []string{"host", "user", "token"} {
		body := newCredential("git.test")
		delete(body, member)
		if diff := cmp.Diff([]problem{{"body." + member, "missing"}}, problems(t, f.call(t, "POST", "/v2/integrations/git/credentials", body))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for member, value := range map[string]string{"host": "https://git.test", "user": "a:b", "token": "a\nb"} {
		refused := f.call(t, "POST", "/v2/integrations/git/credentials", with(newCredential("git.test"), member, value))
		if refused.StatusCode != http.StatusBadRequest || !strings.HasPrefix(refused.id("detail"), member+" must ") {
			t.Errorf("got %d %s", refused.StatusCode, refused.text)
		}
	}
	patched := f.call(t, "PATCH", path, object{"user": "other", "token": nil, "host": "evil.test"})
	wantStatus(t, patched, http.StatusOK)
	if patched.id("user") != "other" || patched.id("host") != "git.example.com" {
		t.Errorf("got %s", patched.text)
	}
	wantStatus(t, f.call(t, "PATCH", path, object{"token": gitToken + "-2"}), http.StatusOK)
	repeated := f.own.with(idempotencyKey, "k")
	first := f.send(t, "POST", "/v2/integrations/git/credentials", newCredential("git.test"), repeated)
	again := f.send(t, "POST", "/v2/integrations/git/credentials", newCredential("git.test"), repeated)
	if first.id("id") != again.id("id") || again.Header.Get(replayed) != "true" {
		t.Errorf("a repetition answered %s", again.text)
	}
	list := f.call(t, "GET", "/v2/integrations/git/credentials?page_size=1", nil)
	rest := f.call(t, "GET", "/v2/integrations/git/credentials?page_size=1&cursor="+url.QueryEscape(list.id("next_cursor")), nil)
	if len(list.member("items").([]any)) != 1 || len(rest.member("items").([]any)) != 1 || rest.member("next_cursor") != nil {
		t.Errorf("got %s, then %s", list.text, rest.text)
	}
	for _, text := range []string{string(made.text), string(patched.text), string(list.text), string(again.text), f.log.String()} {
		if strings.Contains(text, gitToken) {
			t.Errorf("the token is in %s", text)
		}
	}
	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "GET", path, nil), http.StatusNotFound)
}

// TestTagsOfIntegrations reads and changes under conditions.
func TestTagsOfIntegrations(t *testing.T) {
	t.Parallel()
	rule(t, integrationTag)
	for name := range integrationOperations {
		if !strings.HasPrefix(name, "GET ") || !strings.HasSuffix(name, "{integration_id}") {
			continue
		}
		s := setUpHub(t).stage(t)
		_, path := s.at(name)
		read := s.call(t, "GET", path, nil)
		tag := read.Header.Get("ETag")
		wantStatus(t, s.send(t, "GET", path, nil, s.own.with("If-None-Match", tag)), http.StatusNotModified)
		wantStatus(t, s.send(t, "DELETE", path, nil, s.own.with("If-Match", `"1-other"`)), http.StatusPreconditionFailed)
		wantStatus(t, s.send(t, "DELETE", path, nil, s.own.with("If-Match", tag)), http.StatusNoContent)
	}
}

// TestADeploymentNamesItsIntegration tries integrations that the deployment may not use.
func TestADeploymentNamesItsIntegration(t *testing.T) {
	t.Parallel()
	rule(t, integrationField)
	f := setUpHub(t)
	hub, host := f.install(t), f.credential(t, "git.test").id("id")
	for i, c := range []struct {
		id, url string
		status  int
		detail  string
	}{
		{host, "https://git.test/team/agent", http.StatusCreated, ""},
		{strings.ToUpper(hub), f.hub.URL + "/acme/agent", http.StatusCreated, ""},
		{unknownID, "https://git.test/team/agent", http.StatusBadRequest, "source_config.integration_id: integration ID " + unknownID + " not found."},
		{host, "https://other.test/agent", http.StatusBadRequest, "source_config.repo_url is at other.test; the credentials of integration ID " + host + " are for git.test."},
		{hub, "https://git.test/team/agent", http.StatusBadRequest, "source_config.repo_url is at git.test; integration ID " + hub + " is for " + strings.TrimPrefix(f.hub.URL, "https://") + "."},
		{host, "ssh://git@git.test/agent", http.StatusBadRequest, "source_config.repo_url must be an https URL when there is a source_config.integration_id."},
	} {
		body := with(with(fromGit(strings.Repeat("a", i+1)), "source_config.integration_id", c.id), "source_config.repo_url", c.url)
		answer := f.call(t, "POST", "/v2/deployments?validate_only=true", body)
		if c.status == http.StatusCreated {
			wantStatus(t, answer, http.StatusOK)
			path, created := f.create(t, body)
			if created.member("source_config", "integration_id") != strings.ToLower(c.id) {
				t.Errorf("got %s", created.text)
			}
			wantDetail(t, f.call(t, "PATCH", path, object{"source_config": object{"integration_id": unknownID}}), http.StatusBadRequest, "source_config.integration_id cannot be changed.")
			wantStatus(t, f.call(t, "PATCH", path, object{"source_config": object{"integration_id": c.id}}), http.StatusOK)
			continue
		}
		wantDetail(t, answer, c.status, c.detail)
		wantDetail(t, f.call(t, "POST", "/v2/deployments", body), c.status, c.detail)
	}
	foreign := with(fromGit("theirs"), "source_config.integration_id", host)
	wantDetail(t, f.send(t, "POST", "/v2/deployments", foreign, f.other.headers()), http.StatusBadRequest, "source_config.integration_id: integration ID "+host+" not found.")
	image := with(fromImage("image"), "source_config.integration_id", host)
	wantDetail(t, f.call(t, "POST", "/v2/deployments", image), http.StatusBadRequest, "source_config.integration_id applies to source github only.")
	for value, kind := range map[any]string{"x": "uuid_parsing", 1: "uuid_type"} {
		answer := f.call(t, "POST", "/v2/deployments", with(fromGit("bad"), "source_config.integration_id", value))
		if diff := cmp.Diff([]problem{{"body.source_config.integration_id", kind}}, problems(t, answer)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", value, diff)
		}
	}
}

// TestAnIntegrationInUseStays deletes before and after its deployment, and while a deployment
// is created.
func TestAnIntegrationInUseStays(t *testing.T) {
	t.Parallel()
	rule(t, credentialUse)
	f := setUpHub(t)
	for path, c := range map[string]struct{ id, url string }{
		"/v2/integrations/github/installations/": {f.install(t), f.hub.URL + "/acme/agent"},
		"/v2/integrations/git/credentials/":      {f.credential(t, "git.test").id("id"), "https://git.test/team/agent"},
	} {
		body := with(with(fromGit("weather"), "source_config.integration_id", c.id), "source_config.repo_url", c.url)
		deployed, created := f.create(t, body)
		wantDetail(t, f.call(t, "DELETE", path+c.id, nil), http.StatusConflict,
			"Integration ID "+c.id+" is in use: deployment ID "+created.id("id")+" is built with it. Delete the deployment first.")
		wantStatus(t, f.call(t, "GET", path+c.id, nil), http.StatusOK)
		wantStatus(t, f.call(t, "DELETE", deployed, nil), http.StatusNoContent)
		wantStatus(t, f.call(t, "DELETE", path+c.id, nil), http.StatusNoContent)
		wantDetail(t, f.call(t, "POST", "/v2/deployments", body), http.StatusBadRequest, "source_config.integration_id: integration ID "+c.id+" not found.")
	}
	if f.hub.Installed(77) {
		t.Error("the App is still installed at GitHub")
	}
	for range 10 {
		id := f.credential(t, "git.test").id("id")
		body := with(fromGit("racing"), "source_config.integration_id", id)
		var created, deleted response
		var both sync.WaitGroup
		both.Go(func() { created = f.call(t, "POST", "/v2/deployments", body) })
		both.Go(func() { deleted = f.call(t, "DELETE", "/v2/integrations/git/credentials/"+id, nil) })
		both.Wait()
		switch got := [2]int{created.StatusCode, deleted.StatusCode}; got {
		case [2]int{http.StatusCreated, http.StatusConflict}:
			wantStatus(t, f.call(t, "DELETE", "/v2/deployments/"+created.id("id"), nil), http.StatusNoContent)
		case [2]int{http.StatusBadRequest, http.StatusNoContent}:
		default:
			t.Errorf("the deployment got %d, the deletion %d", got[0], got[1])
		}
	}
}

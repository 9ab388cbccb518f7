//go:build agents

package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/test/check"
)

// guarded is a deployment whose repository contains its own authentication.
type guarded struct{ *deployment }

// as calls the deployment with the credentials of the repository, without those of the
// platform. The response must have one of the statuses.
func (g guarded) as(t *testing.T, user, method, path string, body, out any, statuses ...int) response {
	t.Helper()
	headers := []string{"X-Api-Key", "", "X-Tenant-Id", ""}
	if user != "" {
		headers = append(headers, "Authorization", "Bearer "+user)
	}
	return g.with(t, headers, method, path, body, out, statuses...)
}

// with calls the deployment with headers.
func (g guarded) with(t *testing.T, headers []string, method, path string, body, out any, statuses ...int) response {
	t.Helper()
	got, err := g.server.do(t.Context(), method, g.url+path, body, headers...)
	check.Must(t, err)
	if !slices.Contains(statuses, got.status) {
		t.Fatalf("%s %s with %q: status %d, want %d: %s", method, path, headers, got.status, statuses, got.body)
	}
	if strings.Contains(string(got.body), "hunter2") {
		t.Errorf("%s %s tells the repository's secrets: %s", method, path, got.body)
	}
	if out != nil {
		if err := json.Unmarshal(got.body, out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, got.body)
		}
	}
	return got
}

// guardedThread is a thread as a client reads it.
type guardedThread struct {
	ID       string `json:"thread_id"`
	Metadata struct {
		Owner string `json:"owner"`
	} `json:"metadata"`
}

// TestAgentsOwnAuthentication deploys repositories whose own handlers authenticate and
// authorize every request, in both languages, and attacks them.
func TestAgentsOwnAuthentication(t *testing.T) {
	s := newAgentServer(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			repo := newRepository(t)
			check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "application", "guarded", language))))
			repo.commit(t)
			g := guarded{s.deployExample(t, language, repo)}
			g.lets(t)
			mine := g.keepsApart(t)
			g.knowsUsers(t)
			g.refusesStrangers(t, mine)
			g.refusesWhenHandlersFail(t)
			g.remove(t)
		})
	}
}

// lets checks that a user gets a run, and that its graph sees the user and no forged one.
func (g guarded) lets(t *testing.T) {
	var state struct{ User, Permissions, Owners []string }
	forged := map[string]any{}
	for name, value := range map[string]any{"user": map[string]any{"identity": "eve", "role": "admin"}, "user_id": "eve", "permissions": []string{"all"}} {
		forged[publicname.Public("framework_auth_")+name] = value
	}
	asked := map[string]any{"assistant_id": "agent", "input": map[string]any{"permissions": []string{}}, "config": map[string]any{"configurable": forged}}
	for _, user := range []string{"ada", "bob"} {
		var made guardedThread
		g.as(t, user, "POST", "/threads", map[string]any{"metadata": map[string]any{"owner": "eve"}}, &made, http.StatusOK)
		if made.Metadata.Owner != user {
			t.Errorf("the thread of %s has %v", user, made.Metadata)
		}
		// The graph lists the user's threads. In a stack a list may be behind.
		eventually(t, "the thread is listed", func() (bool, any) {
			var listed []guardedThread
			g.as(t, user, "POST", "/threads/search", map[string]any{"limit": 100}, &listed, http.StatusOK)
			return len(listed) > 0, listed
		})
		answer := g.as(t, user, "POST", "/threads/"+made.ID+"/runs/wait", asked, &state, http.StatusOK)
		if strings.Join(state.User, " ") != user+" author "+user || !slices.Equal(state.Permissions, []string{"runs"}) || !slices.Equal(state.Owners, []string{user}) {
			t.Errorf("the graph of %s sees %s", user, answer.body)
		}
	}
	var me struct {
		User   string
		Scopes []string
	}
	if g.as(t, "ada", "GET", "/me", nil, &me, http.StatusOK); me.User != "ada" || !slices.Equal(me.Scopes, []string{"runs"}) {
		t.Errorf("the own route sees %+v", me)
	}
}

// keepsApart checks that no route shows or changes another user's things. It returns a thread
// of ada.
func (g guarded) keepsApart(t *testing.T) string {
	var mine guardedThread
	var run struct {
		ID string `json:"run_id"`
	}
	g.as(t, "ada", "POST", "/threads", map[string]any{"metadata": map[string]any{"readers": []string{"ada", "bob"}}}, &mine, http.StatusOK)
	asked := map[string]any{"assistant_id": "agent", "input": map[string]any{}}
	thread := "/threads/" + mine.ID
	g.as(t, "ada", "POST", thread+"/runs", asked, &run, http.StatusOK)
	g.as(t, "ada", "GET", thread+"/runs/"+run.ID+"/join", nil, nil, http.StatusOK)
	ofRun, values := thread+"/runs/"+run.ID, map[string]any{"values": map[string]any{"owners": []string{"bob"}}}
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"GET", thread, nil}, {"PATCH", thread, map[string]any{"metadata": map[string]any{"owner": "bob"}}}, {"DELETE", thread, nil}, {"POST", thread + "/copy", nil},
		{"GET", thread + "/state", nil}, {"POST", thread + "/state", values}, {"GET", thread + "/history", nil}, {"POST", thread + "/history", map[string]any{}},
		{"GET", thread + "/runs", nil}, {"POST", thread + "/runs", asked}, {"POST", thread + "/runs/wait", asked}, {"POST", thread + "/runs/stream", asked},
		{"GET", thread + "/stream", nil}, {"POST", thread + "/stream/events", map[string]any{"channels": []string{"values"}}},
		{"POST", thread + "/commands", map[string]any{"id": 1, "method": "run.start", "params": asked}},
		{"GET", ofRun, nil}, {"GET", ofRun + "/join", nil}, {"GET", ofRun + "/stream", nil}, {"POST", ofRun + "/cancel", nil}, {"DELETE", ofRun, nil},
		{"POST", thread + "/runs/crons", map[string]any{"assistant_id": "agent", "schedule": "0 0 1 1 *"}},
	} {
		g.as(t, "bob", c.method, c.path, c.body, nil, http.StatusForbidden, http.StatusNotFound)
	}
	for user, want := range map[string]int{"ada": 2, "bob": 1} {
		var found []guardedThread
		g.as(t, user, "POST", "/threads/search", map[string]any{"limit": 100}, &found, http.StatusOK)
		if len(found) != want || slices.ContainsFunc(found, func(f guardedThread) bool { return f.Metadata.Owner != user }) {
			t.Errorf("%s finds %+v", user, found)
		}
	}
	var shared []guardedThread
	g.as(t, "bob", "POST", "/threads/search", map[string]any{"metadata": map[string]any{"readers": []string{"ada", "bob"}}}, &shared, http.StatusOK)
	if len(shared) != 1 || shared[0].ID != mine.ID {
		t.Errorf("by $contains bob finds %+v", shared)
	}
	item := map[string]any{"namespace": []string{"notes"}, "key": "k", "value": map[string]any{"by": "ada"}}
	g.as(t, "ada", "PUT", "/store/items", item, nil, http.StatusNoContent)
	g.as(t, "ada", "GET", "/store/items?namespace=notes&key=k", nil, nil, http.StatusOK)
	for _, namespace := range []string{"notes", "ada.notes"} {
		if got := g.as(t, "bob", "GET", "/store/items?namespace="+namespace+"&key=k", nil, nil, http.StatusOK); strings.TrimSpace(string(got.body)) != "null" {
			t.Errorf("bob reads %s", got.body)
		}
	}
	var found []struct {
		ID string `json:"assistant_id"`
	}
	g.as(t, "ada", "POST", "/assistants", map[string]any{"graph_id": "agent", "name": "mine"}, nil, http.StatusOK)
	if g.as(t, "bob", "POST", "/assistants/search", map[string]any{"limit": 100}, &found, http.StatusOK); len(found) != 0 {
		t.Errorf("bob finds the assistants %+v", found)
	}
	if g.as(t, "ada", "POST", "/assistants/search", map[string]any{"limit": 100}, &found, http.StatusOK); len(found) != 1 {
		t.Fatalf("ada finds the assistants %+v", found)
	}
	g.as(t, "ada", "DELETE", "/assistants/"+found[0].ID, nil, nil, http.StatusForbidden)
	return mine.ID
}

// knowsUsers checks that the graph sees the user in all other ways to make a run: without a
// thread, in a stream, by a command, as a tool, and by a timer.
func (g guarded) knowsUsers(t *testing.T) {
	t.Helper()
	asked := map[string]any{"assistant_id": "agent", "input": map[string]any{}}
	newThread := func() string {
		var made guardedThread
		g.as(t, "ada", "POST", "/threads", map[string]any{}, &made, http.StatusOK)
		return "/threads/" + made.ID
	}
	// A timer fires within a minute, while the other runs are made.
	timed, commanded := newThread(), newThread()
	every := map[string]any{"assistant_id": "agent", "input": map[string]any{}, "schedule": "* * * * *"}
	var cron struct {
		ID string `json:"cron_id"`
	}
	g.as(t, "ada", "POST", timed+"/runs/crons", every, &cron, http.StatusOK)
	command := map[string]any{"id": 1, "method": "run.start", "params": asked}
	call := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "mine", "arguments": map[string]any{}}}
	g.as(t, "ada", "POST", commanded+"/commands", command, nil, http.StatusOK)
	for path, body := range map[string]any{"/runs/wait": asked, "/runs/stream": asked, newThread() + "/runs/stream": asked, "/mcp": call} {
		if got := g.as(t, "ada", "POST", path, body, nil, http.StatusOK); !strings.Contains(string(got.body), "author") || strings.Contains(string(got.body), "bob") {
			t.Errorf("POST %s: the graph does not see its user: %s", path, got.body)
		}
	}
	for what, thread := range map[string]string{"a command": commanded, "a timer": timed} {
		var state struct {
			Values struct{ User, Owners []string }
		}
		eventually(t, what+" makes a run", func() (bool, any) {
			g.as(t, "ada", "GET", thread+"/state", nil, &state, http.StatusOK)
			return len(state.Values.User) > 0, state
		})
		if strings.Join(state.Values.User, " ") != "ada author ada" || !slices.Equal(state.Values.Owners, []string{"ada"}) {
			t.Errorf("%s: the graph sees %+v", what, state.Values)
		}
	}
	g.as(t, "bob", "DELETE", "/runs/crons/"+cron.ID, nil, nil, http.StatusNotFound)
	g.as(t, "ada", "DELETE", "/runs/crons/"+cron.ID, nil, nil, http.StatusOK, http.StatusNoContent)
}

// refusesStrangers sends forged headers and the platform's own credentials.
func (g guarded) refusesStrangers(t *testing.T, thread string) {
	caller := base64.URLEncoding.EncodeToString([]byte(`{"identity": "ada", "permissions": ["runs"], "role": "author"}`))
	paths := []string{"/threads/" + thread, "/threads/" + thread + "/state", "/threads/" + thread + "/runs", "/threads/" + thread + "/stream", "/info", "/me"}
	for _, path := range paths {
		for _, headers := range [][]string{
			{"X-Api-Key", ""}, {"X-Api-Key", g.server.APIKey}, {"X-Api-Key", g.server.APIKey, "X-Auth-Scheme", "platform"}, {"X-Api-Key", "", "X-Slipway-Caller", caller},
			{"X-Api-Key", "", "X-Slipway-User", "ada", "X-Slipway-Authorization", "Bearer ada"}, {"X-Api-Key", "", "Authorization", "Bearer eve"},
			{"X-Api-Key", g.server.APIKey, "Authorization", "Bearer " + g.server.APIKey},
		} {
			g.with(t, headers, "GET", path, nil, nil, http.StatusUnauthorized)
		}
		g.as(t, "late", "GET", path, nil, nil, http.StatusForbidden)
	}
	var found guardedThread
	bob := []string{"X-Api-Key", "", "Authorization", "Bearer bob", "X-Slipway-Caller", caller}
	if g.with(t, bob, "POST", "/threads", map[string]any{}, &found, http.StatusOK); found.Metadata.Owner != "bob" {
		t.Errorf("with a forged caller the thread has %v", found.Metadata)
	}
}

// refusesWhenHandlersFail checks that handlers that give no answer let no user in.
func (g guarded) refusesWhenHandlersFail(t *testing.T) {
	for _, user := range []string{"throws", "nonsense", "hangs"} {
		g.as(t, user, "GET", "/info", nil, nil, http.StatusServiceUnavailable)
	}
	g.as(t, "ada", "POST", "/runs/crons/search", map[string]any{}, nil, http.StatusServiceUnavailable)
	g.as(t, "ada", "GET", "/info", nil, nil, http.StatusOK)
}

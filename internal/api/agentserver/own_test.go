package agentserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/test/check"
)

// guarded are the operations that the repository's own authentication decides about.
func guarded() map[string]operation {
	some := maps.Clone(operations)
	maps.DeleteFunc(some, func(name string, o operation) bool { return o.public || slices.Contains(ofPlatform, name) })
	return some
}

// statusOf sends an operation's request as a user and returns only the status, because some
// answers do not end.
func (o operation) statusOf(t *testing.T, f *fixture, method, path, user string) int {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	answer := f.open(ctx, t, method, f.path(strings.Replace(f.fill(t, path), "{checkpoint_id}", unknownID, 1)+f.fill(t, o.query)), o.body, map[string]string{auth.HeaderKey: user})
	answer.Body.Close()
	return answer.StatusCode
}

// TestTheOwnerMayDoWhatTheContractOffers calls every operation as the user that owns all
// objects, and checks that the repository has decided about each operation.
func TestTheOwnerMayDoWhatTheContractOffers(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	run := f.finish(t, f.newThread(t), hi())
	for name, o := range guarded() {
		method, path := request(name, run)
		if o.gone && strings.Contains(name, "{thread_id}") {
			_, path = request(name, f.newThread(t)+"/runs/"+unknownID)
		}
		if strings.HasPrefix(name, "DELETE") && strings.Contains(name, "{run_id}") {
			_, path = request(name, f.finish(t, f.newThread(t), hi()))
		}
		path = f.fill(t, path)
		g.answer("")
		if o.exempt {
			if status := o.statusOf(t, f, method, path, "ada"); status >= 300 && status != o.good() {
				t.Errorf("%s: %d", name, status)
			}
		} else {
			wantStatus(t, o.send(t, f, method, f.path(path), "ada"), o.good())
		}
		if asked := g.answer(""); len(asked) == 0 {
			t.Errorf("%s: nobody was asked", name)
		}
	}
}

// TestAttackNobodyIsLetInWhoIsNotMeant sends every operation with credentials that the
// repository's own authentication does not accept, and with handlers that fail.
func TestAttackNobodyIsLetInWhoIsNotMeant(t *testing.T) {
	t.Parallel()
	f, g, platformKey := setUpGuarded(t)
	run := f.finish(t, f.newThread(t), hi())
	for name, o := range guarded() {
		method, path := request(name, run)
		path = f.fill(t, path)
		for user, status := range map[string]int{
			"": http.StatusUnauthorized, "nobody": http.StatusUnauthorized, platformKey: http.StatusUnauthorized, f.stranger: http.StatusUnauthorized, "late": http.StatusForbidden,
		} {
			if got := o.statusOf(t, f, method, path, user); got != status {
				t.Errorf("%s as %q: %d, want %d", name, user, got, status)
			}
		}
	}
	for user := range answersOf {
		if got := f.as(t, user, "GET", strings.Split(run, "/runs/")[0], nil); got.StatusCode < 400 || strings.Contains(string(got.text), "owner") {
			t.Errorf("as %q: %d %s", user, got.StatusCode, got.text)
		}
	}
	thrown := f.as(t, "throws", "POST", "/threads/search", object{})
	if thrown.StatusCode != http.StatusServiceUnavailable || strings.Contains(string(thrown.text), "secret") {
		t.Errorf("a handler that throws: %d %s", thrown.StatusCode, thrown.text)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.seen) == 0 {
		t.Error("the handler was not asked")
	}
	for _, headers := range g.seen {
		if strings.Contains(fmt.Sprint(headers), apikey.Prefix) {
			t.Fatalf("the handler has seen a key of the platform: %v", headers)
		}
	}
}

// TestAttackRulingsThatAllowNothing calls every operation with an invalid ruling, and with a
// ruling that denies.
func TestAttackRulingsThatAllowNothing(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	run := f.finish(t, f.newThread(t), hi())
	for name, o := range guarded() {
		method, path := request(name, run)
		path = strings.Replace(f.fill(t, path), "{checkpoint_id}", unknownID, 1)
		for ruling, status := range map[string]int{
			`{"allowed": false}`: http.StatusForbidden, `{"allowed": false, "status": 404, "detail": "No."}`: http.StatusNotFound,
			`{}`: http.StatusForbidden, `{"allowed": true}`: http.StatusInternalServerError,
			`{"allowed": true, "value": {}, "filter": {"owner": {"$ne": "ada"}}}`:      http.StatusInternalServerError,
			`{"allowed": true, "value": {}, "filter": {"$or": [{"owner": "ada"}]}}`:    http.StatusInternalServerError,
			`{"allowed": true, "value": {}, "filter": {"owner": null}}`:                http.StatusInternalServerError,
			`{"allowed": true, "value": {}, "filter": {"owner": {"$eq": {}}}}`:         http.StatusInternalServerError,
			`{"allowed": true, "value": {}, "filter": {"a": {"$eq": 1, "$gt": 0}}}`:    http.StatusInternalServerError,
			`{"allowed": true, "value": {}, "filter": {"a": {"$contains": {"b": 1}}}}`: http.StatusInternalServerError,
			`{"allowed": true, "value": {}, "filter": true}`:                           http.StatusInternalServerError,
			`{"allowed": true, "value": [], "filter": {}}`:                             http.StatusInternalServerError,
		} {
			g.answer(ruling)
			answer := f.as(t, "ada", method, path+o.query, o.body)
			if answer.StatusCode != status || strings.Contains(string(answer.text), "allowed") {
				t.Errorf("%s with %s: %d %s, want %d", name, ruling, answer.StatusCode, answer.text, status)
			}
		}
		g.answer("")
	}
	g.answer(`[]`)
	wantStatus(t, f.as(t, "ada", "POST", "/threads", object{}), http.StatusServiceUnavailable)
}

// TestAttackAnotherUsersThings calls every operation as a user, with objects of another user.
func TestAttackAnotherUsersThings(t *testing.T) {
	t.Parallel()
	f, _, _ := setUpGuarded(t)
	thread := f.newThread(t)
	run := f.finish(t, thread, hi())
	before := f.call(t, "GET", thread+"/history", nil)
	for name, o := range guarded() {
		method, path := request(name, run)
		named := strings.Contains(name, "_id}")
		path = f.fill(t, path)
		if named {
			if got := o.statusOf(t, f, method, path, "bob"); got != http.StatusNotFound {
				t.Errorf("%s: %d", name, got)
			}
			continue
		}
		answer := f.as(t, "bob", method, path+o.query, o.body)
		if strings.Contains(string(answer.text), `"ada`) || strings.Contains(string(answer.text), strings.TrimPrefix(thread, "/threads/")) || answer.StatusCode >= 500 {
			t.Errorf("%s: %d %s", name, answer.StatusCode, answer.text)
		}
	}
	after := f.call(t, "GET", thread+"/history", nil)
	if string(before.text) != string(after.text) {
		t.Errorf("the thread was %s\nand is %s", before.text, after.text)
	}
}

// TestAttackVisitorsWithoutAName lets in a user whose identity is empty, as the framework's servers
// do. The filters of the repository hold for this user as for any other.
func TestAttackVisitorsWithoutAName(t *testing.T) {
	t.Parallel()
	f, _, _ := setUpGuarded(t)
	threads := map[string]string{"ada": f.newThread(t), "visitor": "/threads/" + f.as(t, "visitor", "POST", "/threads", object{}).string("thread_id")}
	for user := range threads {
		for owner, thread := range threads {
			want := http.StatusNotFound
			if user == owner {
				want = http.StatusOK
			}
			if got := f.as(t, user, "GET", thread, nil); got.StatusCode != want {
				t.Errorf("%s reads the thread of %s: %d %s, want %d", user, owner, got.StatusCode, got.text, want)
			}
		}
	}
}

// TestAttackAnotherUsersThingsInBodies names objects of another user in bodies.
func TestAttackAnotherUsersThingsInBodies(t *testing.T) {
	t.Parallel()
	f, _, _ := setUpGuarded(t)
	thread := f.newThread(t)
	threadID := strings.TrimPrefix(thread, "/threads/")
	run := f.start(t, thread, script(graphtest.Step{Hold: true}))
	runID := run[strings.LastIndexByte(run, '/')+1:]
	made := f.call(t, "POST", "/assistants", object{"graph_id": "agent", "config": object{"configurable": object{"secret": "ada's"}}}).string("assistant_id")
	for name, c := range map[string]struct {
		path   string
		body   any
		status int
	}{
		"a thread that is there":     {"/threads", object{"thread_id": threadID, "if_exists": "do_nothing"}, http.StatusConflict},
		"an assistant that is there": {"/assistants", object{"assistant_id": made, "graph_id": "agent", "if_exists": "do_nothing"}, http.StatusConflict},
		"a run that makes a thread":  {thread + "/runs", with(hi(), "if_not_exists", "create"), http.StatusNotFound},
		"a command to run":           {thread + "/commands", object{"id": 1, "method": "run.start", "params": hi()}, http.StatusNotFound},
		"a command to answer":        {thread + "/commands", object{"id": 1, "method": "input.respond", "params": object{"interrupt_id": "x"}}, http.StatusNotFound},
		"an unknown command":         {thread + "/commands", object{"id": 1, "method": "no.such", "params": object{}}, http.StatusNotFound},
		"a cancel of runs":           {"/runs/cancel", object{"thread_id": threadID, "run_ids": []any{runID}}, http.StatusNotFound},
		"a cancel of all":            {"/runs/cancel", object{"status": "all"}, http.StatusNotFound},
		"a search by id":             {"/threads/search", object{"ids": []any{threadID}}, http.StatusOK},
		"a search by owner":          {"/threads/search", object{"metadata": object{"owner": "ada"}}, http.StatusOK},
		"a count":                    {"/threads/count", object{}, http.StatusOK},
		"a run of an assistant":      {"/runs", with(hi(), "assistant_id", made), http.StatusNotFound},
		"a batch":                    {"/runs/batch", []any{hi(), with(hi(), "assistant_id", made)}, http.StatusNotFound},
		"a cron of an assistant":     {"/runs/crons", with(yearly(), "assistant_id", made), http.StatusNotFound},
		"a cron on a thread":         {thread + "/runs/crons", yearly(), http.StatusNotFound},
		"a prune":                    {"/threads/prune", object{"thread_ids": []any{threadID}}, http.StatusOK},
	} {
		answer := f.as(t, "bob", "POST", c.path, c.body)
		if answer.StatusCode != c.status || strings.Contains(string(answer.text), `"ada`) || (c.status == http.StatusOK && strings.Contains(string(answer.text), threadID)) {
			t.Errorf("%s: %d %s, want %d", name, answer.StatusCode, answer.text, c.status)
		}
		if name == "a count" && string(answer.text) != "0\n" && string(answer.text) != "0" {
			t.Errorf("%s: %s", name, answer.text)
		}
	}
	if status := f.call(t, "GET", run, nil).string("status"); status != "running" && status != "pending" {
		t.Errorf("the run is %s", status)
	}
	wantStatus(t, f.call(t, "POST", "/runs/cancel", object{"status": "all"}), http.StatusNoContent)
}

// TestAttackAStreamOfAThreadThatIsYetToCome opens the events of a thread that another user makes
// afterwards.
func TestAttackAStreamOfAThreadThatIsYetToCome(t *testing.T) {
	t.Parallel()
	f, _, _ := setUpGuarded(t)
	body := object{"channels": []string{"lifecycle", "values", "messages"}}
	stream := f.open(t.Context(), t, "POST", f.path("/threads/"+unknownID+"/stream/events"), body, map[string]string{auth.HeaderKey: "bob", "Content-Type": "application/json"})
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("the stream is answered with %d", stream.StatusCode)
	}
	wantStatus(t, f.call(t, "POST", "/threads", object{"thread_id": unknownID}), http.StatusOK)
	f.finish(t, "/threads/"+unknownID, hi())
	ended := make(chan string)
	go func() {
		text := make([]byte, 64<<10)
		all := ""
		for {
			n, err := stream.Body.Read(text)
			all += string(text[:n])
			if err != nil || strings.Contains(all, "data:") {
				ended <- all
				return
			}
		}
	}()
	select {
	case text := <-ended:
		if strings.Contains(text, "Hi") || strings.Contains(text, "lifecycle") {
			t.Errorf("the stranger has read %s", text)
		}
	case <-time.After(time.Minute):
		t.Error("the stream does not end")
	}
}

// TestAttackRepeatedRequestsOfAnotherUser sends the Idempotency-Key of another user.
func TestAttackRepeatedRequestsOfAnotherUser(t *testing.T) {
	t.Parallel()
	f, _, _ := setUpGuarded(t)
	send := func(user string) response {
		return f.send(t, "POST", f.path("/runs"), hi(), map[string]string{auth.HeaderKey: user, "Idempotency-Key": "k"})
	}
	ada, again, bob := send("ada"), send("ada"), send("bob")
	wantStatus(t, bob, http.StatusOK)
	if ada.string("run_id") != again.string("run_id") || bob.string("run_id") == ada.string("run_id") {
		t.Errorf("the runs are %s, %s and %s", ada.string("run_id"), again.string("run_id"), bob.string("run_id"))
	}
}

// TestAttackForgedHeaders sends headers in which a user claims an identity.
func TestAttackForgedHeaders(t *testing.T) {
	t.Parallel()
	f, _, platformKey := setUpGuarded(t)
	thread := f.newThread(t)
	ada := "eyJpZGVudGl0eSI6ImFkYSJ9" // {"identity":"ada"}
	for _, headers := range []map[string]string{
		{auth.HeaderKey: "bob", "X-Slipway-Caller": ada, auth.HeaderTenant: f.deployment.Workspace},
		{auth.HeaderKey: "bob", auth.HeaderBearer: "Bearer " + platformKey},
		{auth.HeaderKey: "bob", "Authorization": "Bearer ada", "X-Auth-Scheme": "platform"},
	} {
		wantStatus(t, f.send(t, "GET", f.path(thread), nil, headers), http.StatusNotFound)
	}
	for _, headers := range []map[string]string{
		{auth.HeaderKey: platformKey, "X-Slipway-Caller": ada, auth.HeaderTenant: f.deployment.Workspace}, {auth.HeaderBearer: "Bearer " + platformKey, "X-Slipway-Caller": ada},
		{auth.HeaderKey: platformKey, "X-Auth-Scheme": "platform"},
	} {
		wantStatus(t, f.send(t, "GET", f.path(thread), nil, headers), http.StatusUnauthorized)
	}
	wantStatus(t, f.send(t, "GET", f.path("/metrics"), nil, map[string]string{auth.HeaderKey: "ada"}), http.StatusUnauthorized)
	wantStatus(t, f.send(t, "GET", f.path("/metrics"), nil, map[string]string{auth.HeaderKey: platformKey}), http.StatusOK)
	wantStatus(t, f.send(t, "GET", f.path("/info"), nil, map[string]string{auth.HeaderKey: "ada"}), http.StatusOK)
}

// TestAttackAnAgentThatIsDownLetsNobodyIn.
func TestAttackAnAgentThatIsDownLetsNobodyIn(t *testing.T) {
	t.Parallel()
	f := setUpAt(t, compute.Endpoint{URL: "http://127.0.0.1:1", Token: graphtest.Token}, 0)
	f.auth = "./auth.py:auth"
	f.deploy(t, "agent")
	for _, user := range []string{"ada", f.key, ""} {
		wantStatus(t, f.as(t, user, "POST", "/threads/search", object{}), http.StatusServiceUnavailable)
	}
}

// TestAttackAHandlerThatHangsLetsNobodyIn checks that the server does not wait for the handler
// for ever.
func TestAttackAHandlerThatHangsLetsNobodyIn(t *testing.T) {
	t.Parallel()
	f, _, _ := setUpGuarded(t)
	wantStatus(t, f.as(t, "hangs", "POST", "/threads/search", object{}), http.StatusServiceUnavailable)
	wantStatus(t, f.call(t, "POST", "/threads/search", object{}), http.StatusOK)
}

// TestFiltersOfTheRepositorysOwnAuthentication checks each kind of filter.
func TestFiltersOfTheRepositorysOwnAuthentication(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	g.answer(`{"allowed": true, "value": {"metadata": {"owner": "ada", "teams": ["red", "blue"], "level": 3}}}`)
	wantStatus(t, f.call(t, "POST", "/threads", object{}), http.StatusOK)
	for filter, want := range map[string]string{
		`{}`: "1", `{"owner": "ada"}`: "1", `{"owner": {"$eq": "ada"}}`: "1", `{"owner": "bob"}`: "0", `{"other": "ada"}`: "0", `{"level": 3}`: "1", `{"level": "3"}`: "0",
		`{"teams": {"$contains": "red"}}`: "1", `{"teams": {"$contains": ["blue", "red"]}}`: "1", `{"teams": {"$contains": ["red", "green"]}}`: "0", `{"teams": "red"}`: "0",
		`{"owner": {"$contains": "ada"}}`: "0", `{"owner": "ada", "level": 4}`: "0",
	} {
		g.answer(`{"allowed": true, "value": {}, "filter": ` + filter + `}`)
		if got := f.call(t, "POST", "/threads/count", object{}); strings.TrimSpace(string(got.text)) != want {
			t.Errorf("%s: %d %s, want %s", filter, got.StatusCode, got.text, want)
		}
	}
}

// TestTheNameOfAGraphHidesNoMetadata checks that the metadata of a handler count for an assistant
// whatever the name of its graph is, and do not count for operations that declare that they take
// no metadata.
func TestTheNameOfAGraphHidesNoMetadata(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	g.answer(`{"allowed": true, "value": {"metadata": "no object", "version": 7}}`)
	for name, want := range map[string]int{"agent": 500, "latest": 500, "state": 500, "cancel": 500, "weather/latest": 404} {
		method, body := "PATCH", object{"name": "n"}
		if strings.Contains(name, "/") {
			method, body = "POST", object{"version": 7}
		}
		wantStatus(t, f.call(t, method, "/assistants/"+name, body), want)
	}
}

// TestTheStoreOfAUser checks that handlers can change the namespace. A filter, which the store
// could not apply, lets no user in.
func TestTheStoreOfAUser(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	f.remember(t, "k", object{"of": "ada"}, "notes")
	for user, want := range map[string]string{"ada": `"of":"ada"`, "bob": "null"} {
		if got := f.as(t, user, "GET", "/store/items?key=k&namespace=notes", nil); !strings.Contains(string(got.text), want) {
			t.Errorf("%s reads %s", user, got.text)
		}
		for path, body := range map[string]any{"/store/items/search": object{"namespace_prefix": []string{}}, "/store/namespaces": object{}} {
			if got := f.as(t, user, "POST", path, body); strings.Contains(string(got.text), `"ada"`) != (user == "ada") {
				t.Errorf("%s at %s: %s", user, path, got.text)
			}
		}
	}
	g.answer(`{"allowed": true, "value": {"namespace": ["x"]}, "filter": {"owner": "ada"}}`)
	wantStatus(t, f.call(t, "POST", "/store/items/search", object{"namespace_prefix": []string{}}), http.StatusForbidden)
	g.answer(`{"allowed": true, "value": {"namespace": ["a.b"], "key": "k"}}`)
	wantStatus(t, f.call(t, "GET", "/store/items?key=k&namespace=notes", nil), http.StatusBadRequest)
}

// TestAttackAnAgentActsForItsCallerOnly checks that a graph's requests to its own server have
// the rights of the run's user. The graph's own store belongs to the agent.
func TestAttackAnAgentActsForItsCallerOnly(t *testing.T) {
	t.Parallel()
	f, _, _, token := setUpGuardedAgent(t)
	thread := f.newThread(t)
	for caller, status := range map[string]int{"ada": http.StatusOK, "bob": http.StatusNotFound} {
		user := base64.URLEncoding.EncodeToString(marshal(object{"identity": caller}))
		headers := map[string]string{auth.HeaderKey: token, auth.HeaderTenant: f.deployment.Workspace, "X-Slipway-Caller": user}
		wantStatus(t, f.send(t, "GET", f.path(thread), nil, headers), status)
	}
	f.remember(t, "k", object{"of": "ada"}, "notes")
	agent := map[string]string{auth.HeaderBearer: "Bearer " + token, auth.HeaderTenant: f.deployment.Workspace}
	if got := f.send(t, "GET", f.path("/store/items?key=k&namespace=ada.notes"), nil, agent); !strings.Contains(string(got.text), `"of":"ada"`) {
		t.Errorf("the agent's own store has %s", got.text)
	}
}

// TestAttackMembersOfCommandsSpeltOtherwise sends a command whose metadata has a spelling that
// a handler does not look at.
func TestAttackMembersOfCommandsSpeltOtherwise(t *testing.T) {
	t.Parallel()
	f, _, _ := setUpGuarded(t)
	params := with(hi(), "metadata", object{"owner": "bob", "kept": true})
	params["METADATA"], params["zMetadata"] = object{"owner": "bob"}, 1
	made := f.call(t, "POST", "/threads/"+unknownID+"/commands", object{"id": 1, "method": "run.start", "params": params})
	wantStatus(t, made, http.StatusOK)
	wantStatus(t, f.as(t, "bob", "GET", "/threads/"+unknownID, nil), http.StatusNotFound)
	found := f.call(t, "GET", "/threads/"+unknownID+"/runs/"+made.string("result", "run_id"), nil)
	if found.string("metadata", "owner") != "ada" || found.member("metadata", "kept") != true {
		t.Errorf("the run's metadata is %v", found.member("metadata"))
	}
}

// TestUsersReachTheGraph checks that the agent gets the user that its own authentication has
// let in.
func TestUsersReachTheGraph(t *testing.T) {
	t.Parallel()
	g := &guardian{}
	var agent heard
	told := graphtest.NewAgent(agent.answer, graphtest.Token)
	told.Rule = g.rule
	server := httptest.NewServer(told)
	t.Cleanup(server.Close)
	f := setUpAt(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0)
	f.auth = "./auth.py:auth"
	f.deploy(t, "agent")
	f.key = "ada"
	f.finish(t, f.newThread(t), plan("one", says("model", "A")))
	var user struct{ Identity string }
	check.Must(t, json.Unmarshal(agent.invocation().User, &user))
	if user.Identity != "ada" {
		t.Errorf("the user is %s", agent.invocation().User)
	}
}

// TestAttackMembersOfBodiesSpeltOtherwise sends members in spellings that Go's decoder of JSON
// accepts as the members themselves, so that a handler would look at other values.
func TestAttackMembersOfBodiesSpeltOtherwise(t *testing.T) {
	t.Parallel()
	f, _, _ := setUpGuarded(t)
	f.remember(t, "k", object{"of": "ada"}, "notes")
	run := f.start(t, f.newThread(t), script(graphtest.Step{Hold: true}))
	threadID, runID := strings.Split(run, "/")[2], run[strings.LastIndexByte(run, '/')+1:]
	for _, name := range []string{"Namespace_prefix", "name\u017fpace_prefix"} {
		found := f.as(t, "bob", "POST", "/store/items/search", object{"namespace_prefix": []string{}, name: []string{"ada"}})
		if strings.Contains(string(found.text), `"of":"ada"`) {
			t.Errorf("%s: %s", name, found.text)
		}
	}
	for _, name := range []string{"Namespace", "name\u017fpace"} {
		f.as(t, "bob", "PUT", "/store/items", object{"namespace": []string{"notes"}, name: []string{"ada", "notes"}, "key": "k", "value": object{"of": "bob"}})
		f.as(t, "bob", "DELETE", "/store/items", object{"namespace": []string{"notes"}, name: []string{"ada", "notes"}, "key": "k"})
		if got := f.call(t, "GET", "/store/items?key=k&namespace=notes", nil); !strings.Contains(string(got.text), `"of":"ada"`) {
			t.Errorf("%s: ada's item is %s", name, got.text)
		}
	}
	for _, name := range []string{"Thread_id", "THREAD_ID"} {
		f.as(t, "bob", "POST", "/runs/cancel", object{name: threadID, "run_ids": []any{runID}})
		if status := f.call(t, "GET", run, nil).string("status"); status != "running" && status != "pending" {
			t.Errorf("%s: ada's run is %s", name, status)
		}
	}
	made := f.as(t, "bob", "POST", "/threads", object{"metadata": object{}, "Metadata": object{"owner": "ada"}})
	if strings.Contains(string(made.text), `"ada"`) {
		t.Errorf("bob made %s", made.text)
	}
}

package controlplane_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

const notAnyAdmin = "This is the workspace's last admin. Make another one first, a member or an API key that does not expire."

func TestAUserIsAMemberOnce(t *testing.T) {
	t.Parallel()
	rule(t, membersOnce)
	f := setUp(t)
	add := func(user string, issuer any) response {
		return f.call(t, "POST", memberPath, object{"user": user, "issuer": issuer, "role": "viewer"})
	}
	for user, issuer := range map[string]any{"Ada@example.test": nil, "7": "https://people.test"} {
		wantStatus(t, add(user, issuer), http.StatusCreated)
	}
	wantDetail(t, add("aDA@Example.test", nil), http.StatusConflict, "ada@example.test is a member of the workspace already.")
	wantStatus(t, add("7", "https://others.test"), http.StatusCreated)
	wantStatus(t, add("7", "https://people.test"), http.StatusConflict)
	for user, issuer := range map[string]any{"8": nil, "bob@example.test": "https://people.test", "a@b@c": nil, " x": "https://people.test"} {
		wantError(t, add(user, issuer), http.StatusBadRequest)
	}
	var users []any
	list, _ := f.call(t, "GET", memberPath, nil).member("resources").([]any)
	for _, m := range list {
		users = append(users, m.(object)["user"], m.(object)["issuer"])
	}
	if diff := cmp.Diff([]any{"7", "https://others.test", "7", "https://people.test", "ada@example.test", nil}, users); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestsOfTheWrongShapeToTenancy(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const rules, keys = "POST /v2/workspaces/current/trust-rules", "POST /v2/api-keys"
	trust := tenancyBodies["/v2/workspaces/current/trust-rules"]
	for name, c := range map[string]struct {
		request string
		body    any
		want    problem
	}{
		"no user":          {"POST " + memberPath, object{"role": "admin"}, problem{"body.user", "missing"}},
		"an empty user":    {"POST " + memberPath, object{"user": "", "role": "admin"}, problem{"body.user", "string_too_short"}},
		"a long user":      {"POST " + memberPath, object{"user": strings.Repeat("x", 321), "role": "admin"}, problem{"body.user", "string_too_long"}},
		"no role":          {"POST " + memberPath, object{"user": "a"}, problem{"body.role", "missing"}},
		"an unknown role":  {"PATCH " + memberPath + "/" + unknownID, object{"role": "owner"}, problem{"body.role", "enum"}},
		"a bad name":       {"PATCH /v2/workspaces/current", object{"name": "a b"}, problem{"body.name", "string_pattern_mismatch"}},
		"an empty claim":   {rules, with(trust, "claims", object{"repository_id": ""}), problem{"body.claims.repository_id", "string_too_short"}},
		"a number claimed": {rules, with(trust, "claims", object{"repository_id": 7}), problem{"body.claims.repository_id", "string_type"}},
		"no issuer":        {rules, with(trust, "issuer", ""), problem{"body.issuer", "string_too_short"}},
		"a long key name":  {keys, object{"role": "admin", "name": strings.Repeat("x", 201)}, problem{"body.name", "string_too_long"}},
		"no time to live":  {keys, object{"role": "admin", "expires_in_seconds": 0}, problem{"body.expires_in_seconds", "greater_than_equal"}},
		"half a second":    {keys, object{"role": "admin", "expires_in_seconds": 0.5}, problem{"body.expires_in_seconds", "int_from_float"}},
		"no time":          {"GET /v2/audit-log?since=yesterday", nil, problem{"query.since", "datetime_parsing"}},
		"no outcome":       {"GET /v2/audit-log?outcome=maybe", nil, problem{"query.outcome", "enum"}},
		"no cursor":        {"GET /v2/audit-log?cursor=x", nil, problem{"query.cursor", "value_error"}},
		"a large page":     {"GET /v2/audit-log?limit=101", nil, problem{"query.limit", "less_than_equal"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(c.request, " ")
			if diff := cmp.Diff([]problem{c.want}, problems(t, f.call(t, method, path, c.body))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATrustRuleNamesARepository(t *testing.T) {
	t.Parallel()
	rule(t, trustByID)
	f := setUp(t)
	create := func(claims object) response {
		return f.call(t, "POST", "/v2/workspaces/current/trust-rules", object{"issuer": "https://ci.test", "role": "editor", "claims": claims})
	}
	wantError(t, create(object{"repository": "o/r", "ref": "refs/heads/main"}), http.StatusBadRequest)
	wantError(t, create(object{"repository_id": "o/r"}), http.StatusBadRequest)
	wantError(t, create(object{}), http.StatusBadRequest)
	wantStatus(t, create(object{"repository_id": "7"}), http.StatusCreated)
	if list, _ := f.call(t, "GET", "/v2/workspaces/current/trust-rules", nil).member("resources").([]any); len(list) != 1 {
		t.Errorf("got %v", list)
	}
}

// TestTheLastAdminOfAWorkspaceStays removes the first key, when there is no other admin, and
// then all admins at once.
func TestTheLastAdminOfAWorkspaceStays(t *testing.T) {
	t.Parallel()
	rule(t, lastAdmin)
	f := setUp(t)
	own := f.keyID(t, "admin")
	add := func(user string) string {
		m := f.call(t, "POST", memberPath, object{"user": user, "role": "admin"})
		wantStatus(t, m, http.StatusCreated)
		return m.id("id")
	}
	expiring := f.call(t, "POST", "/v2/api-keys", object{"role": "admin", "expires_in_seconds": 3600})
	wantStatus(t, expiring, http.StatusCreated)
	wantDetail(t, f.call(t, "DELETE", "/v2/api-keys/"+own, nil), http.StatusConflict, notAnyAdmin)
	ada, bob := add("ada@example.test"), add("bob@example.test")
	wantStatus(t, f.call(t, "PATCH", memberPath+"/"+bob, object{"role": "viewer"}), http.StatusOK)
	wantStatus(t, f.call(t, "PATCH", memberPath+"/"+bob, object{"role": "admin"}), http.StatusOK)
	// The expiring key may send the request, but does not count as an admin.
	caller := tenant{f.own.workspace, expiring.id("key")}
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for _, request := range []string{"DELETE " + memberPath + "/" + ada, "PATCH " + memberPath + "/" + bob, "DELETE /v2/api-keys/" + own} {
		wg.Go(func() {
			method, path, _ := strings.Cut(request, " ")
			var body any
			if method == "PATCH" {
				body = object{"role": "editor"}
			}
			answer := f.send(t, method, path, body, caller.headers())
			mu.Lock()
			defer mu.Unlock()
			answers[answer.StatusCode/100]++
			if answer.StatusCode >= 400 && answer.member("detail") != notAnyAdmin {
				t.Errorf("got %d %s", answer.StatusCode, answer.text)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[int]int{2: 2, 4: 1}, answers); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

// keyID finds the first key of a role.
func (f *fixture) keyID(t *testing.T, role string) string {
	t.Helper()
	list, _ := f.call(t, "GET", "/v2/api-keys", nil).member("resources").([]any)
	for _, k := range list {
		if k := k.(object); k["role"] == role {
			return k["id"].(string)
		}
	}
	t.Fatalf("there is no key of the role %s", role)
	return ""
}

func TestAMemberUnderConditions(t *testing.T) {
	t.Parallel()
	rule(t, memberTag)
	f := setUpManners(t)
	created := f.call(t, "POST", memberPath, object{"user": "ada@example.test", "role": "editor"})
	path, tag := memberPath+"/"+created.id("id"), created.Header.Get("ETag")
	if read := f.call(t, "GET", path, nil); tag == "" || read.Header.Get("ETag") != tag {
		t.Errorf("ETag: POST has %q, GET %q", tag, read.Header.Get("ETag"))
	}
	wantStatus(t, f.send(t, "GET", path, nil, f.own.with("If-None-Match", tag)), http.StatusNotModified)
	f.wantOneWins(t, path, tag, func(i int) object { return object{"role": []string{"viewer", "admin"}[i%2]} })
	wantStatus(t, f.send(t, "DELETE", path, nil, f.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	wantStatus(t, f.send(t, "DELETE", path, nil, f.own.with("If-Match", f.call(t, "GET", path, nil).Header.Get("ETag"))), http.StatusNoContent)
	wantStatus(t, f.call(t, "GET", path, nil), http.StatusNotFound)
}

// wantOneWins sends many changes of one version at once.
func (f *fixture) wantOneWins(t *testing.T, path, tag string, body func(int) object) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for i := range 20 {
		wg.Go(func() {
			r := f.send(t, "PATCH", path, body(i), f.own.with("If-Match", tag))
			mu.Lock()
			defer mu.Unlock()
			statuses[r.StatusCode]++
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[int]int{200: 1, 412: 19}, statuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestAProviderUnderConditions(t *testing.T) {
	t.Parallel()
	rule(t, authVersion)
	s := setUpAuth(t)
	created := s.call(t, "POST", "/v2/auth/providers", s.newProvider("calendar"))
	const path = "/v2/auth/providers/calendar"
	tag := created.Header.Get("ETag")
	s.wantOneWins(t, path, tag, func(i int) object { return object{"name": fmt.Sprint("name ", i)} })
	wantStatus(t, s.send(t, "DELETE", path, nil, s.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	now := s.call(t, "GET", path, nil)
	wantStatus(t, s.send(t, "DELETE", path, nil, s.own.with("If-Match", now.Header.Get("ETag"))), http.StatusOK)
	wantStatus(t, s.call(t, "GET", path, nil), http.StatusNotFound)
}

// TestAKeyFromFirstToLast makes a key, uses it, and revokes it.
func TestAKeyFromFirstToLast(t *testing.T) {
	t.Parallel()
	rule(t, keyOnce)
	rule(t, keyLife)
	f := setUpManners(t)
	made := f.send(t, "POST", "/v2/api-keys", object{"role": "editor", "name": "ci", "expires_in_seconds": 3600}, f.own.with(idempotencyKey, "k"))
	wantStatus(t, made, http.StatusCreated)
	key, id := made.id("key"), made.id("id")
	if made.Header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(key, made.id("prefix")) || len(key) != 44 || made.member("last_used_at") != nil {
		t.Errorf("got %s with %v", made.text, made.Header)
	}
	ci := tenant{f.own.workspace, key}
	wantStatus(t, f.send(t, "GET", "/v2/deployments", nil, ci.headers()), http.StatusOK)
	f.keys.Wait(t.Context())
	var listed object
	list := f.call(t, "GET", "/v2/api-keys", nil)
	for _, k := range list.member("resources").([]any) {
		if k.(object)["id"] == id {
			listed = k.(object)
		}
	}
	created, err := time.Parse(time.RFC3339, fmt.Sprint(listed["created_at"]))
	expires, err2 := time.Parse(time.RFC3339, fmt.Sprint(listed["expires_at"]))
	if err != nil || err2 != nil || listed["name"] != "ci" || listed["role"] != "editor" || listed["last_used_at"] == nil || expires.Sub(created).Round(time.Minute) != time.Hour {
		t.Errorf("got %v", listed)
	}
	wantStatus(t, f.call(t, "DELETE", "/v2/api-keys/"+id, nil), http.StatusNoContent)
	wantDetail(t, f.send(t, "GET", "/v2/deployments", nil, ci.headers()), http.StatusUnauthorized, "The API key is not valid.")
	for _, path := range []string{"/v2/api-keys", "/v2/audit-log"} {
		if got := f.call(t, "GET", path, nil); strings.Contains(string(got.text), key[9:]) {
			t.Errorf("%s shows the key: %s", path, got.text)
		}
	}
}

// TestAKeyIsMadeOnce repeats a request many times at once, and then once more.
func TestAKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	rule(t, keyOnce)
	rule(t, keyRepeated)
	f := setUpManners(t)
	const others = 2 // the tenant's own key exists from the beginning, and another admin's key
	admin := f.issue(t, workspace.Admin)
	body := object{"role": "editor", "name": "ci"}
	ask := func(caller tenant) response {
		return f.send(t, "POST", "/v2/api-keys", body, caller.with(idempotencyKey, "k"))
	}
	var wg sync.WaitGroup
	made := make(chan response, 20)
	for range cap(made) {
		wg.Go(func() {
			if r := ask(f.own); r.StatusCode == http.StatusCreated {
				made <- r
			} else {
				wantError(t, r, http.StatusConflict)
			}
		})
	}
	wg.Wait()
	if len(made) != 1 {
		t.Fatalf("%d requests have made a key", len(made))
	}
	first := <-made
	again := ask(f.own)
	wantDetail(t, again, http.StatusConflict, "This request has made API key ID "+first.id("id")+", whose text is in the first answer only. "+
		"If that was lost, revoke the key, and make another with a new Idempotency-Key.")
	if again.Header.Get(replayed) != "true" {
		t.Errorf("got %v", again.Header)
	}
	wantStatus(t, ask(admin), http.StatusUnprocessableEntity)
	if list, _ := f.call(t, "GET", "/v2/api-keys", nil).member("resources").([]any); len(list) != 1+others {
		t.Errorf("the workspace has %v", list)
	}
	wantStatus(t, f.call(t, "DELETE", "/v2/api-keys/"+first.id("id"), nil), http.StatusNoContent)
	wantStatus(t, ask(f.own), http.StatusConflict)
	wantStatus(t, f.send(t, "POST", "/v2/api-keys", body, f.own.with(idempotencyKey, "k2")), http.StatusCreated)
}

// TestTheAuditLogSaysWhoDidWhat makes one change of each kind, and reads each in several ways.
func TestTheAuditLogSaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	rule(t, auditLog)
	rule(t, auditFilters)
	f := setUpTeam(t)
	own := f.keyID(t, string(workspace.Admin))
	steps := []struct {
		request string
		body    object
		action  string
	}{
		{"PATCH /v2/workspaces/current", object{"name": "team-renamed"}, "rename_workspace"},
		{"PATCH " + memberPath + "/{member_id}", object{"role": "admin"}, "update_member"},
		{"DELETE " + memberPath + "/{member_id}", nil, "remove_member"},
		{"DELETE /v2/workspaces/current/trust-rules/{rule_id}", nil, "delete_trust_rule"},
		{"DELETE /v2/api-keys/{key_id}", nil, "revoke_api_key"},
		{"POST /v2/deployments", fromGit("weather"), "create_deployment"},
	}
	requests := map[string]string{}
	for _, step := range steps {
		method, path := f.at(step.request)
		answer := f.call(t, method, path, tenancyOperation{body: step.body}.request())
		if answer.StatusCode/100 != 2 {
			t.Fatalf("%s: got %d %s", step.request, answer.StatusCode, answer.text)
		}
		requests[answer.Header.Get("X-Request-Id")] = step.action
	}
	query := func(filter url.Values) (entries []object, cursor string) {
		t.Helper()
		page := f.call(t, "GET", "/v2/audit-log?"+filter.Encode(), nil)
		wantStatus(t, page, http.StatusOK)
		for _, e := range page.member("resources").([]any) {
			entries = append(entries, e.(object))
		}
		return entries, page.id("cursor")
	}
	all, cursor := query(nil)
	var actions []string
	for _, e := range slices.Backward(all) {
		actions = append(actions, e["action"].(string))
		request, _ := e["request_id"].(string)
		if want := requests[request]; want != "" && want != e["action"] {
			t.Errorf("got %v, want the action %s", e, want)
		}
	}
	// The entries of the setup come in any order; the first two have no caller.
	if got := strings.Join(actions[5:], " "); cursor != "" || actions[0] != "create_workspace" || got != "rename_workspace update_member remove_member delete_trust_rule revoke_api_key create_deployment" {
		t.Errorf("got %v and the cursor %q", actions, cursor)
	}
	for _, e := range all[:9] {
		if e["key_id"] != own || e["subject"] != nil || e["request_id"] == nil || e["outcome"] != "succeeded" {
			t.Errorf("got %v", e)
		}
	}
	middle := all[3]["time"].(string)
	for filter, want := range map[string]int{
		"action=update_member": 1, "resource=" + f.member: 3, "key_id=" + own: 9, "subject=nobody": 0, "outcome=refused": 0, "outcome=succeeded": 11,
		"since=" + middle: 4, "until=" + middle: 7, "since=" + middle + "&until=" + all[0]["time"].(string): 3, "action=x": 0,
	} {
		values, err := url.ParseQuery(filter)
		check.Must(t, err)
		values.Set("limit", "2")
		var found []object
		for cursor := "-"; cursor != ""; {
			var page []object
			page, cursor = query(values)
			values.Set("cursor", cursor)
			found = append(found, page...)
		}
		if len(found) != want {
			t.Errorf("%s: got %v, want %d", filter, found, want)
		}
	}
	wantError(t, f.call(t, "GET", "/v2/audit-log?since="+middle+"&until="+middle, nil), http.StatusBadRequest)
}

// TestRefusalsAreInTheAuditLog has roles call operations that they may not call.
func TestRefusalsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	rule(t, auditRefusals)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	type refusal struct {
		role                 workspace.Role
		method, path, detail string
		resource             string
	}
	refusals := []refusal{
		{workspace.Viewer, "POST", "/v2/deployments", "POST /v2/deployments: the role viewer lacks deployments:create", ""},
		{workspace.Editor, "DELETE", path, "DELETE /v2/deployments/{deployment_id}: the role editor lacks deployments:delete", created.id("id")},
		{workspace.Viewer, "GET", "/v2/auth/wait/" + someID, "GET /v2/auth/wait/{auth_id}: the role viewer lacks auth:create", ""},
		{workspace.Editor, "GET", "/api-host/v2/api-keys", "GET /api-host/v2/api-keys: the role editor lacks api-keys:read", ""},
	}
	for _, r := range refusals {
		answer := f.send(t, r.method, r.path, object{"name": "open-sesame"}, f.issue(t, r.role).headers())
		wantStatus(t, answer, http.StatusForbidden)
		newest := f.call(t, "GET", "/v2/audit-log?outcome=refused&limit=1", nil)
		wantStatus(t, newest, http.StatusOK)
		entry := newest.member("resources").([]any)[0].(object)
		want := object{"action": "request", "outcome": "refused", "detail": r.detail, "resource": r.resource, "request_id": answer.Header.Get("X-Request-Id"), "subject": nil}
		for member, value := range want {
			if entry[member] != value {
				t.Errorf("%s %s: %s is %v, want %v", r.method, r.path, member, entry[member], value)
			}
		}
		if entry["key_id"] == nil {
			t.Errorf("got %v", entry)
		}
	}
	if all := f.call(t, "GET", "/v2/audit-log?action=request", nil); len(all.member("resources").([]any)) != len(refusals) {
		t.Errorf("got %s", all.text)
	}
}

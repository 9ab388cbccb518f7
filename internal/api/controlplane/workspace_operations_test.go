package controlplane_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const memberPath = "/v2/workspaces/current/members"

// team holds the resources for the tests of operations: a member, a rule and a key of the own
// workspace, and its admin.
type team struct {
	*fixture
	member, rule, key string
}

func setUpTeam(t *testing.T) *team {
	t.Helper()
	f := &team{fixture: setUpManners(t)}
	for path, kept := range map[string]*string{memberPath: &f.member, "/v2/workspaces/current/trust-rules": &f.rule, "/v2/api-keys": &f.key} {
		made := f.call(t, "POST", path, tenancyBodies[path])
		wantStatus(t, made, http.StatusCreated)
		*kept = made.id("id")
	}
	return f
}

// tenancyBodies are the bodies that create one resource of each kind.
var tenancyBodies = map[string]object{
	memberPath:                           {"user": "ada@example.test", "role": "editor"},
	"/v2/workspaces/current/trust-rules": {"issuer": "https://ci.test", "role": "editor", "claims": object{"repository_id": "7"}},
	"/v2/api-keys":                       {"role": "viewer", "name": "dashboard"},
}

// at returns the method and path of an operation on the team's resources.
func (f *team) at(name string) (method, path string) {
	method, path, _ = strings.Cut(name, " ")
	return method, strings.NewReplacer("{member_id}", f.member, "{rule_id}", f.rule, "{key_id}", f.key).Replace(path)
}

// tenancyOperation describes how the tests exercise one operation.
type tenancyOperation struct {
	body   object
	status int
	shape  valueShape
	// kind is the kind of resource that the permission is named after.
	kind string
	// roles are the roles that may call the operation.
	roles string
	// missing is the text of a 404 for an unknown id.
	missing string
}

const everybody, admins = "admin editor viewer", "admin"

// tenancyOperations has an entry for every operation on members, rules, keys and the audit log.
var tenancyOperations = map[string]tenancyOperation{
	"GET /v2/workspaces/current":   {status: http.StatusOK, shape: workspaceShape, kind: "workspaces", roles: everybody},
	"PATCH /v2/workspaces/current": {body: object{"name": "renamed"}, status: http.StatusOK, shape: workspaceShape, kind: "workspaces", roles: admins},
	"GET " + memberPath:            {status: http.StatusOK, shape: resourcesOf(memberShape), kind: "workspaces", roles: everybody},
	"POST " + memberPath: {
		body: object{"user": "auth0|7", "issuer": "https://people.test", "role": "viewer"}, status: http.StatusCreated, shape: memberShape,
		kind: "workspaces", roles: admins,
	},
	"GET " + memberPath + "/{member_id}": {
		status: http.StatusOK, shape: memberShape, kind: "workspaces", roles: everybody, missing: "Member ID " + unknownID + " not found.",
	},
	"PATCH " + memberPath + "/{member_id}": {
		body: object{"role": "viewer"}, status: http.StatusOK, shape: memberShape, kind: "workspaces", roles: admins,
		missing: "Member ID " + unknownID + " not found.",
	},
	"DELETE " + memberPath + "/{member_id}": {
		status: http.StatusNoContent, shape: empty, kind: "workspaces", roles: admins, missing: "Member ID " + unknownID + " not found.",
	},
	"GET /v2/workspaces/current/trust-rules": {status: http.StatusOK, shape: resourcesOf(trustRuleShape), kind: "workspaces", roles: everybody},
	"POST /v2/workspaces/current/trust-rules": {
		body:   object{"name": "main", "issuer": "https://ci.test", "role": "admin", "claims": object{"repository_id": "8", "ref": "refs/heads/main"}},
		status: http.StatusCreated, shape: trustRuleShape, kind: "workspaces", roles: admins,
	},
	"DELETE /v2/workspaces/current/trust-rules/{rule_id}": {
		status: http.StatusNoContent, shape: empty, kind: "workspaces", roles: admins, missing: "Trust rule ID " + unknownID + " not found.",
	},
	"GET /v2/api-keys": {status: http.StatusOK, shape: resourcesOf(apiKeyShape(nil)), kind: "api-keys", roles: admins},
	"POST /v2/api-keys": {
		body: object{"role": "editor", "expires_in_seconds": 60}, status: http.StatusCreated, shape: apiKeyShape(map[string]valueShape{"key": text}),
		kind: "api-keys", roles: admins,
	},
	"DELETE /v2/api-keys/{key_id}": {
		status: http.StatusNoContent, shape: empty, kind: "api-keys", roles: admins, missing: "Key ID " + unknownID + " not found.",
	},
	"GET /v2/audit-log": {
		status: http.StatusOK, shape: members(map[string]valueShape{"resources": listOf(auditEntryShape), "cursor": orNull(text)}), kind: "audit-log", roles: admins,
	},
}

func resourcesOf(shape valueShape) valueShape {
	return members(map[string]valueShape{"resources": listOf(shape)})
}

var (
	roleShape      = oneOf("admin editor viewer")
	workspaceShape = members(map[string]valueShape{"id": uuid, "name": text, "role": roleShape, "created_at": dateTime, "quotas": listOf(members(map[string]valueShape{"name": text, "limit": integer, "used": orNull(integer)}))})
	memberShape    = members(map[string]valueShape{
		"id": uuid, "user": text, "issuer": orNull(text), "role": roleShape, "created_at": dateTime, "updated_at": dateTime,
	})
	trustRuleShape = members(map[string]valueShape{
		"id": uuid, "name": text, "issuer": text, "role": roleShape, "claims": anyObject, "created_at": dateTime,
	})
	auditEntryShape = members(map[string]valueShape{
		"id": uuid, "time": dateTime, "key_id": orNull(uuid), "subject": orNull(text), "action": text, "resource": text,
		"outcome": oneOf("succeeded refused"), "detail": orNull(text), "request_id": orNull(text),
	})
)

func apiKeyShape(more map[string]valueShape) valueShape {
	shape := map[string]valueShape{
		"id": uuid, "name": text, "role": roleShape, "prefix": text, "created_at": dateTime, "expires_at": orNull(dateTime), "last_used_at": orNull(dateTime),
	}
	maps.Copy(shape, more)
	return members(shape)
}

func (o tenancyOperation) request() any {
	if o.body == nil {
		return nil
	}
	return o.body
}

func TestEveryOperationOfTenancySucceeds(t *testing.T) {
	t.Parallel()
	rule(t, tenancyShapes)
	for name, o := range tenancyOperations {
		for _, base := range bases {
			t.Run(base+" "+name, func(t *testing.T) {
				t.Parallel()
				f := setUpTeam(t)
				method, path := f.at(name)
				answer := f.call(t, method, base+path, o.request())
				wantStatus(t, answer, o.status)
				wantShape(t, answer, o.shape)
			})
		}
	}
}

// TestAttackStrangersAtTenancy calls all operations without credentials and with bad
// credentials, also with malformed bodies.
func TestAttackStrangersAtTenancy(t *testing.T) {
	t.Parallel()
	rule(t, "Missing or bad credentials are a 401, a tenant that the key does not belong to is a 403, before anything else is looked at.")
	f := setUpTeam(t)
	before := f.call(t, "GET", "/v2/audit-log", nil)
	for name := range tenancyOperations {
		for _, base := range bases {
			method, path := f.at(name)
			for _, headers := range []map[string]string{nil, {"X-Api-Key": "slw_guess"}, {"Authorization": "Bearer guess"}} {
				wantError(t, f.send(t, method, base+path, "{", headers), http.StatusUnauthorized)
			}
			wantError(t, f.send(t, method, base+path, nil, map[string]string{"X-Api-Key": f.own.key, "X-Tenant-Id": f.other.workspace}), http.StatusForbidden)
		}
	}
	if diff := cmp.Diff(before.body, f.call(t, "GET", "/v2/audit-log", nil).body); diff != "" {
		t.Errorf("a refused request changed something (-before +after):\n%s", diff)
	}
}

// TestRolesInTenancy calls every operation with a key of every role.
func TestRolesInTenancy(t *testing.T) {
	t.Parallel()
	rule(t, tenancyRoles)
	verbs := map[string]string{"GET": "read", "POST": "create", "PATCH": "update", "DELETE": "delete"}
	for _, role := range []workspace.Role{workspace.Admin, workspace.Editor, workspace.Viewer} {
		for name, o := range tenancyOperations {
			t.Run(string(role)+" "+name, func(t *testing.T) {
				t.Parallel()
				f := setUpTeam(t)
				method, path := f.at(name)
				caller := f.issue(t, role)
				answer := f.send(t, method, path, o.request(), caller.headers())
				if slices.Contains(strings.Fields(o.roles), string(role)) {
					wantStatus(t, answer, o.status)
					return
				}
				wantDetail(t, answer, http.StatusForbidden,
					`The credentials do not allow this: the role "`+string(role)+`" lacks the permission `+o.kind+":"+verbs[method]+".")
			})
		}
	}
}

// TestWhatTenancyDoesNotHaveIsNotFound asks for unknown ids, and as another workspace for ids
// that exist.
func TestWhatTenancyDoesNotHaveIsNotFound(t *testing.T) {
	t.Parallel()
	rule(t, "What belongs to another workspace is a 404, as what does not exist.")
	f := setUpTeam(t)
	nothing := *f
	nothing.member, nothing.rule, nothing.key = unknownID, unknownID, unknownID
	for name, o := range tenancyOperations {
		if o.missing == "" {
			continue
		}
		method, path := nothing.at(name)
		wantDetail(t, f.call(t, method, path, o.request()), http.StatusNotFound, o.missing)
		method, path = f.at(name)
		wantError(t, f.send(t, method, path, o.request(), f.other.headers()), http.StatusNotFound)
		wantStatus(t, f.call(t, method, strings.NewReplacer(f.member, "x", f.rule, "x", f.key, "x").Replace(path), o.request()), http.StatusUnprocessableEntity)
	}
	for _, path := range []string{memberPath, "/v2/workspaces/current/trust-rules"} {
		if list := f.send(t, "GET", path, nil, f.other.headers()); cmp.Diff([]any{}, list.member("resources")) != "" {
			t.Errorf("another workspace sees %s", list.text)
		}
	}
	for _, path := range []string{"/v2/api-keys", "/v2/audit-log"} {
		if list := f.send(t, "GET", path, nil, f.other.headers()); strings.Contains(string(list.text), f.key) {
			t.Errorf("another workspace sees %s", list.text)
		}
	}
}

func TestOtherMethodsOfTenancyAreNotAllowed(t *testing.T) {
	t.Parallel()
	f := setUpTeam(t)
	allowed := map[string][]string{}
	for name := range tenancyOperations {
		method, path := f.at(name)
		allowed[path] = append(allowed[path], method)
	}
	for path, methods := range allowed {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if !slices.Contains(methods, method) {
				wantDetail(t, f.call(t, method, path, nil), http.StatusMethodNotAllowed, "Method Not Allowed")
			}
		}
	}
}

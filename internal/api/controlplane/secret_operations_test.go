package controlplane_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Rules about the secrets of a workspace.
const (
	secretShapes     = "Secrets: every operation answers with its success status in the shape of the interface, at the root and under `/api-host`; no answer shows a value."
	secretRoles      = "Secrets: a viewer may look, an editor may not delete."
	secretOthers     = "Secrets of another workspace are a 404, as those that do not exist; a reference to one is a 400."
	secretMembers    = "Secrets: `name` is a DNS subdomain, keys are letters, digits, `-`, `_` and `.`, values text without NUL, 61440 bytes together; a name that is taken is a 409."
	secretPatched    = "PATCH of a secret sets the keys that `data` names and takes away those that are null; others stay. Concurrent ones lose no key."
	secretUsed       = "A secret, or a key of it, that a deployment refers to is not taken away: 409, which names the deployments; also when the two meet."
	secretConditions = "A secret has a strong ETag: 304 for an `If-None-Match` that has it, 412 and no change for an `If-Match` without it; of many changes of one version one wins."
	secretListed     = "GET /v2/secrets: `limit` 1 to 100 (20), `offset`, `cursor`; `{resources, offset}`, by name."
	secretRotated    = "PATCH of a secret restarts the deployments whose agents have a value that changed, and names them; `restart: true` those that have a value which it names, `restart: false` none."
	secretTooLarge   = "Secrets: a release whose secrets have become larger than an agent can be given is DEPLOY_FAILED with SECRETS_TOO_LARGE, in words."
	secretLogs       = "Logs show no value of a secret that a revision refers to, nor one that was replaced, nor of one that was deleted since."
)

const secretPath = "/v2/secrets/{secret_name}"

// secretOperation describes how the tests exercise one operation.
type secretOperation struct {
	body   object
	status int
	shape  valueShape
	verb   workspace.Verb
}

func keptShape(more map[string]valueShape) valueShape {
	all := map[string]valueShape{"name": text, "keys": listOf(text), "created_at": dateTime, "updated_at": dateTime}
	maps.Copy(all, more)
	return members(all)
}

// secretOperations has an entry for every operation of secrets.
var secretOperations = map[string]secretOperation{
	"GET /v2/secrets": {status: http.StatusOK, shape: members(map[string]valueShape{
		"resources": listOf(keptShape(nil)), "offset": integer, "cursor": orNull(text),
	}), verb: workspace.Read},
	"POST /v2/secrets": {
		body: object{"name": "another", "data": object{"key": "planted-value"}}, status: http.StatusCreated, shape: keptShape(nil), verb: workspace.Create,
	},
	"GET " + secretPath: {status: http.StatusOK, shape: keptShape(map[string]valueShape{"deployment_ids": listOf(uuid)}), verb: workspace.Read},
	"PATCH " + secretPath: {
		body: object{"data": object{"api-key": "planted-other", "limit": nil}}, status: http.StatusOK, shape: keptShape(map[string]valueShape{"restarted_deployment_ids": listOf(uuid)}),
		verb: workspace.Update,
	},
	"DELETE " + secretPath: {status: http.StatusNoContent, shape: empty, verb: workspace.Delete},
}

func (o secretOperation) sent() any {
	if o.body == nil {
		return nil
	}
	return o.body
}

// keep creates the secret "search", and returns its path.
func (f *fixture) keep(t *testing.T) string {
	t.Helper()
	wantStatus(t, f.call(t, "POST", "/v2/secrets", object{"name": "search", "data": object{"api-key": "planted-first", "limit": "3"}}), http.StatusCreated)
	return "/v2/secrets/search"
}

func atSecret(name string) (method, path string) {
	method, path, _ = strings.Cut(name, " ")
	return method, strings.Replace(path, "{secret_name}", "search", 1)
}

func TestEveryOperationOfSecretsSucceeds(t *testing.T) {
	t.Parallel()
	rule(t, secretShapes)
	for name, o := range secretOperations {
		for _, base := range bases {
			t.Run(base+" "+name, func(t *testing.T) {
				t.Parallel()
				f := setUp(t)
				f.keep(t)
				method, path := atSecret(name)
				answer := f.call(t, method, base+path, o.sent())
				wantStatus(t, answer, o.status)
				wantShape(t, answer, o.shape)
				if strings.Contains(string(answer.text), "planted") {
					t.Errorf("it shows a value: %s", answer.text)
				}
			})
		}
	}
}

func TestRolesOfSecrets(t *testing.T) {
	t.Parallel()
	rule(t, "Roles: what a role lacks is a 403.")
	rule(t, secretRoles)
	may := map[workspace.Role][]workspace.Verb{
		workspace.Admin:  {workspace.Read, workspace.Create, workspace.Update, workspace.Delete},
		workspace.Editor: {workspace.Read, workspace.Create, workspace.Update}, workspace.Viewer: {workspace.Read},
	}
	for role, allowed := range may {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			f.keep(t)
			caller := f.issue(t, role)
			for _, deletes := range []bool{false, true} { // deletions come last
				for name, o := range secretOperations {
					if (o.verb == workspace.Delete) != deletes {
						continue
					}
					method, path := atSecret(name)
					answer := f.send(t, method, path, o.sent(), caller.headers())
					if slices.Contains(allowed, o.verb) {
						wantStatus(t, answer, o.status)
						continue
					}
					wantDetail(t, answer, http.StatusForbidden,
						`The credentials do not allow this: the role "`+string(role)+`" lacks the permission secrets:`+string(o.verb)+".")
				}
			}
		})
	}
}

// TestSecretsOfOthers calls every operation without credentials, for secrets of another
// workspace, and for secrets that do not exist.
func TestSecretsOfOthers(t *testing.T) {
	t.Parallel()
	rule(t, "Missing or bad credentials are a 401, a tenant that the key does not belong to is a 403, before anything else is looked at.")
	rule(t, "What belongs to another workspace is a 404, as what does not exist.")
	rule(t, secretOthers)
	f := setUp(t)
	f.keep(t)
	for name, o := range secretOperations {
		method, path := atSecret(name)
		wantDetail(t, f.send(t, method, path, o.sent(), nil), http.StatusUnauthorized, "The header X-Api-Key is missing.")
		if !strings.Contains(name, "{secret_name}") {
			continue
		}
		wantDetail(t, f.send(t, method, path, o.sent(), f.other.headers()), http.StatusNotFound, `Secret "search" not found.`)
		unknown := strings.Replace(path, "search", "unknown.secret", 1)
		wantDetail(t, f.call(t, method, unknown, o.sent()), http.StatusNotFound, `Secret "unknown.secret" not found.`)
	}
	if list, _ := f.send(t, "GET", "/v2/secrets", nil, f.other.headers()).member("resources").([]any); len(list) != 0 {
		t.Errorf("another workspace sees %v", list)
	}
	body := with(fromGit("stranger"), "secret_references", []any{reference("KEY", "api-key")})
	wantDetail(t, f.send(t, "POST", "/v2/deployments", body, f.other.headers()), http.StatusBadRequest,
		`secret_references[0].secret_name: the workspace has no secret "search".`)
	entries, _ := f.call(t, "GET", "/v2/audit-log", nil).member("resources").([]any)
	if entry := entries[0].(object); entry["action"] != "create_secret" || entry["resource"] != "search" {
		t.Errorf("the audit log has %v", entry)
	}
}

// reference is a reference to a key of the secret "search".
func reference(variable, key string) object {
	return object{"name": variable, "secret_name": "search", "secret_key": key}
}

package controlplane_test

import (
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// operation describes how the tests exercise one operation of the contract.
type operation struct {
	// public operations take no credentials.
	public bool
	body   func() any
	status int
	shape  valueShape
	// query follows the path.
	query string
	// deployed operations are about a deployed revision.
	deployed bool
	// permission is the required permission, if it differs from the method's permission on
	// deployments.
	permission workspace.Permission
}

func nothing() any { return nil }

// operations has an entry for every operation of the contract; TestEveryOperationIsExercised
// fails if an entry is missing.
var operations = map[string]operation{
	"GET /ok": {public: true, body: nothing, status: http.StatusOK, shape: members(map[string]valueShape{"ok": boolean})},
	"GET /metrics": {
		// This server counts no requests.
		body: nothing, status: http.StatusBadRequest, permission: "metrics:read", shape: members(map[string]valueShape{"detail": text}),
	},
	"GET /v2/deployments": {body: nothing, status: http.StatusOK, shape: pageOf(deploymentShape)},
	"POST /v2/deployments": {
		body: func() any { return fromGit("another") }, status: http.StatusCreated, shape: deploymentShape,
	},
	"GET /v2/deployments/{deployment_id}": {body: nothing, status: http.StatusOK, shape: deploymentShape},
	"PATCH /v2/deployments/{deployment_id}": {
		body:   func() any { return object{"source_revision_config": object{"repo_ref": "dev"}} },
		status: http.StatusOK, shape: deploymentShape,
	},
	"PATCH /v2/deployments/{deployment_id}/deployment-tier": {
		body: func() any { return object{"compute_tier": "DEDICATED_S"} }, status: http.StatusOK, shape: tieredShape,
	},
	"PATCH /v2/deployments/{deployment_id}/resource-tiers": {
		body: func() any { return object{"compute_tier": "SERVERLESS_M"} }, status: http.StatusOK, shape: tieredShape,
	},
	"DELETE /v2/deployments": {
		body: nothing, status: http.StatusOK, shape: deletedShape, query: "?deployment_ids={deployment_id}",
	},
	"GET /v2/deployments/free-count":         {body: nothing, status: http.StatusOK, shape: members(map[string]valueShape{"count": integer})},
	"DELETE /v2/deployments/{deployment_id}": {body: nothing, status: http.StatusNoContent, shape: empty},
	"POST /v2/deployments/{deployment_id}/push-token": {
		// The deployment is from git.
		body: nothing, status: http.StatusBadRequest, shape: members(map[string]valueShape{"detail": text}),
	},
	"GET /v2/deployments/{deployment_id}/events": {body: nothing, status: http.StatusOK, shape: eventsShape},
	"POST /v2/deployments/{deployment_id}/upload-url": {
		// As above, the deployment is from git.
		body: nothing, status: http.StatusBadRequest, shape: members(map[string]valueShape{"detail": text}),
	},
	"GET /v2/deployments/{deployment_id}/tracing-project": {body: nothing, status: http.StatusOK, shape: tracingProjectShape},
	"GET /v2/deployments/{deployment_id}/revisions":       {body: nothing, status: http.StatusOK, shape: pageOf(revisionShape)},
	"POST /v2/deployments/{deployment_id}/revisions":      {body: nothing, status: http.StatusCreated, shape: revisionShape},
	"GET /v2/deployments/{deployment_id}/revisions/{revision_id}/logs": {
		body: nothing, status: http.StatusOK, query: "?type=build", shape: members(map[string]valueShape{"logs": listOf(logEntryShape), "next_offset": orNull(text)}),
	},
	"GET /v2/deployments/{deployment_id}/revisions/{revision_id}/explanation": {
		// The revision has not failed.
		body: nothing, status: http.StatusConflict, shape: members(map[string]valueShape{"detail": text}),
	},
	"GET /v2/deployments/{deployment_id}/revisions/{revision_id}/difference": {
		body: nothing, status: http.StatusOK, query: "?from={revision_id}", shape: differenceShape,
	},
	"GET /v2/deployment-logs": {
		body: nothing, status: http.StatusOK, query: "?deployment_id={deployment_id}",
		shape: members(map[string]valueShape{"items": listOf(logEntryShape), "next_cursor": orNull(text)}),
	},
	"POST /v1/projects/{deployment_id}/revisions/{revision_id}/build_logs":  foundLogs,
	"POST /v1/projects/{deployment_id}/revisions/{revision_id}/deploy_logs": foundLogs,
	"POST /v1/projects/{deployment_id}/deploy_logs":                         foundLogs,
	"GET /v2/deployments/{deployment_id}/revisions/{revision_id}":           {body: nothing, status: http.StatusOK, shape: revisionShape},
	"POST /v2/deployments/{deployment_id}/revisions/{revision_id}/redeploy": {
		body: nothing, status: http.StatusOK, shape: deploymentShape, deployed: true,
	},
	"POST /v2/deployments/{deployment_id}/revisions/{revision_id}/rollback": {
		body: nothing, status: http.StatusOK, shape: deploymentShape, deployed: true,
	},
	"POST /v2/deployments/{deployment_id}/revisions/{revision_id}/cancel": {body: nothing, status: http.StatusOK, shape: revisionShape},
	"POST /v2/deployments/{deployment_id}/undelete": {
		// The deployment is not deleted.
		body: nothing, status: http.StatusConflict, shape: members(map[string]valueShape{"detail": text}),
	},
	"POST /v2/deployments/{deployment_id}/restart": {
		body: nothing, status: http.StatusAccepted, shape: members(map[string]valueShape{"id": uuid, "deployment_id": uuid, "revision_id": uuid}),
	},
	"POST /v2/deployments/{deployment_id}/revisions/{revision_id}/promote": {
		// The revision is not a canary.
		body: nothing, status: http.StatusConflict, shape: members(map[string]valueShape{"detail": text}),
	},
}

// request returns the method and path of an operation on a deployment and its first revision.
func request(name string, created response) (method, path string) {
	method, path, _ = strings.Cut(name, " ")
	path += operations[name].query
	return method, strings.NewReplacer("{deployment_id}", created.id("id"), "{revision_id}", created.id("latest_revision_id")).Replace(path)
}

// exercised are the names of all operations that the tests exercise.
func exercised() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, all := range []iter.Seq[string]{maps.Keys(operations), maps.Keys(authOperations), maps.Keys(listenerOperations), maps.Keys(integrationOperations), maps.Keys(tenancyOperations), maps.Keys(webhookOperations), maps.Keys(secretOperations)} {
			for name := range all {
				if !yield(name) {
					return
				}
			}
		}
	}
}

func TestEveryOperationIsExercised(t *testing.T) {
	t.Parallel()
	rule(t, "`/openapi.json` has `info.version` 0.1.0.")
	f := setUp(t)
	for _, base := range bases {
		var got []string
		document := f.send(t, "GET", base+"/openapi.json", nil, nil)
		wantStatus(t, document, http.StatusOK)
		paths, _ := document.member("paths").(map[string]any)
		for path, item := range paths {
			for name := range item.(map[string]any) {
				if name != "parameters" {
					got = append(got, strings.ToUpper(name)+" "+path)
				}
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(slices.Sorted(exercised()), got); diff != "" {
			t.Errorf("operations (-exercised +in the contract):\n%s", diff)
		}
		if got := document.member("info", "version"); got != "0.1.0" {
			t.Errorf("the interface has version %v, want 0.1.0", got)
		}
	}
}

// bases are the paths at which the control plane is served.
var bases = []string{"", "/api-host"}

func TestEveryOperationSucceedsInTheShapeOfTheInterface(t *testing.T) {
	t.Parallel()
	rule(t, jsonBodies)
	rule(t, "Every operation answers with its success status in the shape of the interface, at the root and under `/api-host`.")
	for name, o := range operations {
		for _, base := range bases {
			t.Run(base+" "+name, func(t *testing.T) {
				t.Parallel()
				f := setUp(t)
				body := fromGit("weather")
				body["secrets"] = []any{object{"name": "A", "value": "b"}}
				_, created := f.create(t, body)
				if o.deployed {
					f.deploy(t, created.id("id"))
				}
				method, path := request(name, created)
				answer := f.call(t, method, base+path, o.body())
				wantStatus(t, answer, o.status)
				wantShape(t, answer, o.shape)
			})
		}
	}
}

// TestAttackStrangersAtEveryOperation calls without a key, with an invalid key, and with a
// valid key of another workspace. Each request is malformed, too: an unknown caller does not
// learn this.
func TestAttackStrangersAtEveryOperation(t *testing.T) {
	t.Parallel()
	rule(t, "Missing or bad credentials are a 401, a tenant that the key does not belong to is a 403, before anything else is looked at.")
	f := setUp(t)
	_, created := f.create(t, fromGit("weather"))
	starts := f.engine.starts.Load()
	for name, o := range operations {
		if o.public {
			continue
		}
		for _, base := range bases {
			method, path := request(name, created)
			for who, c := range map[string]struct {
				headers map[string]string
				status  int
				detail  string
			}{
				"nobody":              {nil, http.StatusUnauthorized, "The header X-Api-Key is missing."},
				"a tenant only":       {map[string]string{auth.HeaderTenant: f.own.workspace}, http.StatusUnauthorized, "The header X-Api-Key is missing."},
				"a bad key":           {map[string]string{auth.HeaderKey: "slw_guess", auth.HeaderTenant: f.own.workspace}, http.StatusUnauthorized, "The API key is not valid."},
				"a key of no kind":    {map[string]string{auth.HeaderKey: "guess"}, http.StatusUnauthorized, "The API key is not valid."},
				"another tenant":      {map[string]string{auth.HeaderKey: f.own.key, auth.HeaderTenant: f.other.workspace}, http.StatusForbidden, "The API key does not belong to the workspace that X-Tenant-Id names."},
				"a tenant of no kind": {map[string]string{auth.HeaderKey: f.own.key, auth.HeaderTenant: "x"}, http.StatusForbidden, "The API key does not belong to the workspace that X-Tenant-Id names."},
			} {
				for _, body := range []any{o.body(), "{"} {
					answer := f.send(t, method, base+path, body, c.headers)
					wantDetail(t, answer, c.status, c.detail)
					if t.Failed() {
						t.Fatalf("%s was %s", name, who)
					}
				}
			}
		}
	}
	if after := f.call(t, "GET", "/v2/deployments/"+created.id("id"), nil); cmp.Diff(created.body, after.body) != "" || f.engine.starts.Load() != starts {
		t.Errorf("a refused request changed something (-before +after):\n%s", cmp.Diff(created.body, after.body))
	}
}

// TestAKeyAloneIsEnough leaves the tenant out, and sends it in capitals.
func TestAKeyAloneIsEnough(t *testing.T) {
	t.Parallel()
	rule(t, "`X-Api-Key` and `X-Tenant-Id`, or the key as a bearer token; a key alone is enough.")
	f := setUp(t)
	for _, tenant := range []string{"", strings.ToUpper(f.own.workspace)} {
		answer := f.send(t, "GET", "/v2/deployments", nil, map[string]string{auth.HeaderKey: f.own.key, auth.HeaderTenant: tenant})
		wantStatus(t, answer, http.StatusOK)
	}
}

// TestPublicOperationsTakeNoCredentials calls without credentials, and with bad credentials.
func TestPublicOperationsTakeNoCredentials(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, o := range operations {
		method, path := request(name, response{})
		if !o.public {
			continue
		}
		for _, headers := range []map[string]string{nil, {auth.HeaderKey: "guess"}} {
			wantStatus(t, f.send(t, method, path, nil, headers), o.status)
		}
	}
}

// TestWhatIsNotThereIsNotFound asks for unknown ids and for ids of another workspace: the
// caller cannot distinguish them.
func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	rule(t, "What belongs to another workspace is a 404, as what does not exist.")
	f := setUp(t)
	_, created := f.create(t, fromGit("weather"))
	deploymentID, revisionID := created.id("id"), created.id("latest_revision_id")
	for name, o := range operations {
		if !strings.Contains(name, "{deployment_id}") {
			continue
		}
		method, path := request(name, created)
		unknown := strings.Replace(path, deploymentID, unknownID, 1)
		wantDetail(t, f.call(t, method, unknown, o.body()), http.StatusNotFound, "Deployment ID "+unknownID+" not found.")
		stranger := f.send(t, method, path, o.body(), f.other.headers())
		wantDetail(t, stranger, http.StatusNotFound, "Deployment ID "+deploymentID+" not found.")
		if strings.Contains(name, "{revision_id}") {
			unknown = strings.Replace(path, revisionID, unknownID, 1)
			wantDetail(t, f.call(t, method, unknown, o.body()), http.StatusNotFound, "Revision ID "+unknownID+" not found.")
		}
	}
	list := f.send(t, "GET", "/v2/deployments", nil, f.other.headers())
	if got := list.member("resources"); cmp.Diff([]any{}, got) != "" {
		t.Errorf("another workspace lists %v", got)
	}
}

// TestARevisionOfAnotherDeploymentIsNotFound asks for it below the wrong deployment of the
// workspace.
func TestARevisionOfAnotherDeploymentIsNotFound(t *testing.T) {
	t.Parallel()
	rule(t, "What belongs to another workspace is a 404, as what does not exist.")
	f := setUp(t)
	path, _ := f.create(t, fromGit("one"))
	_, other := f.create(t, fromGit("two"))
	wantError(t, f.call(t, "GET", path+"/revisions/"+other.id("latest_revision_id"), nil), http.StatusNotFound)
}

func TestOtherMethodsAreNotAllowed(t *testing.T) {
	t.Parallel()
	rule(t, "JSON that is malformed, that is not UTF-8 or that other parsers cannot read is a 422 (`json_invalid`), a body over 10 MB a 413, another Content-Type a 415, another method a 405 with `Allow`.")
	f := setUp(t)
	_, created := f.create(t, fromGit("weather"))
	allowed := map[string][]string{}
	for name := range operations {
		method, path := request(name, created)
		path, _, _ = strings.Cut(path, "?")
		if strings.HasSuffix(path, "/free-count") {
			continue // with other methods this is the path of an unknown deployment
		}
		allowed[path] = append(allowed[path], method)
	}
	for path, methods := range allowed {
		for _, base := range bases {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"} {
				if slices.Contains(methods, method) {
					continue
				}
				answer := f.call(t, method, base+path, nil)
				wantDetail(t, answer, http.StatusMethodNotAllowed, "Method Not Allowed")
				for _, want := range methods {
					if !slices.Contains(strings.Split(answer.Header.Get("Allow"), ", "), want) {
						t.Errorf("%s %s: Allow is %q, want %s in it", method, path, answer.Header.Get("Allow"), want)
					}
				}
			}
		}
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	t.Parallel()
	rule(t, jsonBodies)
	rule(t, "Every error is `{\"detail\": ...}`: a sentence, or a list for 422.")
	f := setUp(t)
	for _, path := range []string{"/", "/v2", "/v1/deployments", "/v2/deployments/", "/api-host/api-host/v2/deployments", "/v2/deployments/" + unknownID + "/logs"} {
		wantDetail(t, f.call(t, "GET", path, nil), http.StatusNotFound, "Not Found")
	}
}

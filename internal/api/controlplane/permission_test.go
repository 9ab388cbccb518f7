package controlplane_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// document is the part of the OpenAPI document that these tests change.
type document struct {
	Paths map[string]map[string]any `json:"paths"`
}

func parseDocument(t *testing.T) document {
	t.Helper()
	var d document
	check.Must(t, json.Unmarshal(openapi.ControlPlane, &d))
	return d
}

func (d document) encode(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(d)
	check.Must(t, err)
	return text
}

// TestEveryOperationDeclaresAPermission removes the permission of each operation in turn: the
// remaining document must not be served.
func TestEveryOperationDeclaresAPermission(t *testing.T) {
	t.Parallel()
	d := parseDocument(t)
	for path, item := range d.Paths {
		for method, member := range item {
			operation, isOperation := member.(map[string]any)
			if security, _ := operation["security"].([]any); !isOperation || (security != nil && len(security) == 0) {
				continue
			}
			permission := operation["x-permission"]
			delete(operation, "x-permission")
			only := document{map[string]map[string]any{path: {method: operation}}}
			_, err := controlplane.ParseContract(only.encode(t))
			if want := strings.ToUpper(method) + " " + path + " declares no x-permission"; permission == nil || err == nil || err.Error() != want {
				t.Errorf("with the permission %v taken away: got error %v, want %q", permission, err, want)
			}
		}
	}
}

func TestPermissionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"x-permission": "deployments:rename"}`:             `GET /a declares the x-permission "deployments:rename", which no role has`,
		`{"x-permission": "x", "security": []}`:              `GET /a takes no credentials, so it must not declare the x-permission "x"`,
		`{"x-permission": "deployments:read"}`:               "",
		`{"security": []}`:                                   "",
		`{"security": [{}], "x-permission": "secrets:read"}`: "",
	} {
		_, err := controlplane.ParseContract([]byte(`{"paths": {"/a": {"get": ` + text + `}}}`))
		if got := errorText(err); got != want {
			t.Errorf("%s: got error %q, want %q", text, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestEveryPathDeclaresItsResource lists the parameters that the audit log shows of a refused
// request. The id of a pending consent lets a client wait for a token, so the log does not show
// it.
func TestEveryPathDeclaresItsResource(t *testing.T) {
	t.Parallel()
	hidden := []string{
		"/v2/auth/setup/{provider_id}",                              // needs no permission
		"/v2/auth/wait/{auth_id}",                                   // a secret
		"/v2/integrations/git/hooks/{workspace_id}/{deployment_id}", // needs no permission
	}
	d := parseDocument(t)
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		resource, declared := d.Paths[path]["x-resource"].(string)
		wanted := strings.Contains(path, "{") && !slices.Contains(hidden, path)
		if declared != wanted || (declared && !strings.Contains(path, "{"+resource+"}")) {
			t.Errorf("%s: the x-resource is %q, want a parameter of the path: %t", path, resource, wanted)
		}
	}
}

// TestARefusalNamesItsResource reads the audit log after requests that a viewer may not make.
func TestARefusalNamesItsResource(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, created := f.create(t, fromGit("weather"))
	viewer := f.issue(t, workspace.Viewer).headers()
	for path, want := range map[string]string{
		"PATCH /v2/deployments/" + created.id("id"):                                        created.id("id"),
		"POST /v2/deployments/" + created.id("id") + "/revisions/" + unknownID + "/cancel": created.id("id"),
		"DELETE /v2/auth/providers/calendar":                                               "calendar",
		"GET /v2/auth/wait/guess":                                                          "",
		"POST /v2/webhooks":                                                                "",
	} {
		method, path, _ := strings.Cut(path, " ")
		wantStatus(t, f.send(t, method, path, nil, viewer), http.StatusForbidden)
		newest := f.call(t, "GET", "/v2/audit-log?limit=1", nil).member("resources").([]any)[0].(map[string]any)
		if newest["outcome"] != "refused" || newest["resource"] != want {
			t.Errorf("%s %s: the newest entry is %v, want a refusal with the resource %q", method, path, newest, want)
		}
	}
}

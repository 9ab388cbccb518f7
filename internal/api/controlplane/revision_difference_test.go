package controlplane_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

func anything(any) string { return "" }

var differenceShape = members(map[string]valueShape{
	"from": uuid, "to": uuid,
	"settings": listOf(members(map[string]valueShape{"name": text, "from": anything, "to": anything})),
	"secrets":  listOf(members(map[string]valueShape{"name": text, "change": oneOf("added removed changed")})),
})

// TestTheDifferenceOfRevisions changes settings and secrets, and compares the two
// revisions in both directions. No answer has the value of a secret, whatever the role.
func TestTheDifferenceOfRevisions(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	secret := func(name, value string) object { return object{"name": name, "value": value} }
	body := fromGit("weather")
	body["secrets"] = []any{secret("GONE", "open-sesame-1"), secret("KEPT", "open-sesame-2"), secret("TURNED", "open-sesame-3")}
	path, created := f.create(t, body)
	f.deploy(t, created.id("id"))
	before := created.id("latest_revision_id")
	changed := f.call(t, "PATCH", path, object{
		"source_config":          object{"install_command": "npm ci"},
		"source_revision_config": object{"repo_ref": "release"},
		"secrets":                []any{secret("KEPT", "open-sesame-2"), secret("NEW", "open-sesame-4"), secret("TURNED", "open-sesame-5")},
	})
	wantStatus(t, changed, http.StatusOK)
	after := changed.id("latest_revision_id")

	type setting = [3]any
	for _, c := range []struct {
		from, to string
		settings []setting
		secrets  [][2]string
	}{
		{
			before, after,
			[]setting{
				{"source_config.install_command", nil, "npm ci"},
				{"source_revision_config.repo_ref", "main", "release"},
			},
			[][2]string{{"GONE", "removed"}, {"NEW", "added"}, {"TURNED", "changed"}},
		},
		{
			after, before,
			[]setting{
				{"source_config.install_command", "npm ci", nil},
				{"source_revision_config.repo_ref", "release", "main"},
			},
			[][2]string{{"GONE", "added"}, {"NEW", "removed"}, {"TURNED", "changed"}},
		},
		{after, after, nil, nil},
	} {
		for _, role := range []workspace.Role{workspace.Admin, workspace.Viewer} {
			got := f.send(t, "GET", path+"/revisions/"+c.to+"/difference?from="+c.from, nil, f.issue(t, role).headers())
			wantStatus(t, got, http.StatusOK)
			wantShape(t, got, differenceShape)
			if got.id("from") != c.from || got.id("to") != c.to || strings.Contains(string(got.text), "open-sesame") {
				t.Errorf("got %s", got.text)
			}
			var settings []setting
			for _, one := range got.member("settings").([]any) {
				one := one.(map[string]any)
				// These values are about the build of one revision alone.
				if name := one["name"].(string); !strings.HasPrefix(name, "build.") && name != "source_revision_config.repo_commit_sha" {
					settings = append(settings, setting{name, one["from"], one["to"]})
				}
			}
			var secrets [][2]string
			for _, one := range got.member("secrets").([]any) {
				one := one.(map[string]any)
				secrets = append(secrets, [2]string{one["name"].(string), one["change"].(string)})
			}
			if diff := cmp.Diff(c.settings, settings) + cmp.Diff(c.secrets, secrets); diff != "" {
				t.Errorf("from %s to %s (-want +got):\n%s", c.from, c.to, diff)
			}
		}
	}

	const unknown = "0197a000-0000-7000-8000-0000000000aa"
	at := path + "/revisions/" + after + "/difference"
	wantDetail(t, f.call(t, "GET", at+"?from="+unknown, nil), http.StatusNotFound, "Revision ID "+unknown+" not found.")
	if got := problems(t, f.call(t, "GET", at, nil)); len(got) != 1 || got[0].Loc != "query.from" {
		t.Errorf("got %v", got)
	}
}

// TestResourcesAndReferencesDiffer changes one of two resources, and replaces the value of a secret
// by a reference to the same value.
func TestResourcesAndReferencesDiffer(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	wantStatus(t, f.call(t, "POST", "/v2/secrets", object{"name": "keys", "data": object{"token": "open-sesame"}}), http.StatusCreated)
	body := fromImage("weather")
	body["source_config"] = object{"resource_spec": object{"cpu": 1, "memory_mb": 1024}}
	body["secrets"] = []any{object{"name": "TOKEN", "value": "open-sesame"}}
	path, created := f.create(t, body)
	changed := f.call(t, "PATCH", path, object{
		"source_config": object{"resource_spec": object{"cpu": 2, "memory_mb": 1024}},
		"secrets":       []any{}, "secret_references": []any{object{"name": "TOKEN", "secret_name": "keys", "secret_key": "token"}},
	})
	wantStatus(t, changed, http.StatusOK)
	got := f.call(t, "GET", path+"/revisions/"+changed.id("latest_revision_id")+"/difference?from="+created.id("latest_revision_id"), nil)
	wantStatus(t, got, http.StatusOK)
	want := map[string]any{
		"from": created.id("latest_revision_id"), "to": changed.id("latest_revision_id"),
		"settings": []any{map[string]any{"name": "source_config.resource_spec.cpu", "from": json.Number("1"), "to": json.Number("2")}},
		"secrets":  []any{map[string]any{"name": "TOKEN", "change": "changed"}},
	}
	if diff := cmp.Diff(any(want), got.member()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

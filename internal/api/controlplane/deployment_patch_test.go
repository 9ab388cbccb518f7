package controlplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatMakesARevision sends one member at a time.
func TestWhatMakesARevision(t *testing.T) {
	t.Parallel()
	rule(t, "A PATCH with a non-null value in `source_revision_config`, with `secrets` or `resource_spec` creates a revision; nothing else does.")
	rule(t, "PATCH: an absent or null member changes nothing; the 200 body is the Deployment after the change.")
	for name, c := range map[string]struct {
		source func(string) object
		patch  any
		want   bool
	}{
		"an empty object":                  {fromGit, object{}, false},
		"only nulls":                       {fromGit, object{"name": nil, "source": nil, "source_config": nil, "source_revision_config": nil, "secrets": nil}, false},
		"unknown members":                  {fromGit, object{"revision_source": "github"}, false},
		"empty objects":                    {fromGit, object{"source_config": object{}, "source_revision_config": object{}}, false},
		"objects of nulls":                 {fromGit, object{"source_config": object{"resource_spec": nil}, "source_revision_config": object{"repo_ref": nil, "image_uri": nil}}, false},
		"a read-only member":               {fromGit, object{"source_revision_config": object{"repo_commit_sha": "c0ffee"}}, false},
		"build_on_push":                    {fromGit, object{"source_config": object{"build_on_push": true}}, false},
		"install_command":                  {fromGit, object{"source_config": object{"install_command": "npm ci"}}, false},
		"build_command":                    {fromGit, object{"source_config": object{"build_command": "npm run build"}}, false},
		"custom_url":                       {fromImage, object{"source_config": object{"custom_url": "https://own.test"}}, false},
		"what cannot change":               {fromGit, object{"name": "weather", "source": "github", "source_config": object{"deployment_type": "dev"}}, false},
		"repo_ref":                         {fromGit, object{"source_revision_config": object{"repo_ref": "dev"}}, true},
		"the same repo_ref":                {fromGit, object{"source_revision_config": object{"repo_ref": "main"}}, true},
		"framework_config_path":            {fromGit, object{"source_revision_config": object{"framework_config_path": "b.json"}}, true},
		"image_uri":                        {fromImage, object{"source_revision_config": object{"image_uri": "registry.test/agent:2"}}, true},
		"resource_spec":                    {fromImage, object{"source_config": object{"resource_spec": object{"cpu": 2}}}, true},
		"an empty resource_spec":           {fromImage, object{"source_config": object{"resource_spec": object{}}}, true},
		"secrets":                          {fromGit, object{"secrets": []any{object{"name": "A", "value": "b"}}}, true},
		"no secrets":                       {fromGit, object{"secrets": []any{}}, true},
		"secrets and what makes none with": {fromGit, object{"secrets": []any{}, "source_config": object{"build_on_push": true}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			path, created := f.create(t, c.source("weather"))
			patched := f.call(t, "PATCH", path, c.patch)
			wantStatus(t, patched, http.StatusOK)
			wantShape(t, patched, deploymentShape)
			if got := patched.id("latest_revision_id") != created.id("latest_revision_id"); got != c.want {
				t.Errorf("it made a revision: got %v, want %v", got, c.want)
			}
			list := f.call(t, "GET", path+"/revisions", nil).member("resources").([]any)
			if want := map[bool]int{false: 1, true: 2}[c.want]; len(list) != want {
				t.Errorf("got %d revisions, want %d", len(list), want)
			}
			if diff := cmp.Diff(patched.body, f.call(t, "GET", path, nil).body); diff != "" {
				t.Errorf("read (-patched +got):\n%s", diff)
			}
		})
	}
}

func TestANewRevisionIsLatestAtOnceAndActiveWhenPromoted(t *testing.T) {
	t.Parallel()
	rule(t, "`latest_revision_id` moves at once, `active_revision_id` when a revision is promoted.")
	f := setUp(t)
	path, created := f.create(t, fromImage("weather"))
	first := created.id("latest_revision_id")
	f.deploy(t, created.id("id"))
	read := f.call(t, "GET", path, nil)
	if read.member("active_revision_id") != first || read.id("status") != "READY" {
		t.Errorf("after the promotion: %s", read.text)
	}
	patched := f.call(t, "PATCH", path, object{"source_revision_config": object{"image_uri": "registry.test/agent:2"}})
	if patched.member("active_revision_id") != first || patched.id("latest_revision_id") == first {
		t.Errorf("after the PATCH: %s", patched.text)
	}
	older := f.call(t, "GET", path+"/revisions/"+first, nil)
	if older.id("status") != "DEPLOYED" || older.member("source_revision_config", "image_uri") != "registry.test/agent:1" {
		t.Errorf("the first revision: %s", older.text)
	}
}

// TestImmutableMembersAreA400 changes each immutable member.
func TestImmutableMembersAreA400(t *testing.T) {
	t.Parallel()
	rule(t, "PATCH: an immutable member with another value is a 400 that names it and changes nothing; with the same value it passes; setting one that was null is a change.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for member, patch := range map[string]object{
		"name":                          {"name": "climate"},
		"source":                        {"source": "external_docker"},
		"source_config.integration_id":  {"source_config": object{"integration_id": unknownID}},
		"source_config.repo_url":        {"source_config": object{"repo_url": "https://git.test/other"}},
		"source_config.deployment_type": {"source_config": object{"deployment_type": "prod"}},
		"source_config.listener_id":     {"source_config": object{"listener_id": unknownID}},
		"source_config.listener_config.k8s_namespace": {"source_config": object{"listener_config": object{"k8s_namespace": "agents"}}},
	} {
		patch["source_revision_config"] = object{"repo_ref": "dev"}
		wantDetail(t, f.call(t, "PATCH", path, patch), http.StatusBadRequest, member+" cannot be changed.")
	}
	f.wantUnchanged(t, path, created)
}

// TestWhatWasReadMayBeSentBack sends a complete deployment back after reading it.
func TestWhatWasReadMayBeSentBack(t *testing.T) {
	t.Parallel()
	rule(t, "PATCH with what GET has answered changes nothing.")
	f := setUp(t)
	for _, body := range []object{
		with(fromGit("git"), "source_config.repo_url", "https://user:word@git.test/team/agent"),
		with(fromImage("image"), "secrets", []any{object{"name": "A", "value": "b"}}),
		with(fromImage("own"), "source_config.custom_url", "https://own.test"),
	} {
		path, _ := f.create(t, body)
		read := f.call(t, "GET", path, nil)
		patched := f.call(t, "PATCH", path, read.body)
		wantStatus(t, patched, http.StatusOK)
		for _, member := range []string{"name", "source", "source_config", "source_revision_config", "secrets", "status"} {
			if diff := cmp.Diff(read.member(member), patched.member(member)); diff != "" {
				t.Errorf("%s: %s was changed (-read +patched):\n%s", body["name"], member, diff)
			}
		}
	}
}

func TestSecretsAreReplacedRemovedOrKept(t *testing.T) {
	t.Parallel()
	rule(t, "PATCH replaces all secrets; an empty list removes them; null and absence keep them.")
	f := setUp(t)
	a, b := map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": "é\n\"</script>"}
	path, created := f.create(t, with(fromGit("weather"), "secrets", []any{a}))
	for _, c := range []struct {
		patch object
		want  []any
	}{
		{object{}, []any{a}},
		{object{"secrets": nil}, []any{a}},
		{object{"secrets": []any{b, a}}, []any{b, a}},
		{object{"source_revision_config": object{"repo_ref": "dev"}}, []any{b, a}},
		{object{"secrets": []any{}}, []any{}},
	} {
		patched := f.call(t, "PATCH", path, c.patch)
		if diff := cmp.Diff(any(c.want), patched.member("secrets")); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", c.patch, diff)
		}
	}
	if diff := cmp.Diff(any([]any{a}), created.member("secrets")); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
}

const displayName = "`display_name`: 1 to 255 characters or null, not shown before it is set; changing it makes no revision."

func TestADisplayNameCanBeChanged(t *testing.T) {
	t.Parallel()
	rule(t, displayName)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	if _, shown := created.body.(object)["display_name"]; shown {
		t.Errorf("got %s", created.text)
	}
	for _, step := range []struct{ sent, want any }{{"Wetter ☀", "Wetter ☀"}, {nil, "Wetter ☀"}, {"Weather", "Weather"}} {
		wantStatus(t, f.call(t, "PATCH", path, object{"display_name": step.sent}), http.StatusOK)
		got := f.call(t, "GET", path, nil)
		if got.member("display_name") != step.want || got.id("name") != "weather" || got.id("latest_revision_id") != created.id("latest_revision_id") {
			t.Errorf("sent %v, got %s", step.sent, got.text)
		}
	}
	named := fromGit("named")
	named["display_name"] = "Weather" // names of deployments are unique, display names are not
	if _, created := f.create(t, named); created.member("display_name") != "Weather" {
		t.Errorf("got %s", created.text)
	}
	for sent, kind := range map[any]string{"": "string_too_short", strings.Repeat("x", 256): "string_too_long", 7: "string_type"} {
		want := []problem{{"body.display_name", kind}}
		if diff := cmp.Diff(want, problems(t, f.call(t, "PATCH", path, object{"display_name": sent}))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", sent, diff)
		}
	}
}

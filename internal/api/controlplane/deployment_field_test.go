package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bad is a value that a member cannot have, and the type of the problem. A path leads to a
// place within the value.
type bad struct {
	value any
	kind  string
}

// field is a member of a request, as in the interface's tables.
type field struct {
	path string
	// source is the source that the member applies to, "" for all sources.
	source string
	// good and other are valid values.
	good, other any
	bad         []bad
	// needed members may not be null when a deployment is created, because of a rule.
	needed bool
	patch  patching
}

// patching is the effect of a PATCH with another value.
type patching string

const (
	immutable   patching = "is refused by PATCH"
	changes     patching = "is changed by PATCH, without a revision"
	revises     patching = "makes a revision when PATCHed"
	partOfWhole patching = "is replaced with the whole resource_spec"
)

// rule is the field as a rule of the interface.
func (f field) rule() string {
	words := []string{"`" + strings.TrimPrefix(f.path, "source_config.resource_spec.") + "`: "}
	kinds := map[string]string{
		"string_type": "string", "uuid_parsing": "uuid", "bool_type": "boolean", "int_from_float": "integer", "float_type": "number in tenths",
		"enum": "enum", "model_attributes_type": "object", "dict_type": "object", "list_type": "array",
	}
	for _, b := range f.bad {
		if kind := kinds[b.kind]; kind != "" {
			words = append(words, kind)
			break
		}
	}
	if !f.needed {
		words = append(words, " or null")
	}
	if f.source != "" {
		words = append(words, "; applies to "+f.source)
	}
	return strings.Join(append(words, "; "+string(f.patch)), "")
}

// ofImage reports whether the member belongs to image deployments.
func (f field) ofImage() bool { return strings.HasPrefix(f.source, "external_docker") }

func (f field) body(name string) object {
	if f.ofImage() {
		return fromImage(name)
	}
	return fromGit(name)
}

// Sources that members apply to.
const (
	sized  = "github, internal_docker or internal_source"
	built  = "github or internal_source"
	images = "external_docker or internal_docker"
)

var notText = []bad{{1, "string_type"}, {true, "string_type"}, {[]any{}, "string_type"}}

const someID = "0197a000-0000-7000-8000-00000000000a"

// configFields are the members of SourceConfig and SourceRevisionConfig that a deployment may
// have without other resources. The members of listeners and integrations are tested with
// these.
var configFields = []field{
	{path: "source_config.repo_url", source: "github", good: "https://git.test/a", other: "https://git.test/b", bad: notText, needed: true, patch: immutable},
	{path: "source_config.deployment_type", source: sized, good: "dev", other: "prod", bad: []bad{{"big", "enum"}, {1, "enum"}}, patch: immutable},
	{path: "source_config.build_on_push", source: "github", good: true, other: false, bad: []bad{{"yes", "bool_type"}, {1, "bool_type"}}, patch: changes},
	{path: "source_config.install_command", source: built, good: "npm ci", other: "npm i && npm run x", bad: notText, patch: changes},
	{path: "source_config.build_command", source: built, good: "npm run a", other: "npm run b", bad: notText, patch: changes},
	{path: "source_config.custom_url", source: "external_docker", good: "https://a.test", other: "https://b.test", bad: notText, patch: changes},
	{
		path: "source_config.resource_spec", source: "external_docker", good: object{"cpu": 1.0}, other: object{"memory_mb": 512.0},
		bad: []bad{{"x", "model_attributes_type"}, {[]any{}, "model_attributes_type"}}, patch: revises,
	},
	{path: "source_revision_config.repo_ref", source: "github", good: "main", other: "refs/tags/v1", bad: notText, needed: true, patch: revises},
	{path: "source_revision_config.framework_config_path", source: built, good: "framework.json", other: "b/framework.json", bad: notText, patch: revises},
	{path: "source_revision_config.image_uri", source: images, good: "registry.test/a:1", other: "registry.test/a:2", bad: notText, needed: true, patch: revises},
}

// TestFieldsOfTheConfigurations checks each member against the interface's table.
func TestFieldsOfTheConfigurations(t *testing.T) {
	t.Parallel()
	for _, c := range configFields {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			rule(t, c.rule())
			f := setUp(t)
			path, created := f.create(t, with(c.body("given"), c.path, c.good))
			f.wantMember(t, created, c.path, c.good)
			f.wantPatch(t, c, path)
			if !c.needed {
				nullPath, null := f.create(t, with(c.body("null"), c.path, nil))
				if c.path != "source_config.custom_url" {
					f.wantMember(t, null, c.path, nil)
				}
				set := f.call(t, "PATCH", nullPath, with(object{}, c.path, c.good))
				if refused := set.StatusCode == http.StatusBadRequest; refused != (c.patch == immutable) {
					t.Errorf("setting what was null: got %d %s", set.StatusCode, set.text)
				}
			}
			for _, b := range c.bad {
				answer := f.call(t, "POST", "/v2/deployments", with(c.body("bad"), c.path, b.value))
				if diff := cmp.Diff([]problem{{"body." + c.path, b.kind}}, problems(t, answer)); diff != "" {
					t.Errorf("%v (-want +got):\n%s", b.value, diff)
				}
				answer = f.call(t, "PATCH", path, with(object{}, c.path, b.value))
				if diff := cmp.Diff([]problem{{"body." + c.path, b.kind}}, problems(t, answer)); diff != "" {
					t.Errorf("PATCH of %v (-want +got):\n%s", b.value, diff)
				}
			}
			other := fromImage("other")
			if c.ofImage() {
				other = fromGit("other")
			}
			wantDetail(t, f.call(t, "POST", "/v2/deployments", with(other, c.path, c.good)), http.StatusBadRequest, c.path+" applies to source "+c.source+" only.")
			f.create(t, with(other, c.path, nil))
		})
	}
}

// wantMember checks a member of a shown deployment.
func (f *fixture) wantMember(t *testing.T, r response, path string, want any) {
	t.Helper()
	if diff := cmp.Diff(want, plain(t, r.member(strings.Split(path, ".")...))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// wantPatch checks the effect of a PATCH with null, with the present value and with another
// value.
func (f *fixture) wantPatch(t *testing.T, c field, path string) {
	t.Helper()
	before := f.call(t, "GET", path, nil)
	null := f.call(t, "PATCH", path, with(object{}, c.path, nil))
	if diff := cmp.Diff(before.body, null.body); diff != "" {
		t.Errorf("PATCH of null changed something (-before +after):\n%s", diff)
	}
	same := f.call(t, "PATCH", path, with(object{}, c.path, c.good))
	wantStatus(t, same, http.StatusOK)
	if revised := same.id("latest_revision_id") != before.id("latest_revision_id"); revised != (c.patch == revises) {
		t.Errorf("PATCH of the present value made a revision: %v", revised)
	}
	other := f.call(t, "PATCH", path, with(object{}, c.path, c.other))
	if c.patch == immutable {
		wantDetail(t, other, http.StatusBadRequest, c.path+" cannot be changed.")
		f.wantMember(t, f.call(t, "GET", path, nil), c.path, c.good)
		return
	}
	wantStatus(t, other, http.StatusOK)
	f.wantMember(t, other, c.path, c.other)
	if revised := other.id("latest_revision_id") != same.id("latest_revision_id"); revised != (c.patch == revises) {
		t.Errorf("PATCH of another value made a revision: %v", revised)
	}
}

var (
	replicas = []bad{{1.5, "int_from_float"}, {"1", "int_type"}, {-1, "greater_than_equal"}, {1001, "less_than_equal"}}
	amount   = []bad{{0.5, "int_from_float"}, {"1", "int_type"}, {0, "greater_than_equal"}, {1<<24 + 1, "less_than_equal"}}
	cores    = []bad{{"1", "float_type"}, {0, "greater_than"}, {0.25, "multiple_of"}, {true, "float_type"}, {1025, "less_than_equal"}}
	mapping  = []bad{{[]any{}, "dict_type"}, {"a=b", "dict_type"}}
	array    = []bad{{object{}, "list_type"}, {"a", "list_type"}}
)

// resourceFields are the members of ResourceSpec.
var resourceFields = func() []field {
	var all []field
	add := func(good any, wrong []bad, names ...string) {
		for _, name := range names {
			all = append(all, field{
				path: "source_config.resource_spec." + name, source: "external_docker", good: good, bad: wrong, patch: partOfWhole,
			})
		}
	}
	add(2.0, replicas, "min_scale", "max_scale")
	add(1.5, cores, "cpu", "cpu_limit")
	add(512.0, amount, "memory_mb", "memory_limit_mb")
	add(0.0, replicas, "queue_min_scale", "queue_max_scale")
	add(0.3, cores, "queue_cpu", "queue_cpu_limit")
	add(1.0, amount, "queue_memory_mb", "queue_memory_limit_mb")
	add(1.0, cores, "orchestrator_cpu", "orchestrator_cpu_limit")
	add(1.0, amount, "orchestrator_memory_mb", "orchestrator_memory_limit_mb")
	add(1.0, replicas, "orchestrator_min_scale", "orchestrator_max_scale")
	add(1.0, cores, "executor_cpu", "executor_cpu_limit")
	add(1.0, amount, "executor_memory_mb", "executor_memory_limit_mb", "redis_memory_mb")
	add(object{"team": "a"}, mapping, "labels", "annotations")
	add("runner", append(notText, bad{"A_B", "string_pattern_mismatch"}), "service_account_name")
	add([]any{object{"name": "registry"}}, array, "image_pull_secrets")
	add([]any{object{"name": "a", "emptyDir": object{}}}, array, "volumes")
	add([]any{}, array, "volume_mounts")
	add([]any{object{"name": "a", "image": "b"}}, array, "init_containers", "sidecars")
	add(0.1, cores, "db_cpu", "db_cpu_limit")
	add(1024.0, amount, "db_memory_mb", "db_memory_limit_mb", "db_storage_gi", "db_max_connections")
	return all
}()

// TestFieldsOfTheResourceSpec checks each member against the interface's table.
func TestFieldsOfTheResourceSpec(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for i, c := range resourceFields {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			rule(t, c.rule())
			path, created := f.create(t, with(fromImage(fmt.Sprintf("given%d", i)), c.path, c.good))
			f.wantMember(t, created, c.path, c.good)
			patched := f.call(t, "PATCH", path, with(object{}, c.path, nil))
			f.wantMember(t, patched, "source_config.resource_spec", object{strings.TrimPrefix(c.path, "source_config.resource_spec."): nil})
			for _, b := range c.bad {
				answer := f.call(t, "POST", "/v2/deployments", with(fromImage("bad"), c.path, b.value))
				if diff := cmp.Diff([]problem{{"body." + c.path, b.kind}}, problems(t, answer)); diff != "" {
					t.Errorf("%v (-want +got):\n%s", b.value, diff)
				}
			}
		})
	}
}

// TestCoresAreInTenths creates with each tenth up to ten.
func TestCoresAreInTenths(t *testing.T) {
	t.Parallel()
	rule(t, "CPU values are integers or fractions in steps of 0.1.")
	f := setUp(t)
	for tenths := range 100 {
		cores := fmt.Sprintf("%d.%d", (tenths+1)/10, (tenths+1)%10)
		text := `{"name":"d` + fmt.Sprint(tenths) + `","source":"external_docker","secrets":[],"source_config":{"resource_spec":{"cpu":` + cores + `}},` +
			`"source_revision_config":{"image_uri":"a"}}`
		created := f.call(t, "POST", "/v2/deployments?validate_only=true", text)
		if !strings.Contains(string(created.text), `"resource_spec":{"cpu":`+cores+`}`) {
			t.Errorf("%s: got %d %s", cores, created.StatusCode, created.text)
		}
	}
}

package controlplane_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAResourceSpecHasASize sends annotations, and members that nobody knows.
func TestAResourceSpecHasASize(t *testing.T) {
	t.Parallel()
	rule(t, shapeSize)
	f := setUp(t)
	path, _ := f.create(t, with(fromImage("images"), "source_config.resource_spec", object{"annotations": object{"a": strings.Repeat("x", 130_000)}}))
	for _, spec := range []object{{"annotations": object{"a": strings.Repeat("x", 131_072)}}, {"unknown": strings.Repeat("x", 131_072)}} {
		const rule = "source_config.resource_spec may take 131072 bytes as JSON; this takes "
		for method, answer := range map[string]response{
			"POST":  f.call(t, "POST", "/v2/deployments", with(fromImage("larger"), "source_config.resource_spec", spec)),
			"PATCH": f.call(t, "PATCH", path, object{"source_config": object{"resource_spec": spec}}),
		} {
			if wantError(t, answer, http.StatusBadRequest); !strings.Contains(string(answer.text), rule) {
				t.Errorf("%s: %s", method, answer.text)
			}
		}
	}
}

// TestShapesWithinAResourceSpec breaks one rule of Kubernetes at a time.
func TestShapesWithinAResourceSpec(t *testing.T) {
	t.Parallel()
	container := func(members object) object {
		whole := object{"name": "a", "image": "b"}
		maps.Copy(whole, members)
		return whole
	}
	volumes := []any{object{"name": "data", "emptyDir": object{}}}
	for name, c := range map[string]struct {
		rule string
		spec object
		loc  string
		kind string
	}{
		"a pull secret without name":     {shapeLocalObject, object{"image_pull_secrets": []any{object{}}}, "image_pull_secrets.0.name", "missing"},
		"fewest above most":              {shapeScale, object{"min_scale": 5, "max_scale": 1}, "min_scale", "value_error"},
		"fewest above no replicas":       {shapeScale, object{"min_scale": 1, "max_scale": 0}, "min_scale", "value_error"},
		"a volume without name":          {shapeVolume, object{"volumes": []any{object{}}}, "volumes.0.name", "missing"},
		"a volume with capitals":         {shapeVolume, object{"volumes": []any{object{"name": "Data"}}}, "volumes.0.name", "string_pattern_mismatch"},
		"a volume with a long name":      {shapeVolume, object{"volumes": []any{object{"name": strings.Repeat("a", 64)}}}, "volumes.0.name", "string_too_long"},
		"a volume twice":                 {shapeVolume, object{"volumes": []any{volumes[0], volumes[0]}}, "volumes.1.name", "value_error"},
		"a source that is text":          {shapeVolume, object{"volumes": []any{object{"name": "a", "secret": "s"}}}, "volumes.0.secret", "dict_type"},
		"a mount without name":           {shapeMount, object{"volume_mounts": []any{object{"mountPath": "/"}}}, "volume_mounts.0.name", "missing"},
		"a mount of no volume":           {shapeMountVolume, object{"volume_mounts": []any{object{"name": "data"}}}, "volume_mounts.0.name", "value_error"},
		"a mount of another volume":      {shapeMountVolume, object{"volumes": volumes, "volume_mounts": []any{object{"name": "date"}}}, "volume_mounts.0.name", "value_error"},
		"a container's mount":            {shapeMountVolume, object{"volumes": volumes, "sidecars": []any{container(object{"volumeMounts": []any{object{"name": "x"}}})}}, "sidecars.0.volumeMounts.0.name", "value_error"},
		"a mount path that is a number":  {shapeMount, object{"volume_mounts": []any{object{"name": "a", "mountPath": 1}}}, "volume_mounts.0.mountPath", "string_type"},
		"a propagation of no kind":       {shapeMount, object{"volume_mounts": []any{object{"name": "a", "mountPropagation": "Both"}}}, "volume_mounts.0.mountPropagation", "enum"},
		"readOnly as text":               {shapeMount, object{"volume_mounts": []any{object{"name": "a", "readOnly": "yes"}}}, "volume_mounts.0.readOnly", "bool_type"},
		"a container without image":      {shapeContainer, object{"sidecars": []any{object{"name": "a"}}}, "sidecars.0.image", "missing"},
		"a container without name":       {shapeContainer, object{"init_containers": []any{object{"image": "a"}}}, "init_containers.0.name", "missing"},
		"a container with an underscore": {shapeContainer, object{"sidecars": []any{container(object{"name": "a_b"})}}, "sidecars.0.name", "string_pattern_mismatch"},
		"a container twice":              {shapeContainer, object{"sidecars": []any{container(nil), container(nil)}}, "sidecars.1.name", "value_error"},
		"a pull policy":                  {shapeContainer, object{"sidecars": []any{container(object{"imagePullPolicy": "Often"})}}, "sidecars.0.imagePullPolicy", "enum"},
		"a restart policy":               {shapeContainer, object{"sidecars": []any{container(object{"restartPolicy": "Never"})}}, "sidecars.0.restartPolicy", "enum"},
		"a command that is text":         {shapeContainer, object{"sidecars": []any{container(object{"command": "sh"})}}, "sidecars.0.command", "list_type"},
		"arguments that are numbers":     {shapeContainer, object{"sidecars": []any{container(object{"args": []any{1}})}}, "sidecars.0.args.0", "string_type"},
		"a working directory":            {shapeContainer, object{"sidecars": []any{container(object{"workingDir": 1})}}, "sidecars.0.workingDir", "string_type"},
		"envFrom with text":              {shapeContainer, object{"sidecars": []any{container(object{"envFrom": []any{"a"}})}}, "sidecars.0.envFrom.0", "dict_type"},
		"a security context":             {shapeContainer, object{"sidecars": []any{container(object{"securityContext": "root"})}}, "sidecars.0.securityContext", "dict_type"},
		"a variable without name":        {shapeEnvVar, object{"sidecars": []any{container(object{"env": []any{object{}}})}}, "sidecars.0.env.0.name", "missing"},
		"a variable with a dash":         {shapeEnvVar, object{"sidecars": []any{container(object{"env": []any{object{"name": "A-B"}}})}}, "sidecars.0.env.0.name", "string_pattern_mismatch"},
		"a variable that is a number":    {shapeEnvVar, object{"sidecars": []any{container(object{"env": []any{object{"name": "A", "value": 1}}})}}, "sidecars.0.env.0.value", "string_type"},
		"a value and where it is from": {
			shapeValueFrom, object{"init_containers": []any{container(object{"env": []any{object{"name": "A"}, object{"name": "B", "value": "b", "valueFrom": object{"fieldRef": object{}}}}})}},
			"init_containers.0.env.1.valueFrom", "value_error",
		},
		"limits as a list":  {shapeRequirements, object{"sidecars": []any{container(object{"resources": object{"limits": []any{}}})}}, "sidecars.0.resources.limits", "dict_type"},
		"a request as text": {shapeRequirements, object{"sidecars": []any{container(object{"resources": object{"requests": object{"cpu": 1}}})}}, "sidecars.0.resources.requests.cpu", "string_type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule(t, c.rule)
			f := setUp(t)
			want := []problem{{"body.source_config.resource_spec." + c.loc, c.kind}}
			if diff := cmp.Diff(want, problems(t, f.call(t, "POST", "/v2/deployments", with(fromImage("a"), "source_config.resource_spec", c.spec)))); diff != "" {
				t.Errorf("POST (-want +got):\n%s", diff)
			}
			f.wantNothing(t)
			path, created := f.create(t, fromImage("a"))
			if diff := cmp.Diff(want, problems(t, f.call(t, "PATCH", path, object{"source_config": object{"resource_spec": c.spec}}))); diff != "" {
				t.Errorf("PATCH (-want +got):\n%s", diff)
			}
			f.wantUnchanged(t, path, created)
		})
	}
}

// TestShapesWithinAResourceSpecThatFit creates with values at the limits of the rules.
func TestShapesWithinAResourceSpecThatFit(t *testing.T) {
	t.Parallel()
	rule(t, shapeValueFrom)
	rule(t, shapeMountVolume)
	rule(t, shapeScale)
	f := setUp(t)
	for i, spec := range []object{
		{"min_scale": 2, "max_scale": 2}, {"min_scale": 2}, {"min_scale": 2, "max_scale": nil}, {"max_scale": 0},
		{"volumes": nil, "volume_mounts": nil, "sidecars": nil, "init_containers": nil, "image_pull_secrets": nil},
		{"volumes": []any{object{"name": "0"}}, "volume_mounts": []any{object{"name": "0", "mountPath": "/a"}, object{"name": "0", "mountPath": "/b"}}},
		{"sidecars": []any{object{"name": "a", "image": "b", "env": []any{
			object{"name": "_", "value": "", "valueFrom": object{"fieldRef": object{}}}, object{"name": "A", "value": nil, "valueFrom": object{}},
			object{"name": "B", "value": "b", "valueFrom": nil}, object{"name": "C"},
		}}}},
		{"sidecars": []any{object{"name": "a", "image": "b"}}, "init_containers": []any{object{"name": "c", "image": "d", "restartPolicy": "Always"}}},
	} {
		f.create(t, with(fromImage(fmt.Sprint("d", i)), "source_config.resource_spec", spec))
	}
}

// TestAllProblemsOfAPodAreListed breaks several rules at once.
func TestAllProblemsOfAPodAreListed(t *testing.T) {
	t.Parallel()
	rule(t, "422: `detail` lists every problem with `loc`, `msg` and `type`.")
	f := setUp(t)
	spec := object{
		"volumes":       []any{object{"name": "a"}, object{"name": "a"}},
		"volume_mounts": []any{object{"name": "b"}},
		"sidecars":      []any{object{"name": "a", "image": "b", "volumeMounts": []any{object{"name": "c"}}}},
	}
	want := []problem{
		{"body.source_config.resource_spec.volumes.1.name", "value_error"}, {"body.source_config.resource_spec.volume_mounts.0.name", "value_error"},
		{"body.source_config.resource_spec.sidecars.0.volumeMounts.0.name", "value_error"},
	}
	if diff := cmp.Diff(want, problems(t, f.call(t, "POST", "/v2/deployments", with(fromImage("a"), "source_config.resource_spec", spec)))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

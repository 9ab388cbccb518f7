package pod_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute/ecs/pod"
)

func TestUnsupportedNamesTheField(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`{"service_account_name":"robot"}`:                        "service_account_name",
		`{"image_pull_secrets":[{"name":"REGISTRY"}]}`:            "image_pull_secrets",
		`{"volumes":[{"name":"v","emptyDir":{}}]}`:                "volumes",
		`{"volume_mounts":[{"name":"v","mountPath":"/a"}]}`:       "volume_mounts",
		`{"init_containers":[{"name":"i","image":"i"}]}`:          "init_containers",
		`{"sidecars":[{"name":"s","image":"i"}]}`:                 "sidecars",
		`{"labels":{"slipway.restart":"forged"}}`:                 "labels",
		`{"annotations":{"team":"a","slipway.restart":"forged"}}`: "annotations",
		`{"labels":{"a":"` + strings.Repeat("x", 9<<10) + `"},"annotations":{"a":"` + strings.Repeat("x", 9<<10) + `"}}`: "labels",
	} {
		got := pod.Unsupported(json.RawMessage(spec), []string{"REGISTRY"})
		if len(got) != 1 || !strings.HasPrefix(got[0], "source_config.resource_spec."+want+" cannot be had on ECS: ") || !strings.HasSuffix(got[0], ".") {
			t.Errorf("%.99s: got %q, want a sentence about %s", spec, got, want)
		}
	}
	if got := pod.Unsupported(json.RawMessage(`{"sidecars":[{"name":"s"}],"volumes":[{"name":"v"}]}`), nil); len(got) != 2 {
		t.Errorf("got %q, want a sentence about each", got)
	}
	if got := pod.Unsupported(json.RawMessage(`[]`), nil); len(got) != 1 || !strings.Contains(got[0], "cannot be read") {
		t.Errorf("got %q", got)
	}
}

func TestATaskDefinitionHasRoomForSoManyVariables(t *testing.T) {
	t.Parallel()
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf("VARIABLE_%03d", i)
	}
	if got := pod.Unsupported(nil, names); got != nil {
		t.Errorf("got %q for %d variables", got, len(names))
	}
	for spec, names := range map[string][]string{
		"": slices.Concat(names, names), `{"labels":{"a":"` + strings.Repeat("x", 15<<10) + `"}}`: names,
	} {
		if got := pod.Unsupported(json.RawMessage(spec), names); len(got) != 1 || !strings.HasPrefix(got[0], "secrets and secret_references cannot be had on ECS: ") {
			t.Errorf("%.20s: got %q for %d variables", spec, got, len(names))
		}
	}
}

func TestSupported(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		``, `{}`, `{"cpu":1,"cpu_limit":2,"memory_mb":512,"db_cpu":0.5,"queue_cpu":2,"min_scale":1,"max_scale":3,"labels":{"team":"a"},"annotations":{"a/b":"c"}}`,
		`{"labels":null,"service_account_name":null,"image_pull_secrets":null,"volumes":[],"volume_mounts":[],"init_containers":[],"sidecars":null}`,
	} {
		if got := pod.Unsupported(json.RawMessage(spec), nil); got != nil {
			t.Errorf("%s: got %q", spec, got)
		}
	}
}

package docker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute/docker"
)

func TestUnsupportedNamesTheField(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`{"volumes":[{"name":"v","configMap":{"name":"c"}}]}`:                                                                       "volumes[0]",
		`{"volumes":[{"name":"v","emptyDir":{}},{"name":"w","persistentVolumeClaim":{}}]}`:                                          "volumes[1]",
		`{"volumes":[{"name":"v","emptyDir":{},"nfs":{}}]}`:                                                                         "volumes[0]",
		`{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]}`:                                                                 "volumes[0].emptyDir.sizeLimit",
		`{"volumes":[{"name":"v","emptyDir":{"medium":"HugePages"}}]}`:                                                              "volumes[0].emptyDir.medium",
		`{"volume_mounts":[{"name":"v","mountPath":"/a","subPath":"b"}]}`:                                                           "volume_mounts[0].subPath",
		`{"volume_mounts":[{"name":"v","mountPath":"a"}]}`:                                                                          "volume_mounts[0].mountPath",
		`{"volume_mounts":[{"name":"v","mountPath":"/a","mountPropagation":"Bidirectional"}]}`:                                      "volume_mounts[0].mountPropagation",
		`{"service_account_name":"robot"}`:                                                                                          "service_account_name",
		`{"image_pull_secrets":[{"name":"UNKNOWN"}]}`:                                                                               "image_pull_secrets[0].name",
		`{"labels":{"slipway.revision":"forged"}}`:                                                                                  "labels",
		`{"sidecars":[{"name":"s","image":"i","envFrom":[{}]}]}`:                                                                    "sidecars[0].envFrom",
		`{"sidecars":[{"name":"s","image":"i","env":[{"name":"A","valueFrom":{"secretKeyRef":{}}}]}]}`:                              "sidecars[0].env[0].valueFrom",
		`{"sidecars":[{"name":"s","image":"i","securityContext":{"privileged":true}}]}`:                                             "sidecars[0].securityContext.privileged",
		`{"sidecars":[{"name":"s","image":"i","resources":{"limits":{"memory":"much"}}}]}`:                                          "sidecars[0].resources.limits.memory",
		`{"sidecars":[{"name":"s","image":"i","resources":{"requests":{"nvidia.com/gpu":"1"}}}]}`:                                   "sidecars[0].resources.requests.nvidia.com/gpu",
		`{"init_containers":[{"name":"s","image":"i","restartPolicy":"Always"}]}`:                                                   "init_containers[0].restartPolicy",
		`{"init_containers":[{"name":"s","image":"i","volumeMounts":[{"name":"v","mountPath":"/a","subPathExpr":"$(POD_NAME)"}]}]}`: "init_containers[0].volumeMounts[0].subPathExpr",
	} {
		got := docker.Unsupported(json.RawMessage(spec), []string{"REGISTRY"})
		if len(got) != 1 || !strings.HasPrefix(got[0], "source_config.resource_spec."+want+" cannot be had from this server's container engine: ") {
			t.Errorf("%s: got %q, want a sentence about %s", spec, got, want)
		}
	}
}

func TestSupported(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		``, `{}`, `{"cpu":1,"memory_mb":512,"db_cpu":0.5,"queue_cpu":2,"min_scale":1,"labels":{"team":"a"},"volumes":null,"service_account_name":null}`,
		`{"image_pull_secrets":[{"name":"REGISTRY"}],"volumes":[{"name":"v","emptyDir":{"medium":"Memory","sizeLimit":"64Mi"},"nfs":null},{"name":"w"},{"name":"x","emptyDir":null}],
		  "volume_mounts":[{"name":"v","mountPath":"/a","readOnly":true,"mountPropagation":"None"}],
		  "sidecars":[{"name":"s","image":"i","resources":{"limits":{"cpu":"500m","memory":"1Gi"}},"restartPolicy":"OnFailure",
		    "securityContext":{"runAsUser":1000,"runAsGroup":1000,"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}]}`,
	} {
		if got := docker.Unsupported(json.RawMessage(spec), []string{"REGISTRY"}); got != nil {
			t.Errorf("%s: got %q", spec, got)
		}
	}
}

package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wholeSpec has every member of the interface's ResourceSpec and its nested shapes, and some
// unknown members.
const wholeSpec = `{
	"min_scale": 0, "max_scale": 10, "cpu": 0.1, "cpu_limit": 2, "memory_mb": 512, "memory_limit_mb": 1024,
	"queue_min_scale": 1, "queue_max_scale": 2, "queue_cpu": 1.5, "queue_cpu_limit": 3.0, "queue_memory_mb": 256, "queue_memory_limit_mb": 512,
	"orchestrator_cpu": 1, "orchestrator_cpu_limit": 1, "orchestrator_memory_mb": 1, "orchestrator_memory_limit_mb": 1,
	"orchestrator_min_scale": 1, "orchestrator_max_scale": 1,
	"executor_cpu": 1, "executor_cpu_limit": 1, "executor_memory_mb": 1, "executor_memory_limit_mb": 1,
	"redis_memory_mb": 128, "labels": {"team": "a<b>&c", "": ""}, "annotations": {"slipway.test/x": "y"},
	"service_account_name": "agent.runner", "image_pull_secrets": [{"name": "registry", "unknown": 1}],
	"volumes": [
		{"name": "a", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}, "secret": null},
		{"name": "b", "secret": {"secretName": "s"}}, {"name": "c", "emptyDir": {}}, {"name": "d", "persistentVolumeClaim": {"claimName": "p"}},
		{"name": "e", "nfs": {"server": "n", "path": "/"}}, {"name": "f", "projected": {"sources": []}}, {"name": "g", "downwardAPI": {"items": []}},
		{"name": "h", "csi": {"driver": "d", "size": 12345678901234567890}, "hostPath": {"path": "/unknown"}}
	],
	"volume_mounts": [
		{"name": "a", "mountPath": "/a", "subPath": "s", "mountPropagation": "HostToContainer", "readOnly": true, "subPathExpr": "$(X)"}, {"name": "b"}
	],
	"init_containers": [{
		"name": "init", "image": "busybox", "imagePullPolicy": "Always", "command": ["sh", "-c"], "args": ["true"], "workingDir": "/",
		"env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, {"name": "C", "value": null}],
		"envFrom": [{"configMapRef": {"name": "c"}}, {}],
		"resources": {"limits": {"cpu": "1", "nvidia.test/gpu": "1"}, "requests": {"memory": "64Mi"}},
		"volumeMounts": [{"name": "a", "mountPath": "/m"}], "securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}},
		"livenessProbe": {"httpGet": {"port": 80}}
	}],
	"sidecars": [{"name": "proxy", "image": "envoy", "restartPolicy": "OnFailure", "resources": null, "env": null, "command": []}],
	"db_cpu": 0.5, "db_cpu_limit": 1, "db_memory_mb": 1024, "db_memory_limit_mb": 2048, "db_storage_gi": 10, "db_max_connections": 100,
	"redis_cpu": 0.25, "unknown": {"nested": [1, 2.50, 1e3, "</x>"]}
}`

// TestAResourceSpecIsKeptAsItWasSent reads it back from every answer that contains it.
func TestAResourceSpecIsKeptAsItWasSent(t *testing.T) {
	t.Parallel()
	rule(t, "A ResourceSpec is kept and shown as it was sent, unknown members and the digits of numbers included; defaults are not shown.")
	f := setUp(t)
	want := decoded(t, wholeSpec)
	body := with(fromImage("weather"), "source_config.resource_spec", want)
	path, created := f.create(t, body)
	list := f.call(t, "GET", "/v2/deployments", nil)
	listed := list.member("resources").([]any)[0].(map[string]any)["source_config"].(map[string]any)["resource_spec"]
	for name, got := range map[string]any{
		"create": created.member("source_config", "resource_spec"),
		"get":    f.call(t, "GET", path, nil).member("source_config", "resource_spec"),
		"patch":  f.call(t, "PATCH", path, object{"source_config": object{"resource_spec": want}}).member("source_config", "resource_spec"),
		"list":   listed,
	} {
		if diff := cmp.Diff(want, plain(t, got)); diff != "" {
			t.Errorf("%s (-sent +got):\n%s", name, diff)
		}
	}
}

// TestNumbersOfAResourceSpecKeepTheirDigits compares the texts: a number must not change by a
// conversion to a float.
func TestNumbersOfAResourceSpecKeepTheirDigits(t *testing.T) {
	t.Parallel()
	rule(t, "A ResourceSpec is kept and shown as it was sent, unknown members and the digits of numbers included; defaults are not shown.")
	f := setUp(t)
	const spec = `{"cpu":0.1,"volumes":[{"name":"a","csi":{"size":12345678901234567890,"ratio":0.10}}],"unknown":1.50}`
	text := fmt.Sprintf(`{"name":"weather","source":"external_docker","secrets":[],"source_config":{"resource_spec":%s},"source_revision_config":{"image_uri":"a"}}`, spec)
	created := f.call(t, "POST", "/v2/deployments", text)
	if !strings.Contains(string(created.text), `"resource_spec":`+spec) {
		t.Errorf("got %s\nwant %s in it", created.text, spec)
	}
}

func TestAResourceSpecIsReplacedWhole(t *testing.T) {
	t.Parallel()
	rule(t, "A non-null `resource_spec` replaces the one before as a whole.")
	f := setUp(t)
	path, _ := f.create(t, with(fromImage("weather"), "source_config.resource_spec", object{"cpu": 1, "labels": object{"a": "b"}}))
	for _, want := range []any{object{"memory_mb": 512.0}, object{}, object{"cpu": nil}} {
		patched := f.call(t, "PATCH", path, object{"source_config": object{"resource_spec": want}})
		if diff := cmp.Diff(want, plain(t, patched.member("source_config", "resource_spec"))); diff != "" {
			t.Errorf("resource_spec (-want +got):\n%s", diff)
		}
	}
	kept := f.call(t, "PATCH", path, object{"source_config": object{"resource_spec": nil, "custom_url": "https://own.test"}})
	if diff := cmp.Diff(any(object{"cpu": nil}), plain(t, kept.member("source_config", "resource_spec"))); diff != "" {
		t.Errorf("after null (-want +got):\n%s", diff)
	}
}

// TestAResourceSpecIsStoredAsItWasRead sends numbers, names and members that programs could
// read in more than one way. The text that is stored has one meaning only.
func TestAResourceSpecIsStoredAsItWasRead(t *testing.T) {
	t.Parallel()
	rule(t, "Read-only members, unknown members and unknown query parameters are ignored.")
	f := setUp(t)
	for i, c := range []struct{ sent, want string }{
		{`{"memory_mb":512.0}`, `{"memory_mb":512}`},
		{`{"memory_mb":5e2,"cpu":1.50}`, `{"memory_mb":500,"cpu":1.50}`},
		{`{"min_scale":1.0,"max_scale":20e-1}`, `{"min_scale":1,"max_scale":2}`},
		{`{"min_scale":"x","min_scale":1}`, `{"min_scale":1}`},
		{`{"Memory_MB":"512Mi","Cpu":"x","Volumes":5,"Min_Scale":9}`, `{}`},
		{`{"memory_mb":null,"labels":{"A":"a","a":"b"}}`, `{"memory_mb":null,"labels":{"A":"a","a":"b"}}`},
		{`{"unknown":{"Cpu":1.0,"Cpu":2.0},"cpu":1}`, `{"unknown":{"Cpu":1.0,"Cpu":2.0},"cpu":1}`},
		{`{"volumes":[{"Name":5,"name":"data","emptyDir":{"sizeLimit":"1Gi","x":1.0}}]}`, `{"volumes":[{"name":"data","emptyDir":{"sizeLimit":"1Gi","x":1.0}}]}`},
	} {
		text := fmt.Sprintf(`{"name":"d%d","source":"external_docker","secrets":[],"source_config":{"resource_spec":%s},"source_revision_config":{"image_uri":"a"}}`, i, c.sent)
		created := f.call(t, "POST", "/v2/deployments", text)
		if created.StatusCode != http.StatusCreated || !strings.Contains(string(created.text), `"resource_spec":`+c.want+`}`) {
			t.Errorf("%s: got %d %s", c.sent, created.StatusCode, created.text)
		}
	}
}

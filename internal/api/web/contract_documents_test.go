package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/agentserver/model"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
)

// bound receives the values that the generated handlers bind.
type bound struct {
	controlplane.StrictServerInterface
	got chan any
}

func (b bound) CreateDeployment(_ context.Context, r controlplane.CreateDeploymentRequestObject) (controlplane.CreateDeploymentResponseObject, error) {
	b.got <- r.Body
	return controlplane.CreateDeployment201JSONResponse{}, nil
}

func (b bound) PatchDeployment(_ context.Context, r controlplane.PatchDeploymentRequestObject) (controlplane.PatchDeploymentResponseObject, error) {
	b.got <- r.Body
	return nil, fault.New(fault.Conflict, "busy")
}

func (b bound) ListDeployments(_ context.Context, r controlplane.ListDeploymentsRequestObject) (controlplane.ListDeploymentsResponseObject, error) {
	b.got <- r.Params
	return controlplane.ListDeployments200JSONResponse{Resources: []controlplane.Deployment{}}, nil
}

// newControlPlane serves the generated control plane, assembled in the same way as in the
// server.
func newControlPlane(t *testing.T) (*web.Mux, bound) {
	t.Helper()
	contract, err := web.Load(openapi.ControlPlane, 10<<20)
	check.Must(t, err)
	mux, _ := newMux()
	handlers := bound{got: make(chan any, 1)}
	strict := controlplane.NewStrictHandlerWithOptions(handlers, nil, controlplane.StrictHTTPServerOptions{
		RequestErrorHandlerFunc: mux.RequestError, ResponseErrorHandlerFunc: mux.Error,
	})
	for _, base := range []string{"", "/api-host"} {
		controlplane.HandlerWithOptions(strict, controlplane.StdHTTPServerOptions{
			BaseURL: base, BaseRouter: mux.Routes(contract, base, nil), ErrorHandlerFunc: mux.RequestError,
		})
	}
	return mux, handlers
}

// createBody is a create request with members put into source_config.
func createBody(sourceConfig string) string {
	return `{"name":"a","source":"github","source_config":{` + sourceConfig + `},"source_revision_config":{},"secrets":[]}`
}

func resourceSpec(members string) string { return createBody(`"resource_spec":{` + members + `}`) }

func TestDeploymentCreateRequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, loc, kind string }{
		{createBody(``), "", ""},
		{`{"name":"A.b_c-9","source":"external_docker","source_config":{},"source_revision_config":{},"secrets":[]}`, "", ""},
		{`{"name":"` + strings.Repeat("a", 63) + `","source":"github","source_config":{},"source_revision_config":{},"secrets":[{"name":"A","value":""}]}`, "", ""},
		{`{"name":"` + strings.Repeat("a", 64) + `","source":"github","source_config":{},"source_revision_config":{},"secrets":[]}`, `["body","name"]`, "string_too_long"},
		{`{"name":"-a","source":"github","source_config":{},"source_revision_config":{},"secrets":[]}`, `["body","name"]`, "string_pattern_mismatch"},
		{`{"name":"a","source":"gitlab","source_config":{},"source_revision_config":{},"secrets":[]}`, `["body","source"]`, "enum"},
		{`{"name":"a","source":"github","source_config":null,"source_revision_config":{},"secrets":[]}`, `["body","source_config"]`, "model_attributes_type"},
		{`{"name":"a","source":"github","source_config":{},"source_revision_config":{},"secrets":[{"name":"A"}]}`, `["body","secrets",0,"value"]`, "missing"},
		{`{"name":"a","source":"github","source_config":{},"source_revision_config":{},"secrets":[{"name":"A=B","value":"x"}]}`, `["body","secrets",0,"name"]`, "string_pattern_mismatch"},
		{`{"name":"a","source":"github","source_config":{},"source_revision_config":{},"secrets":[{"name":"A","value":"x\u0000"}]}`, `["body","secrets",0,"value"]`, "string_pattern_mismatch"},
		{`{"name":"a","source":"github","source_config":{},"source_revision_config":{"repo_ref":1},"secrets":[]}`, `["body","source_revision_config","repo_ref"]`, "string_type"},
		{createBody(`"integration_id":"x"`), `["body","source_config","integration_id"]`, "uuid_parsing"},
		{createBody(`"deployment_type":"big"`), `["body","source_config","deployment_type"]`, "enum"},
		{createBody(`"build_on_push":"yes"`), `["body","source_config","build_on_push"]`, "bool_type"},
		{createBody(`"listener_config":{"k8s_namespace":1}`), `["body","source_config","listener_config","k8s_namespace"]`, "string_type"},
		{createBody(`"integration_id":null,"repo_url":null,"deployment_type":null,"build_on_push":null,"custom_url":null,"resource_spec":null,"listener_id":null,"listener_config":null,"install_command":null,"build_command":null`), "", ""},
		{resourceSpec(`"cpu":1,"cpu_limit":0.3,"db_cpu":1.5,"min_scale":0,"memory_mb":1,"labels":{"a":"b"},"annotations":null`), "", ""},
		{resourceSpec(`"cpu":0.25`), `["body","source_config","resource_spec","cpu"]`, "multiple_of"},
		{resourceSpec(`"cpu":-1`), `["body","source_config","resource_spec","cpu"]`, "greater_than"},
		{resourceSpec(`"min_scale":-1`), `["body","source_config","resource_spec","min_scale"]`, "greater_than_equal"},
		{resourceSpec(`"min_scale":1.5`), `["body","source_config","resource_spec","min_scale"]`, "int_from_float"},
		{resourceSpec(`"max_scale":2147483648`), `["body","source_config","resource_spec","max_scale"]`, "less_than_equal"},
		{resourceSpec(`"redis_memory_mb":0`), `["body","source_config","resource_spec","redis_memory_mb"]`, "greater_than_equal"},
		{resourceSpec(`"labels":{"a":1}`), `["body","source_config","resource_spec","labels","a"]`, "string_type"},
		{resourceSpec(`"service_account_name":"A"`), `["body","source_config","resource_spec","service_account_name"]`, "string_pattern_mismatch"},
		{resourceSpec(`"image_pull_secrets":[{}]`), `["body","source_config","resource_spec","image_pull_secrets",0,"name"]`, "missing"},
		{resourceSpec(`"volumes":[{"name":"Data","emptyDir":{"x":1},"nfs":null}]`), `["body","source_config","resource_spec","volumes",0,"name"]`, "string_pattern_mismatch"},
		{resourceSpec(`"volumes":[{"name":"data","emptyDir":[]}]`), `["body","source_config","resource_spec","volumes",0,"emptyDir"]`, "dict_type"},
		{resourceSpec(`"volume_mounts":[{"name":"data","mountPath":"/d","readOnly":1}]`), `["body","source_config","resource_spec","volume_mounts",0,"readOnly"]`, "bool_type"},
		{resourceSpec(`"volume_mounts":[{"name":"data","mountPropagation":"Some"}]`), `["body","source_config","resource_spec","volume_mounts",0,"mountPropagation"]`, "enum"},
		{resourceSpec(`"sidecars":[{"name":"a"}]`), `["body","source_config","resource_spec","sidecars",0,"image"]`, "missing"},
		{resourceSpec(`"sidecars":[{"name":"a","image":"i","imagePullPolicy":"Sometimes"}]`), `["body","source_config","resource_spec","sidecars",0,"imagePullPolicy"]`, "enum"},
		{resourceSpec(`"sidecars":[{"name":"a","image":"i","restartPolicy":"Never"}]`), `["body","source_config","resource_spec","sidecars",0,"restartPolicy"]`, "enum"},
		{resourceSpec(`"init_containers":[{"name":"a","image":"i","env":[{"name":"1A"}]}]`), `["body","source_config","resource_spec","init_containers",0,"env",0,"name"]`, "string_pattern_mismatch"},
		{resourceSpec(`"init_containers":[{"name":"a","image":"i","envFrom":["x"]}]`), `["body","source_config","resource_spec","init_containers",0,"envFrom",0]`, "dict_type"},
		{resourceSpec(`"init_containers":[{"name":"a","image":"i","resources":{"limits":{"cpu":1}}}]`), `["body","source_config","resource_spec","init_containers",0,"resources","limits","cpu"]`, "string_type"},
		{resourceSpec(`"init_containers":[{"name":"a","image":"i","command":["x"],"args":null,"workingDir":"/","env":[{"name":"A","value":null,"valueFrom":{"fieldRef":{}}}],"envFrom":[{}],"resources":null,"volumeMounts":[],"securityContext":{},"restartPolicy":"Always","imagePullPolicy":null}]`), "", ""},
	} {
		t.Run(tt.body, func(t *testing.T) {
			t.Parallel()
			mux, _ := newControlPlane(t)
			w := send(t, mux, http.MethodPost, "/v2/deployments", tt.body)
			if tt.kind == "" {
				if w.Code != http.StatusCreated {
					t.Errorf("got %d %s, want 201", w.Code, w.Body)
				}
				return
			}
			got := problemsOf(t, w)
			if len(got) != 1 || got[0].Loc != tt.loc || got[0].Type != tt.kind {
				t.Errorf("got %v, want one %s at %s", got, tt.kind, tt.loc)
			}
		})
	}
}

func TestGeneratedHandlersBindWhatWasChecked(t *testing.T) {
	t.Parallel()
	mux, handlers := newControlPlane(t)
	send(t, mux, http.MethodPost, "/api-host/v2/deployments", `{"name":"a","NAME":"!","source":"external_docker",
		"source_config":{"listener_id":"019A7D4E-0000-7000-8000-00000000000A","resource_spec":{"min_scale":1,"cpu":0.5},"Repo_URL":"x"},
		"source_revision_config":{"image_uri":"i"},"secrets":[{"name":"A","value":"v"}]}`)
	listener, image := "019a7d4e-0000-7000-8000-00000000000a", "i"
	want := &controlplane.DeploymentCreateRequest{
		Name: "a", Source: controlplane.SourceExternalDocker,
		SourceConfig: controlplane.SourceConfigRequest{
			ListenerID: &listener, ResourceSpec: json.RawMessage(`{"min_scale":1,"cpu":0.5}`),
		},
		SourceRevisionConfig: controlplane.SourceRevisionConfigRequest{ImageURI: &image},
		Secrets:              []controlplane.Secret{{Name: "A", Value: "v"}},
	}
	if diff := cmp.Diff(any(want), <-handlers.got); diff != "" {
		t.Errorf("create (-want +got):\n%s", diff)
	}

	const deployment = "/v2/deployments/019a7d4e-0000-7000-8000-000000000001"
	for body, want := range map[string]*controlplane.DeploymentPatchRequest{
		`{}`: {},
		`{"secrets":null,"source_config":null,"name":null,"source":null}`: {},
		`{"secrets":[]}`:                         {Secrets: &[]controlplane.Secret{}},
		`{"source_config":{"resource_spec":{}}}`: {SourceConfig: &controlplane.SourceConfigRequest{ResourceSpec: json.RawMessage(`{}`)}},
	} {
		if w := send(t, mux, http.MethodPatch, deployment, body); w.Code != http.StatusConflict {
			t.Errorf("patch: got %d %s, want the handler's 409", w.Code, w.Body)
		}
		if diff := cmp.Diff(any(want), <-handlers.got); diff != "" {
			t.Errorf("patch %s (-want +got):\n%s", body, diff)
		}
	}

	w := send(t, mux, http.MethodGet, "/v2/deployments?limit=5&offset=10", "")
	five, ten := 5, 10
	if diff := cmp.Diff(any(controlplane.ListDeploymentsParams{Limit: &five, Offset: &ten}), <-handlers.got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if got, want := strings.TrimSpace(w.Body.String()), `{"cursor":null,"offset":0,"resources":[]}`; got != want {
		t.Errorf("list: got %s, want %s", got, want)
	}
}

// TestResponsesShowNull checks that every nullable member of a response is present, as null
// when it has no value.
func TestResponsesShowNull(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value any
		want  string
	}{
		{controlplane.SourceRevisionConfig{}, `{"framework_config_path":null,"image_uri":null,"repo_commit_sha":null,"repo_ref":null,"source_tarball_path":null,"tracked_packages":null}`},
		{controlplane.SourceConfig{}, `{"build_command":null,"build_on_push":null,"custom_url":null,"deployment_type":null,"install_command":null,` +
			`"integration_id":null,"listener_config":null,"listener_id":null,"repo_url":null,"resource_spec":null}`},
		{model.Checkpoint{}, `{"checkpoint_id":null,"checkpoint_map":null,"checkpoint_ns":null,"thread_id":null}`},
	} {
		got, err := json.Marshal(tt.value)
		check.Must(t, err)
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%T (-want +got):\n%s", tt.value, diff)
		}
	}
}

func TestRunCreateRequest(t *testing.T) {
	t.Parallel()
	contract, err := web.Load(openapi.AgentServer, 25<<20)
	check.Must(t, err)
	mux, _ := newMux()
	agentserver.HandlerWithOptions(agentserver.NewStrictHandler(runs{}, nil), agentserver.StdHTTPServerOptions{BaseRouter: mux.Routes(contract, "", nil)})
	for _, tt := range []struct{ members, loc, kind string }{
		{`"input":[1]`, "", ""},
		{`"input":null,"command":null,"checkpoint":{"checkpoint_map":null},"checkpoint_id":null,"metadata":null,"config":null,"context":null,
			"webhook":null,"interrupt_before":null,"interrupt_after":null,"stream_mode":null,"stream_subgraphs":null,"stream_resumable":null,
			"feedback_keys":null,"multitask_strategy":null,"if_not_exists":null,"after_seconds":null,"durability":null,"on_disconnect":null`, "", ""},
		{`"stream_mode":"values","interrupt_before":"*","interrupt_after":["a"],"after_seconds":1.5,"webhook":"/hook"`, "", ""},
		{`"command":{"update":null,"resume":null,"goto":[],"graph":null}`, "", ""},
		{`"command":{"lg_name":"Command","update":[["a",1]],"goto":{"lg_name":"Send","node":"a","args":1}}`, "", ""},
		{`"command":{"resume":false,"goto":["a",{"node":"b","input":null}]}`, "", ""},
		{`"config":{"tags":null,"recursion_limit":null,"configurable":null,"metadata":null}`, "", ""},
		{`"config":{"tags":["a"],"recursion_limit":25.0,"run_name":"r","callbacks":[],"max_concurrency":1,"run_id":null}`, "", ""},
		{`"stream_mode":"all"`, `["body","stream_mode"]`, "enum"},
		{`"stream_mode":["values","all"]`, `["body","stream_mode",1]`, "enum"},
		{`"interrupt_before":"node"`, `["body","interrupt_before"]`, "enum"},
		{`"command":"go"`, `["body","command"]`, "model_attributes_type"},
		{`"command":{"goto":5}`, `["body","command","goto"]`, "string_type"},
		{`"command":{"goto":{}}`, `["body","command","goto","node"]`, "missing"},
		{`"command":{"goto":["a",5]}`, `["body","command","goto",1]`, "string_type"},
		{`"command":{"goto":[{"node":5}]}`, `["body","command","goto",0,"node"]`, "string_type"},
		{`"command":{"update":5}`, `["body","command","update"]`, "dict_type"},
		{`"config":"zz"`, `["body","config"]`, "model_attributes_type"},
		{`"config":{"configurable":[1]}`, `["body","config","configurable"]`, "dict_type"},
		{`"config":{"metadata":"zz"}`, `["body","config","metadata"]`, "dict_type"},
		{`"config":{"tags":5}`, `["body","config","tags"]`, "list_type"},
		{`"config":{"tags":["a",1]}`, `["body","config","tags",1]`, "string_type"},
		{`"config":{"recursion_limit":"a"}`, `["body","config","recursion_limit"]`, "int_type"},
		{`"config":{"recursion_limit":1.5}`, `["body","config","recursion_limit"]`, "int_from_float"},
		{`"config":{"recursion_limit":0}`, `["body","config","recursion_limit"]`, "greater_than_equal"},
		{`"checkpoint":{"thread_id":"x"}`, `["body","checkpoint","thread_id"]`, "uuid_parsing"},
		{`"metadata":[]`, `["body","metadata"]`, "dict_type"},
		{`"webhook":""`, `["body","webhook"]`, "string_too_short"},
		{`"feedback_keys":[1]`, `["body","feedback_keys",0]`, "string_type"},
		{`"multitask_strategy":"drop"`, `["body","multitask_strategy"]`, "enum"},
		{`"if_not_exists":"raise"`, `["body","if_not_exists"]`, "enum"},
		{`"after_seconds":-1`, `["body","after_seconds"]`, "greater_than_equal"},
		{`"durability":"never"`, `["body","durability"]`, "enum"},
		{`"on_disconnect":"stop"`, `["body","on_disconnect"]`, "enum"},
		{`"stream_subgraphs":"no"`, `["body","stream_subgraphs"]`, "bool_type"},
	} {
		t.Run(tt.members, func(t *testing.T) {
			t.Parallel()
			w := send(t, mux, http.MethodPost, "/threads/019a7d4e-0000-7000-8000-000000000001/runs", fmt.Sprintf(`{"assistant_id":"agent",%s}`, tt.members))
			if tt.kind == "" {
				if w.Code != http.StatusOK {
					t.Errorf("got %d %s, want 200", w.Code, w.Body)
				}
				return
			}
			got := problemsOf(t, w)
			if len(got) != 1 || got[0].Loc != tt.loc || got[0].Type != tt.kind {
				t.Errorf("got %v, want one %s at %s", got, tt.kind, tt.loc)
			}
		})
	}
	if w := send(t, mux, http.MethodPost, "/threads", ""); w.Code != http.StatusOK {
		t.Errorf("a thread without a body: got %d %s, want 200", w.Code, w.Body)
	}
}

package rollouts_test

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/host/stack/rollouts"
	"github.com/slipway-run/slipway/internal/seam/build/codebuild"
	buildremote "github.com/slipway-run/slipway/internal/seam/build/remote"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	computeremote "github.com/slipway-run/slipway/internal/seam/compute/remote"
)

// account is the environment of a stack in an AWS account, in which services has KMS and an empty
// table.
func account(t *testing.T) map[string]string {
	t.Helper()
	services := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.Header().Set("Connection", "close")
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GenerateDataKey") {
			key := base64.StdEncoding.EncodeToString(make([]byte, 32))
			fmt.Fprintf(w, `{"CiphertextBlob": %q, "Plaintext": %q, "KeyId": "key"}`, key, key)
			return
		}
		fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(services.Close)
	return map[string]string{
		"AWS_REGION": "eu-north-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": services.URL,
		"SLIPWAY_TABLE": "slipway", "SLIPWAY_KMS_KEY": "alias/slipway", "SLIPWAY_STATE_MACHINES": "arn:aws:states:eu-north-1:1:stateMachine:slipway-",
		"SLIPWAY_NAME_PREFIX": "slipway", "SLIPWAY_ECS_CLUSTER": "agents", "SLIPWAY_ECS_SUBNETS": "subnet-1,subnet-2",
		"SLIPWAY_ECS_SECURITY_GROUPS": "sg-1", "SLIPWAY_ECS_EXECUTION_ROLE": "arn:aws:iam::1:role/execution", "SLIPWAY_ECS_LOG_GROUP": "/slipway",
		"SLIPWAY_ECS_INFRASTRUCTURE_ROLE": "arn:aws:iam::1:role/infrastructure", "SLIPWAY_VPC": "vpc-1",
		"SLIPWAY_ALB_LISTENER": "arn:aws:elasticloadbalancing:eu-north-1:1:listener/app/slipway/1/2", "SLIPWAY_ALB_URL": "http://alb.test",
		"SLIPWAY_CODEBUILD_PROJECT": "slipway", "SLIPWAY_WORKSPACE_BUILDS": "5", "SLIPWAY_BUILD_TOOLS": "arn:aws:lambda:eu-north-1:1:layer:slipway-build-tools:1", "SLIPWAY_ECR_REPOSITORY": "1.dkr.ecr.eu-north-1.amazonaws.com/slipway",
		"SLIPWAY_PUSH_ROLE": "arn:aws:iam::1:role/push", "SLIPWAY_UPLOAD_BUCKET": "slipway-uploads",
	}
}

func open(environment map[string]string, needs ...stack.Need) (*rollouts.Rollouts, error) {
	s, err := stack.Open(func(name string) string { return environment[name] }, slog.New(slog.DiscardHandler), needs...)
	return rollouts.Of(s), err
}

// TestWhatIsMissingIsNamed removes the variables that each kind of stack needs.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     map[string]string
		without string
		need    stack.Need
		want    string
	}{
		"all is there":                  {nil, "", rollouts.Need, ""},
		"a rollout, no project":         {nil, "SLIPWAY_CODEBUILD_PROJECT", rollouts.Need, "SLIPWAY_CODEBUILD_PROJECT"},
		"a rollout, no bucket":          {nil, "SLIPWAY_UPLOAD_BUCKET", rollouts.Need, "SLIPWAY_UPLOAD_BUCKET"},
		"a rollout, no role to push":    {nil, "SLIPWAY_PUSH_ROLE", rollouts.Need, "SLIPWAY_PUSH_ROLE"},
		"a rollout, no load balancer":   {nil, "SLIPWAY_ALB_URL", rollouts.Need, "SLIPWAY_ALB_URL"},
		"a rollout, no task role":       {nil, "SLIPWAY_ECS_TASK_ROLE", rollouts.Need, ""},
		"a runner, no load balancer":    {nil, "SLIPWAY_ALB_URL", agents.NeedTarget, "SLIPWAY_ALB_URL"},
		"a runner, no project":          {nil, "SLIPWAY_CODEBUILD_PROJECT", agents.NeedTarget, ""},
		"express, no load balancer":     {map[string]string{"SLIPWAY_COMPUTE": "express"}, "SLIPWAY_ALB_URL", rollouts.Need, ""},
		"express, no role":              {map[string]string{"SLIPWAY_COMPUTE": "express"}, "SLIPWAY_ECS_INFRASTRUCTURE_ROLE", agents.NeedTarget, "SLIPWAY_ECS_INFRASTRUCTURE_ROLE"},
		"a machine, no project":         {map[string]string{"SLIPWAY_AGENT_HOST": "http://127.0.0.1:1"}, "SLIPWAY_CODEBUILD_PROJECT", rollouts.Need, ""},
		"a machine, no load balancer":   {map[string]string{"SLIPWAY_AGENT_HOST": "http://127.0.0.1:1"}, "SLIPWAY_ALB_URL", agents.NeedTarget, ""},
		"a machine still needs a table": {map[string]string{"SLIPWAY_AGENT_HOST": "http://127.0.0.1:1"}, "SLIPWAY_TABLE", stack.NeedTable, "SLIPWAY_TABLE"},
	} {
		environment := account(t)
		maps.Copy(environment, c.set)
		delete(environment, c.without)
		_, err := open(environment, c.need)
		if got := fmt.Sprint(err); (c.want == "" && err != nil) || (c.want != "" && !strings.HasSuffix(got, ": "+c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestWhereAgentsRun opens the place for agents of each kind of stack.
func TestWhereAgentsRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     map[string]string
		sources int
		check   func(compute.Target, any) bool
	}{
		"an account": {nil, 4, func(target compute.Target, builder any) bool {
			_, isECS := target.(*ecs.Target)
			_, isCodeBuild := builder.(*codebuild.Builder)
			return isECS && isCodeBuild
		}},
		"express": {map[string]string{"SLIPWAY_COMPUTE": "express"}, 4, func(target compute.Target, _ any) bool {
			_, isECS := target.(*ecs.Target)
			return isECS
		}},
		"a machine": {map[string]string{"SLIPWAY_AGENT_HOST": "http://127.0.0.1:1"}, 2, func(target compute.Target, builder any) bool {
			_, isRemote := target.(*computeremote.Target)
			_, isRemoteBuilder := builder.(*buildremote.Builder)
			return isRemote && isRemoteBuilder
		}},
	} {
		environment := account(t)
		maps.Copy(environment, c.set)
		a, err := open(environment, rollouts.Need)
		if err != nil {
			t.Fatal(err)
		}
		invoked, err := a.Target(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		work, err := a.Rollout(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		target := work.Targets[revision.GitHub]
		if !c.check(target, work.Builder) || len(work.Targets) != c.sources {
			t.Errorf("%s: got %T, %T, %v", name, target, work.Builder, work.Targets)
		}
		for use, got := range map[string]compute.Target{"runs": invoked, "rollouts at listeners": work.Listeners} {
			if _, ok := got.(*listener.Target); !ok {
				t.Errorf("%s: %s use %T", name, use, got)
			}
		}
		if takesImages := work.Targets[revision.InternalDocker] != nil; (work.Images != nil) != takesImages {
			t.Errorf("%s: it has the registry %v, and takes images: %t", name, work.Images, takesImages)
		}
		if again, err := a.Rollout(t.Context()); again != work || err != nil {
			t.Errorf("%s: the second call made another (%v)", name, err)
		}
		if err := work.Logs.Remove("revision"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWithoutANetworkThereIsNoPlaceForAgents checks that such a stack still accepts rollouts,
// ends them with a message, and sweeps.
func TestWithoutANetworkThereIsNoPlaceForAgents(t *testing.T) {
	t.Parallel()
	environment := account(t)
	for _, name := range []string{"SLIPWAY_ECS_SUBNETS", "SLIPWAY_ECS_SECURITY_GROUPS", "SLIPWAY_VPC", "SLIPWAY_ALB_LISTENER", "SLIPWAY_ALB_URL"} {
		delete(environment, name)
	}
	a, err := open(environment, rollouts.Need, agents.NeedTarget)
	if err != nil {
		t.Fatal(err)
	}
	work, err := a.Rollout(t.Context())
	if err != nil || len(work.Targets) != 0 {
		t.Errorf("got %v and %+v, want a rollout without targets", err, work)
	}
	if target, err := a.Target(t.Context()); err != nil || target == nil {
		t.Errorf("got %v, %v, want a target of what listeners run", target, err)
	}
	if err := a.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestABadSettingIsAnError checks that an error of the adapters reaches the task that needed
// them.
func TestABadSettingIsAnError(t *testing.T) {
	t.Parallel()
	environment := account(t)
	environment["SLIPWAY_COMPUTE"] = "mainframe"
	a, err := open(environment)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Target(t.Context()); err == nil || !strings.Contains(err.Error(), "mainframe") {
		t.Errorf("got %v", err)
	}
	if _, err := a.Rollout(t.Context()); err == nil {
		t.Error("got a rollout")
	}
	if err := a.Sweep(t.Context()); err == nil {
		t.Error("swept")
	}
}

//go:build moto

package ecs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	scalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/mototest"
)

// stack is an account with the resources that the stack has before any release.
type stack struct {
	t       *testing.T
	aws     aws.Config
	ecs     *awsecs.Client
	elb     *elb.Client
	secrets *secretsmanager.Client
	scaling *applicationautoscaling.Client
	config  ecs.Config
}

// newStack makes a stack in a moto whose services have all their tasks running at once.
func newStack(t *testing.T) *stack {
	t.Helper()
	cfg := awsConfig(mototest.Start(t, "MOTO_ECS_SERVICE_RUNNING=2"))
	s := &stack{
		t: t, aws: cfg, ecs: awsecs.NewFromConfig(cfg), elb: elb.NewFromConfig(cfg), secrets: secretsmanager.NewFromConfig(cfg),
		scaling: applicationautoscaling.NewFromConfig(cfg),
	}
	_, err := s.ecs.CreateCluster(t.Context(), &awsecs.CreateClusterInput{ClusterName: aws.String("agents")})
	check.Must(t, err)
	balancer, err := s.elb.CreateLoadBalancer(t.Context(), &elb.CreateLoadBalancerInput{Name: aws.String("agents"), Subnets: ofNetwork(t, cfg, "DescribeSubnets", "subnet", 2)})
	check.Must(t, err)
	listener, err := s.elb.CreateListener(t.Context(), &elb.CreateListenerInput{
		LoadBalancerArn: balancer.LoadBalancers[0].LoadBalancerArn, Port: aws.Int32(80), Protocol: elbtypes.ProtocolEnumHttp,
		DefaultActions: []elbtypes.Action{{Type: elbtypes.ActionTypeEnumFixedResponse, FixedResponseConfig: &elbtypes.FixedResponseActionConfig{StatusCode: aws.String("503")}}},
	})
	check.Must(t, err)
	s.config = testConfig(cfg)
	s.config.Subnets = ofNetwork(t, cfg, "DescribeSubnets", "subnet", 2)
	s.config.SecurityGroups = ofNetwork(t, cfg, "DescribeSecurityGroups", "sg", 1)
	s.config.ALBListener = aws.ToString(listener.Listeners[0].ListenerArn)
	s.config.VPC = aws.ToString(balancer.LoadBalancers[0].VpcId)
	return s
}

func (s *stack) target() *ecs.Target {
	s.t.Helper()
	target, err := ecs.New(s.config)
	check.Must(s.t, err)
	return target
}

// left names all resources of releases that exist.
func (s *stack) left() []string {
	s.t.Helper()
	var left []string
	services, err := s.ecs.ListServices(s.t.Context(), &awsecs.ListServicesInput{Cluster: aws.String("agents")})
	check.Must(s.t, err)
	described := &awsecs.DescribeServicesOutput{}
	if len(services.ServiceArns) > 0 {
		described, err = s.ecs.DescribeServices(s.t.Context(), &awsecs.DescribeServicesInput{Cluster: aws.String("agents"), Services: services.ServiceArns})
		check.Must(s.t, err)
	}
	for _, service := range described.Services {
		if aws.ToString(service.Status) != "INACTIVE" {
			left = append(left, "service "+aws.ToString(service.ServiceName))
		}
	}
	definitions, err := s.ecs.ListTaskDefinitions(s.t.Context(), &awsecs.ListTaskDefinitionsInput{Status: ecstypes.TaskDefinitionStatusActive})
	check.Must(s.t, err)
	for _, arn := range definitions.TaskDefinitionArns {
		left = append(left, "task definition "+arn)
	}
	groups, err := s.elb.DescribeTargetGroups(s.t.Context(), &elb.DescribeTargetGroupsInput{})
	check.Must(s.t, err)
	for _, group := range groups.TargetGroups {
		left = append(left, "target group "+aws.ToString(group.TargetGroupName))
	}
	rules, err := s.elb.DescribeRules(s.t.Context(), &elb.DescribeRulesInput{ListenerArn: aws.String(s.config.ALBListener)})
	check.Must(s.t, err)
	for _, rule := range rules.Rules {
		if !aws.ToBool(rule.IsDefault) {
			left = append(left, "rule "+aws.ToString(rule.Priority))
		}
	}
	secrets, err := s.secrets.ListSecrets(s.t.Context(), &secretsmanager.ListSecretsInput{})
	check.Must(s.t, err)
	for _, secret := range secrets.SecretList {
		left = append(left, "secret "+aws.ToString(secret.Name))
	}
	targets, err := s.scaling.DescribeScalableTargets(s.t.Context(), &applicationautoscaling.DescribeScalableTargetsInput{ServiceNamespace: scalingtypes.ServiceNamespaceEcs})
	check.Must(s.t, err)
	for _, target := range targets.ScalableTargets {
		left = append(left, "scalable target "+aws.ToString(target.ResourceId))
	}
	return left
}

// answering registers targets with a release's target group. ECS does this when tasks run.
// moto takes such targets for healthy.
func (s *stack) answering(ref compute.Ref, n int) {
	s.t.Helper()
	for i := range n {
		_, err := s.elb.RegisterTargets(s.t.Context(), &elb.RegisterTargetsInput{
			TargetGroupArn: aws.String(s.group(ref)), Targets: []elbtypes.TargetDescription{{Id: aws.String("10.0.0." + string(rune('1'+i))), Port: aws.Int32(8080)}},
		})
		check.Must(s.t, err)
	}
}

// group is the ARN of the only target group.
func (s *stack) group(compute.Ref) string {
	s.t.Helper()
	groups, err := s.elb.DescribeTargetGroups(s.t.Context(), &elb.DescribeTargetGroupsInput{})
	check.Must(s.t, err)
	if len(groups.TargetGroups) != 1 {
		s.t.Fatalf("there are %d target groups", len(groups.TargetGroups))
	}
	return aws.ToString(groups.TargetGroups[0].TargetGroupArn)
}

func (s *stack) await(ref compute.Ref, want compute.State) {
	s.t.Helper()
	ctx, lookOnce := once(s.t)
	cfg := s.config
	lookOnce(&cfg)
	target, err := ecs.New(cfg)
	check.Must(s.t, err)
	got, err := target.Await(ctx, ref)
	if err != nil || got.State != want {
		s.t.Errorf("Await: got %+v, %v; want %s", got, err, want)
	}
}

func TestMotoLifeOfARelease(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	target := s.target()
	release := newRelease()
	release.Resources = compute.Resources{CPU: 1, MemoryMB: 3000, MinScale: 2, MaxScale: 4}
	s.await(release.Ref, compute.Absent)
	for range 2 {
		check.Must(t, target.Apply(t.Context(), release))
		if got := s.left(); len(got) != 6 {
			t.Fatalf("there are %q, want one of each", got)
		}
	}
	s.await(release.Ref, compute.Progressing)
	s.answering(release.Ref, 2)
	s.await(release.Ref, compute.Healthy)
	s.wantTask(release)
	s.wantRule(release)
	for range 2 {
		check.Must(t, target.Remove(t.Context(), release.Ref))
		if got := s.left(); len(got) > 0 {
			t.Errorf("left: %q", got)
		}
	}
	s.await(release.Ref, compute.Absent)
}

// TestMotoRestart checks that a restart gives a service another task definition with other
// values, once, and that nothing is left in the end.
func TestMotoRestart(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	target := s.target()
	release := newRelease()
	release.Resources = compute.Resources{CPU: 1, MemoryMB: 3000}
	const before = "before"
	release.Env["PASSWORD"], release.Env["GONE"] = before, before
	check.Must(t, target.Apply(t.Context(), release))
	first := s.serving(release)
	release.Env["PASSWORD"] = "hunter2"
	delete(release.Env, "GONE")
	for range 2 {
		check.Must(t, target.Restart(t.Context(), release, restartID))
	}
	second := s.serving(release)
	if second == first {
		t.Errorf("the service still has %s", first)
	}
	s.wantTask(release)
	check.Must(t, target.Restart(t.Context(), release, anotherID))
	if third := s.serving(release); third == second || len(s.left()) != 7 {
		t.Errorf("the service has %s, there are %q", third, s.left())
	}
	check.Must(t, target.Remove(t.Context(), release.Ref))
	if got := s.left(); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	check.Must(t, target.Restart(t.Context(), release, restartID))
	if got := s.left(); len(got) != 5 {
		t.Errorf("a release that was absent has %q", got)
	}
}

// serving is the task definition of a release's service.
func (s *stack) serving(release compute.Release) string {
	s.t.Helper()
	found, err := s.ecs.DescribeServices(s.t.Context(), &awsecs.DescribeServicesInput{Cluster: aws.String(s.config.Cluster), Services: []string{"slipway-" + release.Revision}})
	check.Must(s.t, err)
	return aws.ToString(found.Services[0].TaskDefinition)
}

// wantTask checks the task definition and the secret that it refers to.
func (s *stack) wantTask(release compute.Release) {
	s.t.Helper()
	found, err := s.ecs.DescribeTaskDefinition(s.t.Context(), &awsecs.DescribeTaskDefinitionInput{TaskDefinition: aws.String("slipway-" + release.Revision)})
	check.Must(s.t, err)
	task := found.TaskDefinition
	if got := aws.ToString(task.Cpu) + "/" + aws.ToString(task.Memory); got != "1024/3072" {
		s.t.Errorf("size is %s", got)
	}
	text, err := json.Marshal(task)
	check.Must(s.t, err)
	for _, hidden := range []string{"hunter2", release.Token, "from the file"} {
		if strings.Contains(string(text), hidden) {
			s.t.Errorf("the task definition shows %q", hidden)
		}
	}
	plain := map[string]string{}
	for _, variable := range task.ContainerDefinitions[0].Environment {
		plain[aws.ToString(variable.Name)] = aws.ToString(variable.Value)
	}
	if diff := cmp.Diff(map[string]string{"HOST": "0.0.0.0", "PORT": "8080", "SLIPWAY_REVISION_ID": release.Revision}, plain); diff != "" {
		s.t.Errorf("environment (-want +got):\n%s", diff)
	}
	values := map[string]string{}
	for _, variable := range task.ContainerDefinitions[0].Secrets {
		from := strings.Split(aws.ToString(variable.ValueFrom), ":")
		secret, err := s.secrets.GetSecretValue(s.t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String(strings.Join(from[:7], ":"))})
		check.Must(s.t, err)
		keys := map[string]string{}
		check.Must(s.t, json.Unmarshal([]byte(aws.ToString(secret.SecretString)), &keys))
		values[aws.ToString(variable.Name)] = keys[from[7]]
	}
	want := map[string]string{"PASSWORD": "hunter2", "FILE": "from the file", "SLIPWAY_INVOKE_TOKEN": release.Token}
	if diff := cmp.Diff(want, values); diff != "" {
		s.t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// wantRule checks that the listener forwards requests for the revision, and no other requests,
// to the revision's target group.
func (s *stack) wantRule(release compute.Release) {
	s.t.Helper()
	rules, err := s.elb.DescribeRules(s.t.Context(), &elb.DescribeRulesInput{ListenerArn: aws.String(s.config.ALBListener)})
	check.Must(s.t, err)
	for _, rule := range rules.Rules {
		if aws.ToBool(rule.IsDefault) {
			continue
		}
		header := rule.Conditions[0].HttpHeaderConfig
		if len(rule.Conditions) != 1 || aws.ToString(header.HttpHeaderName) != "X-Slipway-Revision" || cmp.Diff(header.Values, []string{release.Revision}) != "" {
			s.t.Errorf("conditions are %+v", rule.Conditions)
		}
		if got := aws.ToString(rule.Actions[0].TargetGroupArn); got != s.group(release.Ref) {
			s.t.Errorf("it forwards to %s", got)
		}
	}
	attributes, err := s.elb.DescribeTargetGroupAttributes(s.t.Context(), &elb.DescribeTargetGroupAttributesInput{TargetGroupArn: aws.String(s.group(release.Ref))})
	check.Must(s.t, err)
	for _, attribute := range attributes.Attributes {
		if aws.ToString(attribute.Key) == "deregistration_delay.timeout_seconds" && aws.ToString(attribute.Value) != "600" {
			s.t.Errorf("drain limit is %s", aws.ToString(attribute.Value))
		}
	}
}

func TestMotoReleasesAreApart(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	target := s.target()
	one, other := newRelease(), newRelease()
	check.Must(t, target.Apply(t.Context(), one))
	check.Must(t, target.Apply(t.Context(), other))
	if got := s.left(); len(got) != 10 { // nothing scales
		t.Errorf("there are %q", got)
	}
	check.Must(t, target.Remove(t.Context(), one.Ref))
	left := strings.Join(s.left(), "\n")
	if strings.Contains(left, one.Revision) || strings.Count(left, "\n") != 4 {
		t.Errorf("left:\n%s", left)
	}
}

// TestMotoApplyGoesOn cuts Apply off after each of its requests in turn. It expects the next
// Apply to complete the release, and Remove to erase it.
func TestMotoApplyGoesOn(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	release := newRelease()
	release.Resources.MaxScale = 2
	for requests := 1; ; requests++ {
		limited := s.config
		limited.AWS.RetryMaxAttempts = 1
		cut := &cutter{left: requests}
		limited.AWS.HTTPClient = cut
		target, err := ecs.New(limited)
		check.Must(t, err)
		if target.Apply(t.Context(), release) == nil {
			t.Logf("Apply takes %d requests", requests)
			break
		}
		check.Must(t, s.target().Apply(t.Context(), release))
		if got := s.left(); len(got) != 6 {
			t.Fatalf("cut off after %d requests, then repeated: there are %q", requests, got)
		}
		cut = &cutter{left: requests}
		limited.AWS.HTTPClient = cut
		target, err = ecs.New(limited)
		check.Must(t, err)
		if err := target.Remove(t.Context(), release.Ref); err == nil && requests < 5 {
			t.Errorf("Remove was done with %d requests", requests)
		}
		check.Must(t, s.target().Remove(t.Context(), release.Ref))
		if got := s.left(); len(got) > 0 {
			t.Fatalf("removal cut off after %d requests, then repeated: left %q", requests, got)
		}
	}
}

// ofNetwork asks for the ids of the parts of the network that every account of moto has.
func ofNetwork(t *testing.T, cfg aws.Config, action, kind string, n int) []string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, aws.ToString(cfg.BaseEndpoint), strings.NewReader("Action="+action+"&Version=2016-11-15"))
	check.Must(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=key/20260101/"+mototest.Region+"/ec2/aws4_request, SignedHeaders=host, Signature=x")
	answer, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	check.Must(t, err)
	found := regexp.MustCompile(kind+`-[0-9a-f]+`).FindAllString(string(body), -1)
	slices.Sort(found)
	if found = slices.Compact(found); len(found) < n {
		t.Fatalf("%s names too few: %s", action, body)
	}
	return found[:n]
}

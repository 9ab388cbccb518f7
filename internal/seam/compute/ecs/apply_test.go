package ecs_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestApplyMakesTheServiceLast(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeServices": {refusal(400, "ThrottlingException", "Rate exceeded"), {0, `{"services":[]}`}}})
	release := newRelease()
	release.Resources = compute.Resources{CPU: 0.3, MinScale: 0, MaxScale: 3}
	check.Must(t, r.target().Apply(t.Context(), release))
	want := "DescribeServices DescribeServices CreateSecret DescribeTaskDefinition RegisterTaskDefinition DescribeTargetGroups CreateTargetGroup " +
		"ModifyTargetGroupAttributes DescribeRules CreateRule CreateService RegisterScalableTarget PutScalingPolicy"
	if got := r.operations(); got != want {
		t.Errorf("calls: %s", got)
	}
	for operation, words := range map[string][]string{
		"CreateSecret": {`"Name":"slipway-` + release.Revision + `"`, `hunter2`, release.Token, `{"Key":"slipway:revision","Value":"` + release.Revision + `"}`},
		"RegisterTaskDefinition": {`"cpu":"512"`, `"memory":"1024"`, `"name":"Main"`, `"image":"registry.test/agent@sha256:1"`, `"cpuArchitecture":"ARM64"`,
			`"valueFrom":"arn:aws:secretsmanager:eu-central-1:123456789012:secret:x-AbCdEf:PASSWORD::"`, `"awslogs-group":"/slipway/agents"`, `role/execution`, `role/task`},
		"CreateService": {`"desiredCount":1`, `"enable":true,"rollback":false`, `"taskDefinition":"arn:task"`, `"targetGroupArn":"arn:group"`, `"assignPublicIp":"DISABLED"`,
			`"subnets":["subnet-1","subnet-2"]`, `"securityGroups":["sg-1"]`, `"propagateTags":"SERVICE"`, `"healthCheckGracePeriodSeconds":300`, `"slipway:deployment"`},
		"CreateTargetGroup":      {"HealthCheckPath=%2Fping", "TargetType=ip", "VpcId=vpc-1"},
		"CreateRule":             {"X-Slipway-Revision", release.Revision, "TargetGroupArn=arn%3Agroup"},
		"RegisterScalableTarget": {`"MinCapacity":1`, `"MaxCapacity":3`, `"ResourceId":"service/agents/slipway-` + release.Revision + `"`},
		"PutScalingPolicy":       {`"PolicyName":"slipway-` + release.Revision + `"`, `"TargetValue":8`},
	} {
		for _, word := range words {
			if body := strings.Join(r.of(operation), "\n"); !strings.Contains(body, word) {
				t.Errorf("%s has no %s: %s", operation, word, body)
			}
		}
	}
	for _, hidden := range []string{"hunter2", release.Token, "from the file"} {
		if body := r.of("RegisterTaskDefinition")[0]; strings.Contains(body, hidden) {
			t.Errorf("the task definition shows %s: %s", hidden, body)
		}
	}
}

func TestApplyLeavesWhatIsThereAlone(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeServices": deploying("IN_PROGRESS")})
	check.Must(t, r.target(func(c *ecs.Config) { c.Now = func() time.Time { return began } }).Apply(t.Context(), newRelease()))
	if got, want := r.operations(), "DescribeServices DescribeServices ListTasks"; got != want {
		t.Errorf("calls: %s", got)
	}
}

func TestApplyTriesAFailedReleaseAnew(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeServices": deploying("FAILED")})
	check.Must(t, r.target().Apply(t.Context(), newRelease()))
	if got := r.of("UpdateService"); len(got) != 1 || !strings.Contains(got[0], `"forceNewDeployment":true`) {
		t.Errorf("updates: %q", got)
	}
}

func TestApplyMeetsOthers(t *testing.T) {
	t.Parallel()
	taken := elbRefusal("PriorityInUse", "Priority '7' is currently in use")
	for name, c := range map[string]struct {
		answers map[string][]answer
		err     string
	}{
		"the same service":     {map[string][]answer{"CreateService": {refusal(400, "InvalidParameterException", "Creation of service was not idempotent.")}}, ""},
		"the same secret":      {map[string][]answer{"CreateSecret": {refusal(400, "ResourceExistsException", "already exists.")}, "PutSecretValue": {{0, `{"ARN":"arn:secret"}`}}}, ""},
		"the same priority":    {map[string][]answer{"CreateRule": {taken, taken, {}}}, ""},
		"priorities for ever":  {map[string][]answer{"CreateRule": {taken}}, "every priority"},
		"too many rules":       {map[string][]answer{"CreateRule": {elbRefusal("TooManyRules", "The maximum number of rules per ALB has been reached")}}, "TooManyRules"},
		"one that drains":      {map[string][]answer{"DescribeServices": service(`"status":"DRAINING"`)}, "still draining"},
		"one that drains late": {map[string][]answer{"CreateService": {refusal(400, "InvalidParameterException", "Unable to Start a service that is still Draining.")}}, "still Draining"},
		"a secret that goes":   {map[string][]answer{"CreateSecret": {refusal(400, "InvalidRequestException", "already scheduled for deletion.")}}, "scheduled for deletion"},
		"a role that is not for it": {map[string][]answer{"RegisterTaskDefinition": {refusal(400, "AccessDeniedException", "is not authorized to perform: iam:PassRole")}},
			"iam:PassRole"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecorded(t, c.answers)
			err := r.target().Apply(t.Context(), newRelease())
			if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

// TestARuleTakesAFreePriority takes the priority that the revision would get, so the rule
// needs another one.
func TestARuleTakesAFreePriority(t *testing.T) {
	t.Parallel()
	release := newRelease()
	priority := func(rules string) string {
		r := newRecorded(t, map[string][]answer{"DescribeRules": {
			{0, "<Rules><member><Priority>default</Priority></member></Rules><NextMarker>more</NextMarker>"}, {0, "<Rules>" + rules + "</Rules>"},
		}})
		check.Must(t, r.target().Apply(t.Context(), release))
		form, err := url.ParseQuery(r.of("CreateRule")[0])
		check.Must(t, err)
		return form.Get("Priority")
	}
	first := priority("")
	if second := priority("<member><Priority>" + first + "</Priority></member>"); second == first || second == "" {
		t.Errorf("priorities %s and %s", first, second)
	}
	if again := priority(""); again != first {
		t.Errorf("priorities %s and %s of one revision", first, again)
	}
}

func TestApplyNamesTheQuotaThatIsUsedUp(t *testing.T) {
	t.Parallel()
	for operation, code := range map[string]string{"CreateTargetGroup": "TooManyTargetGroups", "CreateRule": "TooManyRules"} {
		r := newRecorded(t, map[string][]answer{operation: {elbRefusal(code, "no")}})
		full, ok := errors.AsType[*compute.NoCapacity](r.target().Apply(t.Context(), newRelease()))
		if !ok || !strings.Contains(full.Quota, code) {
			t.Errorf("%s: got %v", operation, full)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, nil)
	for name, change := range map[string]func(*compute.Release){
		"what is not an id": func(c *compute.Release) { c.Revision = "../up" },
		"no image":          func(c *compute.Release) { c.Artifact.Image = "" },
	} {
		release := newRelease()
		change(&release)
		if err := r.target().Apply(t.Context(), release); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if got := r.operations(); got != "" {
		t.Errorf("called %s", got)
	}
}

func TestNewChecksItsConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*ecs.Config)
		ok     bool
	}{
		"a process that invokes":  {func(c *ecs.Config) { *c = ecs.Config{Hasher: hasher{}, ALBURL: "http://x"} }, true},
		"a prefix that just fits": {func(c *ecs.Config) { c.NamePrefix = strings.Repeat("a", ecs.MaxPrefix) }, true},
		"a long prefix":           {func(c *ecs.Config) { c.NamePrefix = strings.Repeat("a", ecs.MaxPrefix+1) }, false},
		"an odd prefix":           {func(c *ecs.Config) { c.NamePrefix = "a_b" }, false},
		"no hasher":               {func(c *ecs.Config) { c.Hasher = nil }, false},
		"no address":              {func(c *ecs.Config) { c.ALBURL = "" }, false},
		"no compute":              {func(c *ecs.Config) { c.Compute = "lambda" }, false},
		"Express":                 {func(c *ecs.Config) { c.Compute, c.ALBURL, c.AWS.Region = ecs.Express, "", "eu-central-1" }, true},
		"Express without a role":  {func(c *ecs.Config) { c.Compute, c.InfrastructureRole = ecs.Express, "" }, false},
	} {
		cfg := newRecorded(t, nil).config()
		c.change(&cfg)
		if _, err := ecs.New(cfg); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestAReleaseHasItsOwnTimeToBecomeHealthy: a caller that waits for the release, perhaps in
// another process, reads the limit from the release's service.
func TestAReleaseHasItsOwnTimeToBecomeHealthy(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{ecs.Fargate, ecs.Express} {
		r := newRecorded(t, map[string][]answer{"DescribeServices": {{0, `{"services":[]}`}}})
		release := newRelease()
		release.ReadyLimit = 20 * time.Minute
		check.Must(t, r.target(func(c *ecs.Config) { c.Compute = mode }).Apply(t.Context(), release))
		made := strings.Join(append(r.of("CreateService"), r.of("CreateExpressGatewayService")...), "")
		if !strings.Contains(made, `{"key":"slipway:ready-limit","value":"1200"}`) || mode == ecs.Fargate && !strings.Contains(made, `"healthCheckGracePeriodSeconds":1200`) {
			t.Errorf("%s: got %s", mode, made)
		}
		if asked := r.of("DescribeServices")[0]; !strings.Contains(asked, `"include":["TAGS"]`) {
			t.Errorf("%s: the tags are not asked for: %s", mode, asked)
		}
	}
}

package ecs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/test/check"
)

func express(c *ecs.Config) { c.Compute, c.Now = ecs.Express, func() time.Time { return began } }

func expressService(status string) answer {
	return answer{0, `{"service":{"serviceArn":"arn:service","status":{"statusCode":"` + status + `"},"activeConfigurations":[{"ingressPaths":[` +
		`{"accessType":"PRIVATE","endpoint":"ab-1.ecs.eu-central-1.on.aws"}]}]}}`}
}

func TestExpressApply(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, nil)
	release := newRelease()
	release.Resources = compute.Resources{CPU: 2, MemoryMB: 4096, MinScale: 2, MaxScale: 5}
	check.Must(t, r.target(express).Apply(t.Context(), release))
	if got, want := r.operations(), "DescribeServices CreateSecret DescribeTaskDefinition RegisterTaskDefinition CreateExpressGatewayService"; got != want {
		t.Errorf("calls: %s", got)
	}
	body := r.of("CreateExpressGatewayService")[0]
	for _, word := range []string{
		`"serviceName":"slipway-` + release.Revision + `"`, `"cluster":"agents"`, `role/infrastructure"`, `"taskDefinitionArn":"arn:task"`, `"healthCheckPath":"/ping"`,
		`"minTaskCount":2`, `"maxTaskCount":5`, `"autoScalingMetric":"AVERAGE_CPU"`, `"subnets":["subnet-1","subnet-2"]`, `"slipway:workspace"`,
	} {
		if !strings.Contains(body, word) {
			t.Errorf("no %s in %s", word, body)
		}
	}
	// ECS refuses these members beside a task definition.
	for _, word := range []string{"executionRoleArn", "primaryContainer", `"cpu"`} {
		if strings.Contains(body, word) {
			t.Errorf("%s is in %s", word, body)
		}
	}
}

func TestExpressAwait(t *testing.T) {
	t.Parallel()
	deployment := func(status string) []answer {
		return []answer{{0, `{"serviceDeployments":[{"status":"` + status + `","statusReason":"because"}]}`}}
	}
	for name, c := range map[string]struct {
		deployments, tasks []answer
		want               compute.State
		reason             string
	}{
		"not begun":   {nil, nil, compute.Progressing, ""},
		"in progress": {deployment("IN_PROGRESS"), nil, compute.Progressing, ""},
		"done":        {deployment("SUCCESSFUL"), nil, compute.Healthy, ""},
		"rolled back": {deployment("ROLLBACK_SUCCESSFUL"), nil, compute.Failed, compute.ReasonStartFailed},
		"stopped":     {deployment("STOPPED"), nil, compute.Failed, compute.ReasonStartFailed},
		"no image":    {deployment("IN_PROGRESS"), stopped("TaskFailedToStart", notFound, ""), compute.Failed, compute.ReasonImageUnavailable},
	} {
		r := newRecorded(t, map[string][]answer{"DescribeServices": deploying("IN_PROGRESS"), "ListServiceDeployments": c.deployments, "DescribeTasks": c.tasks,
			"DescribeTaskDefinition": task("arn:task", "")})
		if c.tasks != nil {
			r.answers["ListTasks"] = []answer{{0, `{"taskArns":["arn:1"]}`}}
		}
		ctx, lookOnce := once(t)
		got, err := r.target(express, lookOnce).Await(ctx, newRelease().Ref)
		if err != nil || got.State != c.want || got.Reason != c.reason {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestExpressTriesAFailedReleaseAnew(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{
		"DescribeServices":       deploying("IN_PROGRESS"),
		"ListServiceDeployments": {{0, `{"serviceDeployments":[{"status":"ROLLBACK_FAILED"}]}`}},
	})
	release := newRelease()
	check.Must(t, r.target(express).Apply(t.Context(), release))
	want := `"serviceArn":"arn:aws:ecs:eu-central-1:` + account + `:service/agents/slipway-` + release.Revision + `"`
	if got := r.of("UpdateExpressGatewayService"); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("updates: %q", got)
	}
}

func TestExpressServes(t *testing.T) {
	t.Parallel()
	target := newRecorded(t, map[string][]answer{
		"DescribeExpressGatewayService": {refusal(400, "ResourceNotFoundException", "not found"), refusal(400, "AccessDeniedException", "no"), expressService("ACTIVE")},
	}).target(express)
	for i, want := range []struct{ serves, fails bool }{{false, false}, {false, true}, {true, false}} {
		if serves, err := target.Serves(t.Context(), newRelease().Ref); serves != want.serves || (err != nil) != want.fails {
			t.Errorf("call %d: got %t, %v", i, serves, err)
		}
	}
}

func TestExpressAcquire(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{
		"DescribeExpressGatewayService": {refusal(400, "ResourceNotFoundException", "not found"), expressService("DRAINING"), {0, `{"service":{"status":{"statusCode":"ACTIVE"}}}`}, expressService("ACTIVE"),
			refusal(400, "ServiceNotFoundException", "Service not found.")},
	})
	target := r.target(express)
	ref := newRelease().Ref
	for _, want := range []compute.State{compute.Absent, compute.Absent, compute.Progressing} {
		_, _, err := target.Acquire(t.Context(), ref)
		unavailable, ok := errors.AsType[*compute.UnavailableError](err)
		if !ok || unavailable.Status.State != want || unavailable.Ref != ref {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for range 2 {
		endpoint, done, err := target.Acquire(t.Context(), ref)
		check.Must(t, err)
		done()
		want := compute.Endpoint{URL: "https://ab-1.ecs.eu-central-1.on.aws", Token: secret.InvokeToken(hasher{}, ref.Revision), Revision: ref.Revision}
		if endpoint != want {
			t.Errorf("got %+v", endpoint)
		}
	}
	if got := len(r.of("DescribeExpressGatewayService")); got != 4 {
		t.Errorf("asked %d times", got)
	}
	check.Must(t, target.Remove(t.Context(), ref))
	if _, _, err := target.Acquire(t.Context(), ref); err == nil {
		t.Error("a removed release is still to be had")
	}
}

// TestTheAddressOfAServiceThatWasCreatedAgain has one process delete a service and create it again,
// with another address, while another process knows the first address.
func TestTheAddressOfAServiceThatWasCreatedAgain(t *testing.T) {
	t.Parallel()
	const first, second = "https://ab-1.ecs.eu-central-1.on.aws", "https://cd-2.ecs.eu-central-1.on.aws"
	before := expressService("ACTIVE")
	after := answer{0, strings.ReplaceAll(before.body, "ab-1", "cd-2")}
	// The target before it acquires, and then the other target as it removes.
	r := newRecorded(t, map[string][]answer{"DescribeExpressGatewayService": {before, before, refusal(400, "ThrottlingException", "Rate exceeded"), after}})
	passed := time.Duration(0)
	target, other := r.target(express, func(c *ecs.Config) {
		c.AWS.RetryMaxAttempts = 1
		c.Now = func() time.Time { return began.Add(passed) }
	}), r.target(express)
	release := newRelease()
	want := func(when, url string) {
		t.Helper()
		endpoint, done, err := target.Acquire(t.Context(), release.Ref)
		check.Must(t, err)
		if done(); endpoint.URL != url {
			t.Errorf("%s: the address is %s, want %s", when, endpoint.URL, url)
		}
	}
	want("before", first)
	check.Must(t, other.Remove(t.Context(), release.Ref))
	check.Must(t, other.Apply(t.Context(), release))
	passed = 6 * time.Minute
	want("while ECS refuses to answer", first)
	passed *= 2
	want("after it was created again", second)
	want("at once after that", second)
	if got := len(r.of("DescribeExpressGatewayService")); got != 4 {
		t.Errorf("ECS was asked %d times, want 4", got)
	}
}

func TestExpressRemove(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeExpressGatewayService": {expressService("ACTIVE"), expressService("DRAINING"), refusal(400, "ServiceNotFoundException", "Service not found.")}})
	target := r.target(express)
	ref := newRelease().Ref
	for range 3 {
		check.Must(t, target.Remove(t.Context(), ref))
	}
	if got := r.of("DeleteExpressGatewayService"); len(got) != 1 || !strings.Contains(got[0], "slipway-"+ref.Revision) {
		t.Errorf("deleted: %q", got)
	}
	if got := r.operations(); strings.Contains(got, "Rule") || strings.Contains(got, "TargetGroup") {
		t.Errorf("calls: %s", got)
	}
	if got := len(r.of("DeleteSecret")); got != 3 {
		t.Errorf("secret was deleted %d times", got)
	}
}

// TestAcquireAsksNobody: a process that invokes an agent behind the load balancer has no
// permission to ask AWS.
func TestAcquireAsksNobody(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, nil)
	ref := newRelease().Ref
	endpoint, done, err := r.target().Acquire(t.Context(), ref)
	check.Must(t, err)
	done()
	want := compute.Endpoint{URL: "http://agents.internal", Token: secret.InvokeToken(hasher{}, ref.Revision), Revision: ref.Revision}
	if endpoint != want || r.operations() != "" {
		t.Errorf("got %+v after %s", endpoint, r.operations())
	}
}

package ecs_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
)

// balanced are the answers of the load balancer for a release with the given number of healthy
// targets.
func balanced(healthy int) map[string][]answer {
	return map[string][]answer{
		"DescribeTargetGroups": {{0, group}},
		"DescribeTargetHealth": {{0, "<TargetHealthDescriptions>" + target("unhealthy") + strings.Repeat(target("healthy"), healthy) + "</TargetHealthDescriptions>"}},
	}
}

// endedOf are the answers for a task of a deployment whose container has ended.
func endedOf(deployment string) map[string][]answer {
	return map[string][]answer{
		"ListTasks":     {{0, `{"taskArns":["arn:1"]}`}},
		"DescribeTasks": {{0, `{"tasks":[{"startedBy":"` + deployment + `","stopCode":"EssentialContainerExited","stoppedReason":"Essential container in task exited","containers":[{"name":"Main","exitCode":7}]}]}`}},
	}
}

// deployments are an answer of ListServiceDeployments, newest first.
func deployments(statuses ...string) []answer {
	var all []string
	for _, status := range statuses {
		all = append(all, fmt.Sprintf(`{"status":%q,"statusReason":"tasks failed to start"}`, status))
	}
	return []answer{{0, `{"serviceDeployments":[` + strings.Join(all, ",") + `]}`}}
}

// wentBack is a service that ECS has taken back to the deployment before a restart.
var wentBack = service(`"status":"ACTIVE","desiredCount":2,"runningCount":2,"deployments":[` +
	`{"id":"ecs-svc/1","status":"PRIMARY","taskDefinition":"arn:task:1","desiredCount":2,"runningCount":1,"createdAt":1767168800,"rolloutState":"IN_PROGRESS"},` +
	`{"id":"ecs-svc/2","status":"ACTIVE","taskDefinition":"arn:task:2","createdAt":1767268800,"rolloutState":"FAILED"}]`)

// scaled is a service with an old deployment of which ECS starts another task.
var scaled = service(`"status":"ACTIVE","desiredCount":2,"runningCount":1,"deployments":[` +
	`{"id":"ecs-svc/1","status":"PRIMARY","taskDefinition":"arn:task:1","desiredCount":2,"runningCount":1,"createdAt":1767168800,"rolloutState":"COMPLETED"}]`)

// retried is a service that tries again a release which had served.
var retried = service(`"status":"ACTIVE","desiredCount":1,"runningCount":0,"deployments":[` +
	`{"id":"ecs-svc/2","status":"PRIMARY","taskDefinition":"arn:task:1","desiredCount":1,"createdAt":1767268800,"rolloutState":"IN_PROGRESS"},` +
	`{"id":"ecs-svc/1","status":"ACTIVE","taskDefinition":"arn:task:1","createdAt":1767168800,"rolloutState":"COMPLETED"}]`)

// neverServed is a service whose first deployment did not serve before a restart took its
// place.
var neverServed = service(`"status":"ACTIVE","desiredCount":1,"deployments":[` +
	`{"id":"ecs-svc/2","status":"PRIMARY","taskDefinition":"arn:task:2","desiredCount":1,"createdAt":1767268800,"rolloutState":"IN_PROGRESS"},` +
	`{"id":"ecs-svc/1","status":"ACTIVE","taskDefinition":"arn:task:1","createdAt":1767268700,"rolloutState":"IN_PROGRESS"}]`)

// TestAReleaseIsNotWhatARestartTries looks at services whose tasks are being replaced, once as
// a caller of Await and once as a caller of AwaitRelapse.
func TestAReleaseIsNotWhatARestartTries(t *testing.T) {
	t.Parallel()
	const ends = "exit code 7"
	for name, c := range map[string]struct {
		service []answer
		further []map[string][]answer
		express []answer
		later   time.Duration
		want    compute.State
		relapse string
	}{
		"its tasks start":                {service: replacing(restartTask, "IN_PROGRESS"), further: []map[string][]answer{balanced(2)}, want: compute.Healthy},
		"its tasks end":                  {service: replacing(restartTask, "IN_PROGRESS"), further: []map[string][]answer{balanced(2), endedOf("ecs-svc/2")}, want: compute.Healthy},
		"it is given up":                 {service: replacing(restartTask, "FAILED"), further: []map[string][]answer{balanced(2), endedOf("ecs-svc/2")}, want: compute.Healthy},
		"it has had its time":            {service: replacing(restartTask, "IN_PROGRESS"), further: []map[string][]answer{balanced(2)}, later: time.Hour, want: compute.Healthy},
		"a task before has left":         {service: replacing(restartTask, "IN_PROGRESS"), further: []map[string][]answer{balanced(1), endedOf("ecs-svc/2")}, later: time.Hour, want: compute.Progressing},
		"a task before has ended":        {service: replacing(restartTask, "IN_PROGRESS"), further: []map[string][]answer{balanced(1), endedOf("ecs-svc/1")}, want: compute.Failed, relapse: ends},
		"it went back":                   {service: wentBack, further: []map[string][]answer{balanced(1), endedOf("ecs-svc/2")}, want: compute.Progressing},
		"no restart, one more task":      {service: scaled, further: []map[string][]answer{balanced(1)}, want: compute.Progressing},
		"no restart, its tasks end":      {service: scaled, further: []map[string][]answer{balanced(1), endedOf("ecs-svc/1")}, want: compute.Failed, relapse: ends},
		"no restart, tried anew":         {service: retried, further: []map[string][]answer{balanced(1), endedOf("ecs-svc/1")}, want: compute.Progressing},
		"of a release that never served": {service: neverServed, further: []map[string][]answer{balanced(0), endedOf("ecs-svc/2")}, want: compute.Failed, relapse: ends},
		"of one that was not complete":   {service: neverServed, further: []map[string][]answer{balanced(1), endedOf("ecs-svc/2")}, want: compute.Healthy},
		"Express, its tasks end":         {service: deploying("IN_PROGRESS"), further: []map[string][]answer{endedOf("ecs-svc/1")}, express: deployments("IN_PROGRESS", "SUCCESSFUL"), want: compute.Healthy},
		"Express, it goes back":          {service: deploying("IN_PROGRESS"), express: deployments("ROLLBACK_IN_PROGRESS", "SUCCESSFUL"), want: compute.Healthy},
		"Express, it went back":          {service: deploying("IN_PROGRESS"), express: deployments("ROLLBACK_SUCCESSFUL", "SUCCESSFUL"), want: compute.Healthy},
		"Express, it went back twice":    {service: deploying("IN_PROGRESS"), express: deployments("ROLLBACK_SUCCESSFUL", "ROLLBACK_SUCCESSFUL", "SUCCESSFUL"), want: compute.Healthy},
		"Express, it could not go back":  {service: deploying("IN_PROGRESS"), express: deployments("ROLLBACK_FAILED", "SUCCESSFUL"), want: compute.Failed, relapse: "tasks failed to start"},
		"Express, one that never served": {service: deploying("IN_PROGRESS"), express: deployments("IN_PROGRESS", "STOPPED"), want: compute.Progressing},
		"Express, nothing to go back to": {service: deploying("IN_PROGRESS"), express: deployments("ROLLBACK_SUCCESSFUL", "STOPPED"), want: compute.Failed, relapse: "tasks failed to start"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := map[string][]answer{"DescribeServices": c.service, "ListServiceDeployments": c.express, "DescribeTaskDefinition": task("arn:task", "")}
			for _, further := range c.further {
				maps.Copy(answers, further)
			}
			newTarget := func(change func(*ecs.Config)) *ecs.Target {
				return newRecorded(t, answers).target(change, func(cfg *ecs.Config) {
					cfg.Now = func() time.Time { return began.Add(c.later) }
					if c.express != nil {
						cfg.Compute = ecs.Express
					}
				})
			}
			ctx, lookOnce := once(t)
			if got, err := newTarget(lookOnce).Await(ctx, newRelease().Ref); err != nil || got.State != c.want {
				t.Errorf("Await: got %+v, %v; want %s", got, err, c.want)
			}
			ctx, lookOnce = once(t)
			got, err := newTarget(lookOnce).AwaitRelapse(ctx, newRelease().Ref)
			if err != nil || (got != "") != (c.relapse != "") || !strings.Contains(got, c.relapse) {
				t.Errorf("AwaitRelapse: got %q, %v; want %q", got, err, c.relapse)
			}
		})
	}
}

// TestAwaitRelapseLooksAgain looks at a release that serves while a restart fails, and that
// then ends itself.
func TestAwaitRelapseLooksAgain(t *testing.T) {
	t.Parallel()
	answers := balanced(2)
	answers["DescribeServices"] = []answer{replacing(restartTask, "IN_PROGRESS")[0], replacing(restartTask, "FAILED")[0], scaled[0]}
	answers["DescribeTargetHealth"] = append(answers["DescribeTargetHealth"], answers["DescribeTargetHealth"][0], balanced(1)["DescribeTargetHealth"][0])
	maps.Copy(answers, endedOf("ecs-svc/1"))
	r := newRecorded(t, answers)
	got, err := r.target(func(cfg *ecs.Config) { cfg.Now = func() time.Time { return began } }).AwaitRelapse(t.Context(), newRelease().Ref)
	if looks := len(r.of("DescribeServices")); err != nil || !strings.Contains(got, "exit code 7") || looks != 3 {
		t.Errorf("got %q, %v after %d looks", got, err, looks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.target().AwaitRelapse(ctx, newRelease().Ref); err != nil || got != "" {
		t.Errorf("got %q, %v", got, err)
	}
}

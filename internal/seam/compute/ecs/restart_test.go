package ecs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	restartID   = "0197a000-0000-7000-8000-0000000000f1"
	anotherID   = "0197a000-0000-7000-8000-0000000000f2"
	restartTask = "arn:task:2"
)

// task is an answer of DescribeTaskDefinition: a task definition that was made for the named
// restart, or for no restart if the name is "".
func task(arn, restart string) []answer {
	return []answer{{0, fmt.Sprintf(`{"taskDefinition":{"taskDefinitionArn":%q,"status":"ACTIVE","registeredAt":1767268800,"containerDefinitions":[{"name":"Main","dockerLabels":{"slipway.restart":%q}}]}}`, arn, restart)}}
}

// replacing is a service of two tasks with a primary deployment of a task definition, and an
// earlier deployment.
func replacing(definition, state string) []answer {
	return []answer{{0, fmt.Sprintf(`{"services":[{"serviceName":"slipway-x","serviceArn":"arn:service","status":"ACTIVE","desiredCount":2,"runningCount":2,"taskDefinition":%[1]q,"deployments":[`+
		`{"id":"ecs-svc/2","status":"PRIMARY","taskDefinition":%[1]q,"desiredCount":2,"createdAt":1767268800,"rolloutState":%[2]q,"rolloutStateReason":"ECS deployment circuit breaker: tasks failed to start."},`+
		`{"id":"ecs-svc/1","status":"ACTIVE","taskDefinition":"arn:task:1","createdAt":1767168800,"rolloutState":"COMPLETED"}]}]}`, definition, state)}}
}

func TestARestartNamesTheQuotaThatIsUsedUp(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{
		"DescribeServices": replacing("arn:task:1", "COMPLETED"), "DescribeTaskDefinition": task("arn:task:1", ""),
		"RegisterTaskDefinition": {refusal(400, "LimitExceededException", "no")},
	})
	full, ok := errors.AsType[*compute.NoCapacity](r.target().Restart(t.Context(), newRelease(), restartID))
	if !ok || !strings.Contains(full.Quota, "LimitExceededException") {
		t.Errorf("got %v", full)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers map[string][]answer
		express bool
		want    string
	}{
		"of a release that runs": {
			map[string][]answer{"DescribeServices": replacing("arn:task:1", "COMPLETED"), "DescribeTaskDefinition": task("arn:task:1", "")}, false,
			"DescribeServices DescribeTaskDefinition CreateSecret PutSecretValue RegisterTaskDefinition ListTaskDefinitions UpdateService",
		},
		"after another one": {
			map[string][]answer{"DescribeServices": replacing("arn:task:1", "COMPLETED"), "DescribeTaskDefinition": task("arn:task:1", anotherID)}, false,
			"DescribeServices DescribeTaskDefinition CreateSecret PutSecretValue RegisterTaskDefinition ListTaskDefinitions UpdateService",
		},
		"in Express Mode": {
			map[string][]answer{"DescribeServices": replacing("arn:task:1", "COMPLETED"), "DescribeTaskDefinition": task("arn:task:1", "")}, true,
			"DescribeServices DescribeTaskDefinition CreateSecret PutSecretValue RegisterTaskDefinition ListTaskDefinitions UpdateExpressGatewayService",
		},
		"that was asked for before": {
			map[string][]answer{"DescribeServices": replacing(restartTask, "IN_PROGRESS"), "DescribeTaskDefinition": task(restartTask, restartID)}, false,
			"DescribeServices DescribeTaskDefinition",
		},
		"that was cut off": {
			map[string][]answer{"DescribeServices": replacing("arn:task:1", "COMPLETED"), "DescribeTaskDefinition": task(restartTask, restartID)}, false,
			"DescribeServices DescribeTaskDefinition ListTaskDefinitions UpdateService",
		},
		"of one that is absent": {
			map[string][]answer{"DescribeServices": {{0, `{"services":[]}`}}}, false,
			"DescribeServices DescribeServices CreateSecret PutSecretValue DescribeTaskDefinition RegisterTaskDefinition DescribeTargetGroups CreateTargetGroup " +
				"ModifyTargetGroupAttributes DescribeRules CreateRule CreateService",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.answers["CreateSecret"] = []answer{refusal(400, "ResourceExistsException", "already exists.")}
			c.answers["PutSecretValue"] = []answer{{0, `{"ARN":"arn:secret"}`}}
			c.answers["RegisterTaskDefinition"] = []answer{{0, `{"taskDefinition":{"taskDefinitionArn":"` + restartTask + `"}}`}}
			r := newRecorded(t, c.answers)
			check.Must(t, r.target(func(cfg *ecs.Config) {
				if c.express {
					cfg.Compute = ecs.Express
				}
			}).Restart(t.Context(), newRelease(), restartID))
			if got := r.operations(); got != c.want {
				t.Errorf("calls: %s", got)
			}
			updated := strings.Join(append(r.of("UpdateService"), r.of("UpdateExpressGatewayService")...), "")
			if strings.Contains(c.want, "Update") && !strings.Contains(updated, restartTask) {
				t.Errorf("the service is updated by %s", updated)
			}
			if strings.HasSuffix(c.want, " UpdateService") && (!strings.Contains(updated, `"rollback":true`) || !strings.Contains(updated, `"minimumHealthyPercent":100`)) {
				t.Errorf("the service is updated by %s", updated)
			}
			if strings.Contains(c.want, "RegisterTaskDefinition ListTaskDefinitions") {
				defined, stored := r.of("RegisterTaskDefinition")[0], r.of("PutSecretValue")[0]
				if !strings.Contains(defined, `"dockerLabels":{"slipway.restart":"`+restartID+`"}`) || strings.Contains(defined, "hunter2") || !strings.Contains(stored, "hunter2") {
					t.Errorf("the task definition is %s", defined)
				}
			}
		})
	}
}

func TestAwaitRestart(t *testing.T) {
	t.Parallel()
	late, early := func() time.Time { return began.Add(time.Hour) }, func() time.Time { return began }
	ended := func(definition string) []answer {
		return []answer{{0, `{"tasks":[{"taskDefinitionArn":"` + definition + `","stopCode":"EssentialContainerExited","stoppedReason":"Essential container in task exited","containers":[{"name":"Main","exitCode":7}]}]}`}}
	}
	listed := []answer{{0, `{"taskArns":["arn:1"]}`}}
	express := func(created int, status string) []answer {
		return []answer{{0, fmt.Sprintf(`{"serviceDeployments":[{"status":%q,"createdAt":%d,"statusReason":"tasks failed to start"}]}`, status, created)}}
	}
	for name, c := range map[string]struct {
		answers map[string][]answer
		express bool
		now     func() time.Time
		state   compute.State
		reason  string
		words   string
	}{
		"under way":            {map[string][]answer{"DescribeServices": replacing(restartTask, "IN_PROGRESS")}, false, early, compute.Progressing, "", "its successors are starting"},
		"done":                 {map[string][]answer{"DescribeServices": replacing(restartTask, "COMPLETED")}, false, early, compute.Healthy, "", ""},
		"given up":             {map[string][]answer{"DescribeServices": replacing(restartTask, "FAILED")}, false, early, compute.Failed, compute.ReasonStartFailed, "circuit breaker"},
		"gone back":            {map[string][]answer{"DescribeServices": replacing("arn:task:1", "COMPLETED")}, false, early, compute.Failed, compute.ReasonStartFailed, "could not be started"},
		"its tasks ended":      {map[string][]answer{"DescribeServices": replacing("arn:task:1", "COMPLETED"), "ListTasks": listed, "DescribeTasks": ended(restartTask)}, false, early, compute.Failed, compute.ReasonStartFailed, "exit code 7"},
		"others ended":         {map[string][]answer{"DescribeServices": replacing(restartTask, "IN_PROGRESS"), "ListTasks": listed, "DescribeTasks": ended("arn:task:1")}, false, early, compute.Progressing, "", ""},
		"overdue":              {map[string][]answer{"DescribeServices": replacing(restartTask, "IN_PROGRESS")}, false, late, compute.Failed, compute.ReasonNotReady, "did not answer GET /ping"},
		"removed":              {map[string][]answer{"DescribeServices": {{0, `{"services":[]}`}}}, false, early, compute.Absent, "", ""},
		"Express, not begun":   {map[string][]answer{"DescribeServices": replacing(restartTask, "COMPLETED"), "ListServiceDeployments": express(1767260000, "SUCCESSFUL")}, true, early, compute.Progressing, "", ""},
		"Express, under way":   {map[string][]answer{"DescribeServices": replacing(restartTask, "COMPLETED"), "ListServiceDeployments": express(1767268801, "IN_PROGRESS")}, true, early, compute.Progressing, "", ""},
		"Express, done":        {map[string][]answer{"DescribeServices": replacing(restartTask, "COMPLETED"), "ListServiceDeployments": express(1767268801, "SUCCESSFUL")}, true, early, compute.Healthy, "", ""},
		"Express, rolled back": {map[string][]answer{"DescribeServices": replacing(restartTask, "COMPLETED"), "ListServiceDeployments": express(1767268801, "ROLLBACK_SUCCESSFUL")}, true, early, compute.Failed, compute.ReasonStartFailed, "tasks failed to start"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.answers["DescribeTaskDefinition"] = task(restartTask, restartID)
			r := newRecorded(t, c.answers)
			ctx, lookOnce := once(t)
			target := r.target(lookOnce, func(cfg *ecs.Config) {
				cfg.Now = c.now
				if c.express {
					cfg.Compute = ecs.Express
				}
			})
			got, err := target.AwaitRestart(ctx, newRelease().Ref, restartID)
			if err != nil || got.State != c.state || got.Reason != c.reason || !strings.Contains(got.Message, c.words) {
				t.Errorf("got %+v, %v; want %s %s %q", got, err, c.state, c.reason, c.words)
			}
			back := r.of("UpdateService")
			if overdue := name == "overdue"; overdue != (len(back) == 1) || (overdue && !strings.Contains(back[0], `"taskDefinition":"arn:task:1"`)) {
				t.Errorf("updates: %q", back)
			}
		})
	}
}

// TestARestartTakesBackTheDefinitionsOfThoseBefore, except the definitions that the service
// has, and may go back to.
func TestARestartTakesBackTheDefinitionsOfThoseBefore(t *testing.T) {
	t.Parallel()
	const newest = "arn:task:9"
	r := newRecorded(t, map[string][]answer{
		"DescribeServices":       replacing(restartTask, "IN_PROGRESS"),
		"DescribeTaskDefinition": task("arn:task:4", anotherID),
		"RegisterTaskDefinition": {{0, `{"taskDefinition":{"taskDefinitionArn":"` + newest + `"}}`}},
		"ListTaskDefinitions":    {{0, `{"taskDefinitionArns":["arn:task:1","arn:task:2","arn:task:3"],"nextToken":"more"}`}, {0, `{"taskDefinitionArns":["arn:task:4","arn:task:9"]}`}},
	})
	check.Must(t, r.target().Restart(t.Context(), newRelease(), restartID))
	if got, want := r.of("DeregisterTaskDefinition"), []string{`{"taskDefinition":"arn:task:3"}`, `{"taskDefinition":"arn:task:4"}`}; !slices.Equal(got, want) {
		t.Errorf("taken back: %q", got)
	}
	if got := r.of("UpdateService"); len(got) != 1 || !strings.Contains(got[0], newest) {
		t.Errorf("updates: %q", got)
	}
}

// TestARestartThatIsSuperseded gets the answer of the restart that supersedes it, whose
// definition the service may not have yet.
func TestARestartThatIsSuperseded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service []answer
		label   string
		later   time.Duration
		want    compute.State
	}{
		"before it has begun":         {replacing("arn:task:3", "IN_PROGRESS"), anotherID, time.Second, compute.Progressing},
		"before it has begun, served": {replacing("arn:task:3", "COMPLETED"), anotherID, time.Second, compute.Progressing},
		"under way":                   {replacing(restartTask, "IN_PROGRESS"), anotherID, time.Second, compute.Progressing},
		"done":                        {replacing(restartTask, "COMPLETED"), anotherID, time.Second, compute.Healthy},
		"given up":                    {replacing(restartTask, "FAILED"), anotherID, time.Second, compute.Failed},
		"gone back for long":          {replacing("arn:task:1", "COMPLETED"), anotherID, time.Hour, compute.Failed},
		"not at all":                  {replacing("arn:task:1", "COMPLETED"), restartID, time.Second, compute.Failed},
	} {
		r := newRecorded(t, map[string][]answer{"DescribeServices": c.service, "DescribeTaskDefinition": task(restartTask, c.label)})
		ctx, lookOnce := once(t)
		target := r.target(lookOnce, func(cfg *ecs.Config) { cfg.Now = func() time.Time { return began.Add(c.later) } })
		if got, err := target.AwaitRestart(ctx, newRelease().Ref, restartID); err != nil || got.State != c.want {
			t.Errorf("%s: got %+v, %v; want %s", name, got, err, c.want)
		}
	}
}

// TestAwaitOfARestartThatIsNotKnown looks at the release, because the release was started
// after that restart.
func TestAwaitOfARestartThatIsNotKnown(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeServices": deploying("FAILED"), "DescribeTaskDefinition": task("arn:task:1", "")})
	if got, err := r.target().AwaitRestart(t.Context(), newRelease().Ref, restartID); err != nil || got.State != compute.Failed {
		t.Errorf("got %+v, %v", got, err)
	}
}

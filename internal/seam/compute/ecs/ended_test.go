package ecs_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
)

// taskEvent is the detail of an event that says that a task of a service has ended. The
// members in further are added to the usual members, or replace them.
func taskEvent(service string, further map[string]any) json.RawMessage {
	detail := map[string]any{
		"clusterArn": "arn:aws:ecs:eu-central-1:" + account + ":cluster/agents", "group": "service:" + service, "desiredStatus": "STOPPED", "lastStatus": "STOPPED",
		"stopCode": "EssentialContainerExited", "stoppedReason": "Essential container in task exited", "stoppedAt": began.Format(time.RFC3339Nano), "version": 5,
		"containers": []any{map[string]any{"name": "Main", "lastStatus": "STOPPED", "exitCode": 9}},
	}
	maps.Copy(detail, further)
	text, err := json.Marshal(detail)
	if err != nil {
		panic(err)
	}
	return text
}

// TestTheEndOfATaskRaisesTheAlarm gives each way in which a task ends, and checks the alarm.
func TestTheEndOfATaskRaisesTheAlarm(t *testing.T) {
	t.Parallel()
	ref := newRelease().Ref
	tags := `"tags":[{"key":"slipway:stack","value":"slipway"},{"key":"slipway:workspace","value":"` + ref.Workspace + `"},{"key":"slipway:deployment","value":"` + ref.Deployment +
		`"},{"key":"slipway:revision","value":"` + ref.Revision + `"}]`
	withTags := func(service []answer) []answer {
		return []answer{{0, strings.Replace(service[0].body, `"status":"ACTIVE",`, `"status":"ACTIVE",`+tags+`,`, 1)}}
	}
	for name, c := range map[string]struct {
		group   string
		further map[string]any
		service []answer
		want    compute.Status
		err     string
	}{
		"container ended": {want: compute.Status{State: compute.Progressing, Reason: compute.ReasonEnded, Message: "the agent's container ended: Essential container in task exited (exit code 9)"}},
		"too much memory": {further: map[string]any{"containers": []any{map[string]any{"exitCode": 137, "reason": "OutOfMemoryError: Container killed due to memory usage"}}},
			want: compute.Status{State: compute.Progressing, Reason: compute.ReasonOutOfMemory,
				Message: "the agent's container ended: Essential container in task exited (exit code 137): OutOfMemoryError: Container killed due to memory usage"}},
		"health check": {further: map[string]any{"stopCode": "ServiceSchedulerInitiated", "stoppedReason": "Task failed ELB health checks in (target-group arn:group)", "containers": nil},
			want: compute.Status{State: compute.Progressing, Reason: compute.ReasonNotReady,
				Message: "the agent does not answer GET /ping with 200 on port 8080: Task failed ELB health checks in (target-group arn:group)"}},
		"image is gone": {further: map[string]any{"stopCode": "TaskFailedToStart", "stoppedReason": notFound, "containers": nil},
			want: compute.Status{State: compute.Progressing, Reason: compute.ReasonImageUnavailable, Message: "the image cannot be pulled: " + notFound}},
		"scaled in":          {further: map[string]any{"stopCode": "ServiceSchedulerInitiated", "stoppedReason": "Scaling activity initiated by (deployment ecs-svc/1)"}},
		"host ended":         {further: map[string]any{"stopCode": "TerminationNotice", "stoppedReason": "Task stopped due to maintenance"}},
		"late":               {further: map[string]any{"stoppedAt": began.Add(-time.Hour).Format(time.RFC3339)}},
		"not stopped yet":    {further: map[string]any{"lastStatus": "STOPPING"}},
		"another service":    {group: "web-1"},
		"no revision":        {group: "slipway-worker"},
		"service is gone":    {service: []answer{{0, `{"services":[],"failures":[{"reason":"MISSING"}]}`}}},
		"tried by a restart": {further: map[string]any{"taskDefinitionArn": "arn:task:2"}, service: withTags(replacing("arn:task:2", "IN_PROGRESS"))},
		"failed restart":     {further: map[string]any{"taskDefinitionArn": "arn:task:12"}, service: withTags(replacing("arn:task:9", "COMPLETED"))},
		"before a restart": {further: map[string]any{"taskDefinitionArn": "arn:task:1"}, service: withTags(replacing("arn:task:2", "IN_PROGRESS")),
			want: compute.Status{State: compute.Progressing, Reason: compute.ReasonEnded, Message: "the agent's container ended: Essential container in task exited (exit code 9)"}},
		"after a restart": {further: map[string]any{"taskDefinitionArn": "arn:task:2"}, service: withTags(replacing("arn:task:2", "COMPLETED")),
			want: compute.Status{State: compute.Progressing, Reason: compute.ReasonEnded, Message: "the agent's container ended: Essential container in task exited (exit code 9)"}},
		"service is removed": {service: service(`"status":"DRAINING",` + tags)},
		"may not read the secret": {further: map[string]any{"stopCode": "TaskFailedToStart", "stoppedReason": "ResourceInitializationError: unable to pull secrets: AccessDeniedException"},
			err: "unable to pull secrets"},
		"nobody's service": {service: service(`"status":"ACTIVE"`), err: "no tags"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.service == nil {
				c.service = service(`"status":"ACTIVE",` + tags)
			}
			if c.group == "" {
				c.group = "slipway-" + ref.Revision
			}
			r := newRecorded(t, map[string][]answer{"DescribeServices": c.service})
			target := r.target(func(cfg *ecs.Config) { cfg.Now = func() time.Time { return began.Add(time.Minute) } })
			var told []compute.Status
			err := target.Ended(t.Context(), taskEvent(c.group, c.further), func(_ context.Context, of compute.Ref, status compute.Status) {
				if of != ref {
					t.Errorf("told of %+v, want %+v", of, ref)
				}
				told = append(told, status)
			})
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
			var want []compute.Status
			if c.want != (compute.Status{}) {
				want = append(want, c.want)
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
	err := newRecorded(t, nil).target().Ended(t.Context(), json.RawMessage(`"x"`), nil)
	if err == nil {
		t.Error("what is no end of a task was taken for one")
	}
}

package ecs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
)

// began is the time at which the deployments of the tests began.
var began = time.Unix(1767268800, 0)

const notFound = "CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/library/nope:latest: " +
	"docker.io/library/nope:latest: not found"

// limited is the tag of a service whose release has its own limit, in seconds.
func limited(seconds int) string {
	return fmt.Sprintf(`"tags":[{"key":"slipway:revision","value":"x"},{"key":"slipway:ready-limit","value":"%d"}]`, seconds)
}

// TestAwait gives each answer that AWS may give about a release, and checks the status that
// Await makes of it.
func TestAwait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service, tasks []answer
		// later is the time between the beginning of the deployment and the look at it.
		later  time.Duration
		want   compute.State
		reason string
		words  string
		err    string
	}{
		"no service":       {service: []answer{{0, `{"services":[],"failures":[{"reason":"MISSING"}]}`}}, want: compute.Absent},
		"removed":          {service: service(`"status":"INACTIVE"`), want: compute.Absent},
		"draining":         {service: service(`"status":"DRAINING"`), want: compute.Absent, words: "being stopped"},
		"at its beginning": {service: service(`"status":"ACTIVE","desiredCount":1`), want: compute.Progressing},
		"starting": {service: deploying("IN_PROGRESS", events(1767268801, "(service x) has started 1 tasks: (task 1).")), want: compute.Progressing,
			words: "0 of 1 replicas run. (service x) has started 1 tasks"},
		"image not there": {service: deploying("IN_PROGRESS"), tasks: stopped("TaskFailedToStart", notFound, ""),
			want: compute.Failed, reason: compute.ReasonImageUnavailable, words: "nope:latest: not found"},
		"image refused": {service: deploying("IN_PROGRESS"),
			tasks: stopped("TaskFailedToStart", "CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref docker.io/a/b: pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed", ""),
			want:  compute.Failed, reason: compute.ReasonImageUnavailable},
		"image of another machine": {service: deploying("IN_PROGRESS"), tasks: stopped("TaskFailedToStart", "CannotPullContainerError: pull image manifest has been retried 1 time(s): image Manifest does not contain descriptor matching platform 'linux/arm64'", ""),
			want: compute.Failed, reason: compute.ReasonImageUnavailable, words: "linux/arm64"},
		"registry is slow": {service: deploying("IN_PROGRESS"), tasks: stopped("TaskFailedToStart", `CannotPullContainerError: pull image manifest has been retried 5 time(s): failed to do request: Head "https://r": dial tcp 34.205.13.154:443: i/o timeout`, ""),
			want: compute.Progressing},
		"registry throttles": {service: deploying("IN_PROGRESS"), tasks: stopped("TaskFailedToStart", "CannotPullContainerError: httpReadSeeker: failed open: unexpected status code 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.", ""),
			want: compute.Progressing},
		"registry stayed slow": {service: deploying("FAILED"), tasks: stopped("TaskFailedToStart", "CannotPullContainerError: i/o timeout", ""),
			want: compute.Failed, reason: compute.ReasonImageUnavailable, words: "i/o timeout"},
		"container ends": {service: deploying("IN_PROGRESS"), tasks: stopped("EssentialContainerExited", "Essential container in task exited", `,"exitCode":2`),
			want: compute.Failed, reason: compute.ReasonStartFailed, words: "exited (exit code 2)"},
		"container too large": {service: deploying("IN_PROGRESS"), tasks: stopped("EssentialContainerExited", "Essential container in task exited", `,"exitCode":137,"reason":"OutOfMemoryError: Container killed due to memory usage"`),
			want: compute.Failed, reason: compute.ReasonStartFailed, words: "(exit code 137): OutOfMemoryError"},
		"no such program": {service: deploying("IN_PROGRESS"), tasks: stopped("TaskFailedToStart", `CannotStartContainerError: Error response from daemon: exec: "agent": executable file not found in $PATH`, ""),
			want: compute.Failed, reason: compute.ReasonStartFailed, words: "executable file not found"},
		"health check fails": {service: deploying("IN_PROGRESS"), tasks: stopped("ServiceSchedulerInitiated", "Task failed ELB health checks in (target-group arn:group)", `,"exitCode":0`),
			want: compute.Failed, reason: compute.ReasonNotReady, words: "GET /ping"},
		"scaled in": {service: deploying("IN_PROGRESS"), tasks: stopped("ServiceSchedulerInitiated", "Scaling activity initiated by (deployment ecs-svc/1)", `,"exitCode":0`),
			want: compute.Progressing},
		"host ended": {service: deploying("IN_PROGRESS"), tasks: stopped("TerminationNotice", "Task stopped due to maintenance", ""), want: compute.Progressing},
		"a deployment before": {service: deploying("IN_PROGRESS"), tasks: []answer{{0, `{"tasks":[{"startedBy":"ecs-svc/0","stopCode":"EssentialContainerExited"}]}`}},
			want: compute.Progressing},
		"may not read the secret": {service: deploying("IN_PROGRESS"), tasks: stopped("TaskFailedToStart", "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: unable to retrieve secret from asm: service call has been retried 1 time(s): failed to fetch secret: AccessDeniedException", ""),
			err: "unable to pull secrets"},
		"secrets are slow": {service: deploying("IN_PROGRESS"), tasks: stopped("TaskFailedToStart", "ResourceInitializationError: unable to pull secrets or registry auth: RequestCanceled: request context canceled caused by: context deadline exceeded", ""),
			want: compute.Progressing},
		"secrets stayed slow": {service: deploying("FAILED"), tasks: stopped("TaskFailedToStart", "ResourceInitializationError: context deadline exceeded", ""), err: "deadline exceeded"},
		"may not be the role": {service: deploying("IN_PROGRESS", events(1767268801, "(service x) failed to launch a task with (error ECS was unable to assume the role 'arn:aws:iam::1:role/execution' that was provided for this task.)")),
			err: "unable to assume the role"},
		"an event before": {service: deploying("IN_PROGRESS", events(1767268799, "ECS was unable to assume the role")), want: compute.Progressing},
		"no room": {service: deploying("IN_PROGRESS", events(1767268801, "(service x) was unable to place a task. Reason: Capacity is unavailable at this time. Please try again later or in a different availability zone.")),
			want: compute.Progressing, words: "Capacity is unavailable"},
		"no room for long": {service: deploying("IN_PROGRESS", events(1767268801, "(service x) was unable to place a task. Reason: Capacity is unavailable at this time.")), later: 11 * time.Minute,
			want: compute.Failed, reason: compute.ReasonNoCapacity, words: "Capacity is unavailable"},
		"no room at all": {service: deploying("FAILED", events(1767268801, "(service x) was unable to place a task. Reason: You've reached the limit on the number of vCPUs you can run concurrently")),
			want: compute.Failed, reason: compute.ReasonNoCapacity, words: "limit on the number"},
		"given up": {service: deploying("FAILED"), want: compute.Failed, reason: compute.ReasonStartFailed, words: "circuit breaker"},
		"no answer for long": {service: deploying("IN_PROGRESS"), later: 11 * time.Minute,
			want: compute.Failed, reason: compute.ReasonNotReady, words: "GET /ping within 10m0s"},
		"its own limit is shorter": {service: deploying("IN_PROGRESS", limited(30)), later: 31 * time.Second,
			want: compute.Failed, reason: compute.ReasonNotReady, words: "GET /ping within 30s"},
		"its own limit is longer": {service: deploying("IN_PROGRESS", limited(3600)), later: 11 * time.Minute, want: compute.Progressing},
		"no room within its own limit": {service: deploying("IN_PROGRESS", limited(30), events(1767268801, "Reason: Capacity is unavailable at this time.")), later: time.Minute,
			want: compute.Failed, reason: compute.ReasonNoCapacity, words: "within 30s"},
		"AWS refuses": {service: []answer{refusal(400, "AccessDeniedException", "User is not authorized to perform: ecs:DescribeServices")}, err: "AccessDeniedException"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecorded(t, map[string][]answer{"DescribeServices": c.service, "DescribeTasks": c.tasks})
			if c.tasks != nil {
				r.answers["ListTasks"] = []answer{{0, `{"taskArns":["arn:1"]}`}}
			}
			ctx, lookOnce := once(t)
			target := r.target(lookOnce, func(cfg *ecs.Config) { cfg.Now = func() time.Time { return began.Add(c.later) } })
			got, err := target.Await(ctx, newRelease().Ref)
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %+v, %v; want an error with %q", got, err, c.err)
			case c.err == "" && (err != nil || got.State != c.want || got.Reason != c.reason || !strings.Contains(got.Message, c.words)):
				t.Errorf("got %+v, %v; want %s %s with %q", got, err, c.want, c.reason, c.words)
			}
		})
	}
}

const running = `"status":"ACTIVE","desiredCount":2,"runningCount":2,"deployments":[{"id":"ecs-svc/1","status":"PRIMARY","desiredCount":2,"runningCount":2,"rolloutState":"IN_PROGRESS","createdAt":1767268800}]`

func target(state string) string {
	return "<member><Target><Id>10.0.0.1</Id></Target><TargetHealth><State>" + state + "</State></TargetHealth></member>"
}

// TestAReleaseIsHealthyWhenItsTargetsAre waits through the states of a start.
func TestAReleaseIsHealthyWhenItsTargetsAre(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{
		"DescribeServices":     {deploying("IN_PROGRESS")[0], service(running)[0]},
		"DescribeTargetGroups": {{0, "<TargetGroups><member><TargetGroupArn>arn:group</TargetGroupArn></member></TargetGroups>"}},
		"DescribeTargetHealth": {
			{0, ""},
			{0, "<TargetHealthDescriptions>" + target("initial") + target("healthy") + "</TargetHealthDescriptions>"},
			{0, "<TargetHealthDescriptions>" + target("healthy") + target("healthy") + "</TargetHealthDescriptions>"},
		},
	})
	got, err := r.target(func(cfg *ecs.Config) { cfg.Now = func() time.Time { return began } }).Await(t.Context(), newRelease().Ref)
	if err != nil || got.State != compute.Healthy || len(r.of("DescribeTargetHealth")) != 3 {
		t.Errorf("got %+v, %v after %d looks", got, err, len(r.of("DescribeTargetHealth")))
	}
}

// TestAwaitAsksLessAndLessOften also ends the context while Await waits.
func TestAwaitAsksLessAndLessOften(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeServices": deploying("IN_PROGRESS")})
	ctx, cancel := context.WithCancel(t.Context())
	var pauses []time.Duration
	target := r.target(func(cfg *ecs.Config) {
		cfg.Now = func() time.Time { return began }
		cfg.After = func(d time.Duration) <-chan time.Time {
			pauses = append(pauses, d)
			if len(pauses) == 8 {
				cancel()
				return nil
			}
			now := make(chan time.Time, 1)
			now <- began
			return now
		}
	})
	got, err := target.Await(ctx, newRelease().Ref)
	if err != nil || got.State != compute.Progressing || !strings.Contains(got.Message, "0 of 1 replicas") {
		t.Errorf("got %+v, %v", got, err)
	}
	if pauses[0] != time.Second || pauses[1] != 1500*time.Millisecond || pauses[7] != 8*time.Second {
		t.Errorf("pauses are %v", pauses)
	}
}

// TestAnErrorAtTheVeryEndIsTheEnd makes the connection notice first that the time is over.
func TestAnErrorAtTheVeryEndIsTheEnd(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{"DescribeServices": {refusal(400, "AccessDeniedException", "no")}})
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Millisecond)
	defer cancel()
	if got, err := r.target().Await(ctx, newRelease().Ref); err != nil || got.State != compute.Progressing {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAwaitWithoutTimeSaysProgressing(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.target().Await(ctx, newRelease().Ref); err != nil || got.State != compute.Progressing {
		t.Errorf("got %+v, %v", got, err)
	}
}

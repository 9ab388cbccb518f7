package ecs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/test/check"
)

// policy is the part of PutScalingPolicy that says when a service scales.
type policy struct {
	PolicyName                               string
	TargetTrackingScalingPolicyConfiguration struct {
		TargetValue                   float64
		PredefinedMetricSpecification any
		CustomizedMetricSpecification struct {
			Metrics []struct {
				ID         string `json:"Id"`
				Expression string
				ReturnData bool
				MetricStat *struct {
					Stat   string
					Metric struct {
						Namespace, MetricName string
						Dimensions            []struct{ Name, Value string }
					}
				}
			}
		}
	}
}

func (p policy) String() string {
	configured := p.TargetTrackingScalingPolicyConfiguration
	text := fmt.Sprintf("%s aims at %g of", p.PolicyName, configured.TargetValue)
	for _, query := range configured.CustomizedMetricSpecification.Metrics {
		if query.MetricStat == nil {
			text += fmt.Sprintf("\n%s = %s, returned: %t", query.ID, query.Expression, query.ReturnData)
			continue
		}
		measured := query.MetricStat.Metric
		text += fmt.Sprintf("\n%s = %s of %s %s %v, returned: %t", query.ID, query.MetricStat.Stat, measured.Namespace, measured.MetricName, measured.Dimensions, query.ReturnData)
	}
	return text
}

// policies are the scaling policies that were made.
func (r *recorded) policies() []policy {
	r.t.Helper()
	var made []policy
	for _, body := range r.of("PutScalingPolicy") {
		var p policy
		check.Must(r.t, json.Unmarshal([]byte(body), &p))
		made = append(made, p)
	}
	return made
}

// scaling is the policy of a release: the runs for each replica.
func scaling(name, revision string, target float64) string {
	return fmt.Sprintf("%s aims at %g of", name, target) +
		"\nbusy = Sum of Slipway/slipway RunSeconds [{Revision " + revision + "}], returned: false" +
		"\ntasks = SampleCount of AWS/ECS CPUUtilization [{ClusterName agents} {ServiceName slipway-" + revision + "}], returned: false" +
		"\nload = FILL(busy, 0) / 60 / tasks, returned: true"
}

// growing is a release with up to five replicas.
func growing(jobs string) compute.Release {
	release := newRelease()
	release.Resources = compute.Resources{MinScale: 1, MaxScale: 5}
	if jobs != "" {
		release.Env["N_JOBS_PER_WORKER"] = jobs
	}
	return release
}

// TestServicesScaleByRuns: a service has room for a quarter more runs than its policy aims at.
func TestServicesScaleByRuns(t *testing.T) {
	t.Parallel()
	for jobs, target := range map[string]float64{"": 8, "1": 0.8, "50": 40, "-3": 8, "many": 8} {
		r, release := newRecorded(t, map[string][]answer{"DescribeServices": {{0, `{"services":[]}`}}}), growing(jobs)
		check.Must(t, r.target(func(c *ecs.Config) { c.Cluster = "arn:aws:ecs:eu-central-1:1:cluster/agents" }).Apply(t.Context(), release))
		made := r.policies()
		if len(made) != 1 || made[0].TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification != nil {
			t.Fatalf("%q: made %v", jobs, made)
		}
		if diff := cmp.Diff(scaling("slipway-"+release.Revision, release.Revision, target), made[0].String()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", jobs, diff)
		}
	}
	r, release := newRecorded(t, nil), growing("")
	release.Resources.MaxScale = 1
	check.Must(t, r.target().Apply(t.Context(), release))
	if got := r.operations(); strings.Contains(got, "Scal") {
		t.Errorf("a service of one replica: %s", got)
	}
}

// TestScalingMovesWithARestart: a service of an earlier version scales by CPU, and the number of
// runs that a replica is meant for may be another one after a restart. A call that is repeated
// after it was cut off makes the policy, too.
func TestScalingMovesWithARestart(t *testing.T) {
	t.Parallel()
	release := growing("20")
	r := newRecorded(t, map[string][]answer{
		"DescribeServices":       {replacing("arn:task:1", "COMPLETED")[0], replacing(restartTask, "COMPLETED")[0]},
		"DescribeTaskDefinition": {task("arn:task:1", "")[0], task(restartTask, restartID)[0]},
		"RegisterTaskDefinition": task(restartTask, restartID),
	})
	target := r.target()
	for range 2 {
		check.Must(t, target.Restart(t.Context(), release, restartID))
	}
	made := r.policies()
	if len(made) != 2 || made[0].String() != scaling("slipway-"+release.Revision, release.Revision, 16) || made[1].String() != made[0].String() {
		t.Errorf("made %v", made)
	}
	if got := r.of("UpdateService"); len(got) != 1 {
		t.Errorf("updates: %q", got)
	}
}

// TestExpressServicesScaleByRunsToo: ECS registers the scalable target itself, so only the policy
// is made, under a name of its own, once the target is there. A restart may bring another number
// of runs.
func TestExpressServicesScaleByRunsToo(t *testing.T) {
	t.Parallel()
	release := growing("20")
	r := newRecorded(t, map[string][]answer{
		"DescribeServices":       {{0, `{"services":[]}`}, deploying("IN_PROGRESS")[0]},
		"ListServiceDeployments": {{0, `{"serviceDeployments":[{"status":"SUCCESSFUL"}]}`}},
		"PutScalingPolicy":       {refusal(400, "ObjectNotFoundException", "No scalable target registered"), {}},
	})
	target := r.target(express, func(c *ecs.Config) {
		c.After = func(time.Duration) <-chan time.Time { over := make(chan time.Time); close(over); return over }
	})
	check.Must(t, target.Apply(t.Context(), release))
	r.describeNewest()
	status, err := target.Await(t.Context(), release.Ref)
	if err != nil || status.State != compute.Healthy {
		t.Errorf("await: %+v, %v", status, err)
	}
	release.Env["N_JOBS_PER_WORKER"] = "50"
	check.Must(t, target.Restart(t.Context(), release, restartID))
	r.describeNewest()
	status, err = target.AwaitRestart(t.Context(), release.Ref, restartID)
	if err != nil || status.State != compute.Healthy {
		t.Errorf("await restart: %+v, %v", status, err)
	}
	var made []string
	for _, p := range r.policies() {
		made = append(made, p.String())
	}
	first, second := scaling("slipway-"+release.Revision+"-runs", release.Revision, 16), scaling("slipway-"+release.Revision+"-runs", release.Revision, 40)
	if diff := cmp.Diff([]string{first, first, second}, made); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if got := r.of("RegisterScalableTarget"); len(got) != 0 {
		t.Errorf("registered %q", got)
	}
}

// TestExpressServicesOfOneSizeDoNotScale, and services of an earlier version keep what they have.
func TestExpressServicesOfOneSizeDoNotScale(t *testing.T) {
	t.Parallel()
	release := growing("20")
	release.Resources.MaxScale = 1
	r := newRecorded(t, map[string][]answer{
		"DescribeServices":       {{0, `{"services":[]}`}, deploying("IN_PROGRESS")[0]},
		"ListServiceDeployments": {{0, `{"serviceDeployments":[{"status":"SUCCESSFUL"}]}`}},
	})
	target := r.target(express)
	check.Must(t, target.Apply(t.Context(), release))
	r.describeNewest()
	status, err := target.Await(t.Context(), release.Ref)
	if err != nil || status.State != compute.Healthy || strings.Contains(r.operations(), "Scal") {
		t.Errorf("await: %+v, %v after %s", status, err, r.operations())
	}
}

// describeNewest makes ECS describe the newest task definition that was registered.
func (r *recorded) describeNewest() {
	registered := r.of("RegisterTaskDefinition")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers["DescribeTaskDefinition"] = []answer{{0, `{"taskDefinition":` + registered[len(registered)-1] + `}`}}
}

// TestRemoveDeletesTheScaling, also if it never was, or went with an earlier call.
func TestRemoveDeletesTheScaling(t *testing.T) {
	t.Parallel()
	for mode, operation := range map[string]string{ecs.Fargate: "DeregisterScalableTarget", ecs.Express: "DeleteScalingPolicy"} {
		r := newRecorded(t, map[string][]answer{"DescribeTargetGroups": {{}}, operation: {
			{}, refusal(400, "ObjectNotFoundException", "No scalable target found for service namespace: ecs"),
			refusal(400, "ValidationException", "No scalable target found for service namespace: ecs"), refusal(400, "ValidationException", "No scaling policy found"),
			refusal(400, "AccessDeniedException", "no"),
		}})
		target, ref := r.target(func(c *ecs.Config) { c.Compute = mode }), newRelease().Ref
		for range 4 {
			check.Must(t, target.Remove(t.Context(), ref))
		}
		if err := target.Remove(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "AccessDeniedException") {
			t.Errorf("%s: got %v", mode, err)
		}
		got := r.of(operation)[0]
		if want := `"ResourceId":"service/agents/slipway-` + ref.Revision + `"`; !strings.Contains(got, want) {
			t.Errorf("%s: got %s", mode, got)
		}
		if want := `"PolicyName":"slipway-` + ref.Revision + `-runs"`; mode == ecs.Express && !strings.Contains(got, want) {
			t.Errorf("%s: got %s", mode, got)
		}
	}
}

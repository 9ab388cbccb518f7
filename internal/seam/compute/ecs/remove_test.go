package ecs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/test/check"
)

const group = "<TargetGroups><member><TargetGroupArn>arn:group</TargetGroupArn><TargetGroupName>slipway-abc</TargetGroupName></member></TargetGroups>"

// tagged is an answer of DescribeTags for the group.
func tagged(stack string, ref compute.Ref, removed bool) answer {
	tag := func(key, value string) string {
		return "<member><Key>" + key + "</Key><Value>" + value + "</Value></member>"
	}
	tags := tag("slipway:stack", stack) + tag("slipway:revision", ref.Revision)
	if removed {
		tags += tag("slipway:removed", "true")
	}
	return answer{0, "<TagDescriptions><member><ResourceArn>arn:group</ResourceArn><Tags>" + tags + "</Tags></member></TagDescriptions>"}
}

// TestRemoveLetsCallersFinish removes a release whose service drains for some time.
func TestRemoveLetsCallersFinish(t *testing.T) {
	t.Parallel()
	ref := newRelease().Ref
	rule := `<Rules><member><RuleArn>arn:rule</RuleArn><Priority>1</Priority><Conditions><member><Field>http-header</Field><HttpHeaderConfig>` +
		`<HttpHeaderName>x-slipway-revision</HttpHeaderName><Values><member>` + ref.Revision + `</member></Values></HttpHeaderConfig></member></Conditions></member>` +
		`<member><RuleArn>arn:other</RuleArn><Priority>2</Priority></member></Rules>`
	draining := service(`"status":"DRAINING"`)[0]
	r := newRecorded(t, map[string][]answer{
		"DescribeRules":        {{0, rule}},
		"DescribeServices":     {service(running)[0], draining, draining, draining, {0, `{"services":[]}`}},
		"DescribeTargetGroups": {{0, group}},
		"DescribeTags":         {tagged("slipway", ref, true)},
		"ListTaskDefinitions":  {{0, `{"taskDefinitionArns":["arn:task:1"]}`}, {0, "{}"}},
	})
	target := r.target()
	check.Must(t, target.Remove(t.Context(), ref))
	check.Must(t, target.Remove(t.Context(), ref))
	if got := r.of("DeleteRule"); len(got) == 0 || !strings.Contains(got[0], "arn%3Arule") || strings.Contains(strings.Join(got, ""), "other") {
		t.Errorf("deleted rules: %q", got)
	}
	if got := r.of("DeleteService"); len(got) != 1 || !strings.Contains(got[0], `"force":true`) {
		t.Errorf("deleted services: %q", got)
	}
	if got := r.of("AddTags"); len(got) != 2 || !strings.Contains(got[0], "slipway%3Aremoved") {
		t.Errorf("marks: %q", got)
	}
	if got := r.of("DeleteSecret"); len(got) != 2 || !strings.Contains(got[0], `"ForceDeleteWithoutRecovery":true`) {
		t.Errorf("deleted secrets: %q", got)
	}
	if got := r.of("DeleteTaskDefinitions"); len(got) != 1 {
		t.Errorf("deleted task definitions: %q", got)
	}
	if got := r.of("DeleteTargetGroup"); len(got) != 0 {
		t.Errorf("the target group went while callers may be there: %q", got)
	}
	check.Must(t, target.Sweep(t.Context()))
	if got := r.of("DeleteTargetGroup"); len(got) != 1 {
		t.Errorf("deleted target groups: %q", got)
	}
}

// TestRemoveTakesBackAllTaskDefinitions has more task definitions than AWS lists, or deletes,
// at a time.
func TestRemoveTakesBackAllTaskDefinitions(t *testing.T) {
	t.Parallel()
	page := func(from, to int, next string) answer {
		var arns []string
		for i := from; i <= to; i++ {
			arns = append(arns, fmt.Sprintf("%q", fmt.Sprint("arn:task:", i)))
		}
		return answer{0, `{"taskDefinitionArns":[` + strings.Join(arns, ",") + `],"nextToken":"` + next + `"}`}
	}
	r := newRecorded(t, map[string][]answer{
		"DescribeServices":     {{0, `{"services":[]}`}},
		"DescribeTargetGroups": {{0, ""}},
		"ListTaskDefinitions":  {page(11, 110, "2"), page(111, 125, ""), page(1, 10, "")},
	})
	check.Must(t, r.target().Remove(t.Context(), newRelease().Ref))
	if got := r.of("ListTaskDefinitions"); len(got) != 3 || !strings.Contains(got[1], `"nextToken":"2"`) || strings.Contains(got[2], "nextToken") {
		t.Errorf("listed: %q", got)
	}
	if got := len(r.of("DeregisterTaskDefinition")); got != 115 {
		t.Errorf("%d were deregistered", got)
	}
	deleted := r.of("DeleteTaskDefinitions")
	for _, batch := range deleted {
		if n := strings.Count(batch, "arn:task:"); n > 10 {
			t.Errorf("%d at a time: %s", n, batch)
		}
	}
	all := strings.Join(deleted, "")
	for i := 1; i <= 125; i++ {
		if strings.Count(all, fmt.Sprintf(`"arn:task:%d"`, i)) != 1 {
			t.Errorf("task definition %d was not deleted once: %s", i, all)
		}
	}
}

func TestSweepLeavesAlone(t *testing.T) {
	t.Parallel()
	ref := newRelease().Ref
	none := answer{0, `{"services":[]}`}
	for name, c := range map[string]struct {
		tags, service, group answer
		deletes              int
	}{
		"one that is being applied": {tagged("slipway", ref, false), none, answer{0, group}, 0},
		"one of another stack":      {tagged("slipway2", ref, true), none, answer{0, group}, 0},
		"one of another name":       {tagged("slipway", ref, true), none, answer{0, strings.ReplaceAll(group, "slipway-", "slip-")}, 0},
		"one that is used again":    {tagged("slipway", ref, true), service(running)[0], answer{0, group}, 0},
		"nothing else":              {tagged("slipway", ref, true), none, answer{0, group}, 1},
	} {
		r := newRecorded(t, map[string][]answer{
			"DescribeTags": {c.tags}, "DescribeServices": {c.service}, "DescribeTargetGroups": {c.group},
			"DeleteTargetGroup": {elbRefusal("ResourceInUse", "Target group 'arn:group' is currently in use by a listener or a rule")},
		})
		check.Must(t, r.target().Sweep(t.Context()))
		if got := len(r.of("DeleteTargetGroup")); got != c.deletes {
			t.Errorf("%s: deleted %d times, want %d", name, got, c.deletes)
		}
	}
}

// TestRemoveOfWhatIsNotThere also gives the answers of AWS for resources that do not exist.
func TestRemoveOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, map[string][]answer{
		"DescribeServices":         {{0, `{"services":[],"failures":[{"reason":"MISSING"}]}`}},
		"DeregisterScalableTarget": {refusal(400, "ObjectNotFoundException", "No scalable target found for service namespace: ecs")},
		"DeleteSecret":             {refusal(400, "ResourceNotFoundException", "Secrets Manager can't find the specified secret.")},
		"DescribeTargetGroups":     {elbRefusal("TargetGroupNotFound", "One or more target groups not found"), {0, ""}},
	})
	check.Must(t, r.target().Remove(t.Context(), newRelease().Ref))
	for _, operation := range []string{"DeleteService", "DeleteRule", "DeleteTargetGroup", "AddTags"} {
		if got := r.of(operation); len(got) > 0 {
			t.Errorf("%s: %q", operation, got)
		}
	}
}

// TestRemoveMeetsOthers removes resources between Remove's look at them and their deletion.
func TestRemoveMeetsOthers(t *testing.T) {
	t.Parallel()
	ref := newRelease().Ref
	for operation, given := range map[string]answer{
		"DeleteService":            refusal(400, "ServiceNotFoundException", "Service not found."),
		"DeleteRule":               elbRefusal("RuleNotFound", "One or more rules not found"),
		"DescribeTags":             elbRefusal("TargetGroupNotFound", "Target groups 'arn:group' not found"),
		"DescribeServices":         refusal(400, "ClusterNotFoundException", "Cluster not found."),
		"DeregisterTaskDefinition": refusal(400, "AccessDeniedException", "is not authorized"),
	} {
		answers := map[string][]answer{
			"DescribeServices":     {service(running)[0], {0, `{"services":[]}`}},
			"DescribeTargetGroups": {{0, group}},
			"DescribeTags":         {tagged("slipway", ref, true)},
			"ListTaskDefinitions":  {{0, `{"taskDefinitionArns":["arn:task:1"]}`}, {0, "{}"}},
		}
		answers[operation] = []answer{given}
		r := newRecorded(t, answers)
		wantErr := operation == "DescribeServices" || operation == "DeregisterTaskDefinition"
		if err := r.target().Remove(t.Context(), ref); (err != nil) != wantErr {
			t.Errorf("%s: got %v", operation, err)
		}
	}
}

func TestRemoveRefusesWhatIsNotAnID(t *testing.T) {
	t.Parallel()
	r := newRecorded(t, nil)
	if err := r.target().Remove(t.Context(), compute.Ref{Revision: "*"}); err == nil || r.operations() != "" {
		t.Errorf("got %v after %s", err, r.operations())
	}
	// A process without a prefix does not sweep either: it would sweep away resources that are
	// not the stack's.
	target, err := ecs.New(ecs.Config{AWS: r.config().AWS, Hasher: hasher{}, ALBURL: "http://x"})
	check.Must(t, err)
	if err := target.Sweep(t.Context()); err == nil || r.operations() != "" {
		t.Errorf("sweep: got %v after %s", err, r.operations())
	}
}

//go:build cost

package cost_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/template"
)

// List prices of us-east-1 in dollars, as of November 2026, and the size that the template gives a
// process on managed instances.
const (
	priceVCPUHour      = 0.0399              // EC2, c8g
	managementFee      = 1.15                // Lambda Managed Instances
	priceTaskCPUHour   = 0.0000089944 * 3600 // Fargate, arm64
	priceTaskGBHour    = 0.0000009889 * 3600
	processVCPUs       = 4.0
	processCalls       = 256.0
	keptProcesses      = 3.0 // of each of two functions
	hoursOfMonth       = 730.0
	longRunSeconds     = 600.5
	taskCPUs, taskGBs  = 1.0, 2.0 // the smallest task that has a deployment of the type dev
	priceNATHour       = 0.045
	priceBalancerHour  = 0.0225
	priceKeyMonth      = 1.0
	priceReconcile     = 0.11
	priceStreamReads   = 0.0003 // an hour without events
	secondsOfHour      = 3600.0
	priceProcessHour   = processVCPUs * priceVCPUHour * managementFee
	priceAddressHour   = 0.005 // a public IPv4 address, which the NAT gateway has
	priceACLMonth      = 5.0   // a web ACL, and each of its rules
	priceRuleMonth     = 1.0
	priceAlarmMetric   = 0.10 // each metric of an alarm, after the first ten of the account
	networkMonth       = (priceNATHour + priceAddressHour + priceBalancerHour) * hoursOfMonth
	stackMonth         = priceKeyMonth + priceReconcile
	managedMonth       = 2 * keptProcesses * priceProcessHour * hoursOfMonth
	breakEven          = managedMonth / (secondsOfHour * hoursOfMonth * runnerGB * priceGBSecond)
	idleDeploymentCost = (taskCPUs*priceTaskCPUHour + taskGBs*priceTaskGBHour) * hoursOfMonth
)

// onLambda and onManaged are what 1,000 calls of a function cost that take so long.
func onLambda(seconds, gb float64) float64 {
	return thousand * (seconds*gb*priceGBSecond + priceInvocation)
}

func onManaged(seconds float64) float64 {
	return thousand * (seconds/secondsOfHour/processCalls*priceProcessHour + priceInvocation)
}

// computeReport writes what the two values of the parameter RunnerCompute cost.
func computeReport(t *testing.T, b *strings.Builder) {
	t.Helper()
	rules, alarmMetrics := watching(t)
	firewallMonth, alarmsMonth := priceACLMonth+float64(rules)*priceRuleMonth, float64(alarmMetrics)*priceAlarmMetric
	b.WriteString(`
## The runner and the streams, on Lambda and on managed instances

Computed for ` + "`RunnerCompute=lambda` and `RunnerCompute=managed`" + `, without DynamoDB, Step Functions and API Gateway, which cost the same:

| | lambda, $ | managed, if its processes are full, $ |
|---|---|---|
`)
	for _, row := range []struct {
		what            string
		lambda, managed float64
	}{
		{"1,000 runs of 10 s", onLambda(runSeconds, runnerGB), onManaged(runSeconds)},
		{"1,000 runs of 10 min", onLambda(longRunSeconds, runnerGB), onManaged(longRunSeconds)},
		{"1,000 streams of 10 s", onLambda(runSeconds, runstreamGB), onManaged(runSeconds)},
		{"an open stream, each hour, with its reads", priceStreamReads + secondsOfHour*runstreamGB*priceGBSecond, priceStreamReads + priceProcessHour/processCalls},
		{"an idle deployment, each month: a Fargate task of 1 vCPU and 2 GB", idleDeploymentCost, idleDeploymentCost},
		{"fixed each month: key, reconcile", stackMonth, stackMonth},
		{"fixed each month: NAT gateway with its address, load balancer", networkMonth, networkMonth},
		{fmt.Sprintf("fixed each month: web ACL with %d rules (`Firewall`)", rules), firewallMonth, firewallMonth},
		{fmt.Sprintf("fixed each month: alarms of %d metrics, of which an account has ten free", alarmMetrics), alarmsMonth, alarmsMonth},
		{fmt.Sprintf("fixed each month: %.0f processes of each of the two functions", keptProcesses), 0, managedMonth},
	} {
		fmt.Fprintf(b, "| %s | %.4f | %.4f |\n", row.what, row.lambda, row.managed)
	}
	fmt.Fprintf(b, `
The processes that are kept cost as much as Lambda for %.0f runs at once, all day, without streams: managed instances are cheaper above that. They grow more
slowly: calls that find no process with room are throttled, and the workflow repeats them.

Prices as above, and from memory: $%.4f an hour for a processor of EC2 (c8g), and %.0f %% of it for Lambda's management; $%.4f an hour for a processor of Fargate
and $%.4f for a GB (arm64); $%.3f an hour for a NAT gateway, $%.3f for its address and $%.4f for a load balancer; $%.0f a month for a web ACL and $%.0f for each rule; $%.2f a month for each
metric of an alarm. Lambda chooses the instances; what they have beside the processes is
not in it.
`, breakEven, priceVCPUHour, 100*managementFee-100, priceTaskCPUHour, priceTaskGBHour, priceNATHour, priceAddressHour, priceBalancerHour, priceACLMonth, priceRuleMonth, priceAlarmMetric)
}

// watching counts the rules of the web ACL, and the metrics of the alarms, of a stack with the
// parameters that the template sets.
func watching(t *testing.T) (rules, alarmMetrics int) {
	t.Helper()
	written, err := template.Load(filepath.Join("..", "..", "..", "..", "..", "template.yaml"))
	check.Must(t, err)
	stack, err := written.Resolve(template.Values{StackName: "slipway", Parameters: map[string]string{"NamePrefix": "slipway"}})
	check.Must(t, err)
	for _, r := range stack.Resources {
		switch r.Type {
		case "AWS::WAFv2::WebACL":
			rules += len(r.Properties["Rules"].([]any))
		case "AWS::CloudWatch::Alarm":
			if r.Properties["MetricName"] != nil {
				alarmMetrics++
			}
			metrics, _ := r.Properties["Metrics"].([]any)
			for _, m := range metrics {
				if m.(map[string]any)["MetricStat"] != nil {
					alarmMetrics++
				}
			}
		}
	}
	return rules, alarmMetrics
}

// TestCostOfCompute checks that the file has the table, which is computed and not measured.
func TestCostOfCompute(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	computeReport(t, &b)
	text, err := os.ReadFile(costFile)
	check.Must(t, err)
	if !strings.HasSuffix(string(text), b.String()) {
		t.Errorf("%s does not end with what is computed now:\n%s", costFile, &b)
	}
}

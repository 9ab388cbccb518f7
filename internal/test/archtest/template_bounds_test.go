package archtest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hoststack "github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/template"
)

// functionBoundary limits the permissions of the roles of functions; infra/sam/roles.py checks
// that each role has it.
const functionBoundary = "FunctionBoundary"

func resourceNamed(t *testing.T, s *template.Stack, name string) template.Resource {
	t.Helper()
	for _, r := range s.Resources {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("there is no resource %s", name)
	return template.Resource{}
}

// TestAttackAFunctionWritesToLogsOfOthers checks that the boundary denies it for every log
// group except the log groups whose names begin with the stack's prefix, and the log groups of
// agents.
func TestAttackAFunctionWritesToLogsOfOthers(t *testing.T) {
	t.Parallel()
	denied := false
	eachMap(resourceNamed(t, stack(t, nil), functionBoundary).Properties, func(m map[string]any) {
		if m["Effect"] != "Deny" || m["NotResource"] == nil {
			return
		}
		text, err := json.Marshal(m)
		check.Must(t, err)
		var deny struct{ Action, NotResource texts }
		check.Must(t, json.Unmarshal(text, &deny))
		denied = true
		for _, action := range []string{"logs:CreateLogStream", "logs:PutLogEvents"} {
			if !slices.Contains(deny.Action, action) {
				t.Errorf("%s is not denied", action)
			}
		}
		for _, spared := range deny.NotResource {
			_, group, _ := strings.Cut(spared, ":log-group:")
			if strings.HasPrefix(group, "*") || strings.HasPrefix(group, "/aws/lambda/*") {
				t.Errorf("%s is spared", spared)
			}
		}
	})
	if !denied {
		t.Error("the boundary denies nothing")
	}
}

// TestADeletedStackStaysDeleted checks that the boundary lets no function make a log group. What a
// function prints while its stack is being deleted would bring its log group back, and then no
// stack with the same prefix could be made.
func TestADeletedStackStaysDeleted(t *testing.T) {
	t.Parallel()
	denied := false
	eachMap(resourceNamed(t, stack(t, nil), functionBoundary).Properties, func(m map[string]any) {
		actions, _ := m["Action"].([]any)
		denied = denied || m["Effect"] == "Deny" && m["Resource"] == "*" && m["Condition"] == nil && slices.Contains(actions, any("logs:CreateLogGroup"))
	})
	if !denied {
		t.Error("the boundary lets functions make log groups")
	}
}

// TestAttackAnAgentUsesItsRole checks that the role of agents denies everything. Without that, the
// policies of buckets, queues and keys that admit each role of the account, or of its organization,
// would admit the code of tenants, although the role allows nothing.
func TestAttackAnAgentUsesItsRole(t *testing.T) {
	t.Parallel()
	denied := false
	eachMap(resourceNamed(t, stack(t, nil), "AgentTaskRole").Properties, func(m map[string]any) {
		denied = denied || m["Effect"] == "Deny" && m["Action"] == "*" && m["Resource"] == "*" && m["Condition"] == nil
	})
	if !denied {
		t.Error("the role does not deny what other policies allow")
	}
}

// TestTheApiAccountStays: CloudFormation cannot undo the account-wide setting, so the role
// that it names also stays, even if the first deployment fails.
func TestTheApiAccountStays(t *testing.T) {
	t.Parallel()
	s := stack(t, nil)
	for _, name := range []string{"ApiAccount", "ApiAccountRole"} {
		if r := resourceNamed(t, s, name); r.DeletionPolicy != "Retain" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s: deletion policy %s, update policy %s", name, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
}

// TestTheFirewallAnswersPages checks that scripts of other origins can read its answers, that
// it knows the usual attacks, and that the rules that normal conversations and searches also
// match only count.
func TestTheFirewallAnswersPages(t *testing.T) {
	t.Parallel()
	properties := resourceNamed(t, stack(t, nil), "WebAcl").Properties
	answers, groups, counted := 0, []string{}, []string{}
	eachMap(properties, func(m map[string]any) {
		if m["ResponseCode"] != nil {
			answers++
			text, err := json.Marshal(m["ResponseHeaders"])
			if err != nil || !strings.Contains(string(text), `"Access-Control-Allow-Origin"`) || !strings.Contains(string(text), `"Retry-After"`) {
				t.Errorf("an answer has the headers %s (%v)", text, err)
			}
		}
		if m["VendorName"] == "AWS" {
			groups = append(groups, m["Name"].(string))
		}
		if m["ActionToUse"] != nil {
			counted = append(counted, m["Name"].(string))
		}
	})
	slices.Sort(groups)
	if answers != 2 || !slices.Equal(groups, []string{"AWSManagedRulesCommonRuleSet", "AWSManagedRulesKnownBadInputsRuleSet"}) {
		t.Errorf("%d answers, rule groups %v", answers, groups)
	}
	// AWS lists these rules of both groups (baseline rule groups in the developer guide of WAF).
	bodies := []string{
		"SizeRestrictions_BODY", "EC2MetaDataSSRF_BODY", "GenericLFI_BODY", "GenericRFI_BODY", "CrossSiteScripting_BODY",
		"JavaDeserializationRCE_BODY", "Log4JRCE_BODY", "ReactJSRCE_BODY",
	}
	for _, rule := range append(bodies, "SizeRestrictions_QUERYSTRING", "GenericRFI_QUERYARGUMENTS", "RestrictedExtensions_QUERYARGUMENTS") {
		if !slices.Contains(counted, rule) {
			t.Errorf("%s blocks", rule)
		}
	}
}

// TestAttackAForgedAddressAtTheFirewall checks that the web ACL counts by the address that a
// header names only for requests of the CDN, that all other requests are counted by their own
// addresses, and that functions believe the same.
func TestAttackAForgedAddressAtTheFirewall(t *testing.T) {
	t.Parallel()
	rates := func(s *template.Stack) map[string]any {
		found := map[string]any{}
		eachMap(resourceNamed(t, s, "WebAcl").Properties, func(m map[string]any) {
			if rate, ok := m["RateBasedStatement"].(map[string]any); ok && rate["CustomKeys"] == nil {
				found[rate["AggregateKeyType"].(string)] = map[string]any{"scope": rate["ScopeDownStatement"], "header": rate["ForwardedIPConfig"]}
			}
		})
		return found
	}
	s := stack(t, variants["with agents"])
	cdn := map[string]any{"IPSetReferenceStatement": map[string]any{"Arn": "CdnAddresses.Arn"}}
	want := map[string]any{
		"IP": map[string]any{"scope": map[string]any{"NotStatement": map[string]any{"Statement": cdn}}, "header": nil},
		"FORWARDED_IP": map[string]any{
			"scope": cdn, "header": map[string]any{"HeaderName": "CF-Connecting-IP", "FallbackBehavior": "MATCH"},
		},
	}
	if diff := cmp.Diff(want, rates(s)); diff != "" {
		t.Errorf("behind a CDN (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"IP": map[string]any{"scope": nil, "header": nil}}, rates(stack(t, nil))); diff != "" {
		t.Errorf("without a CDN (-want +got):\n%s", diff)
	}
	var addresses []string
	for _, address := range resourceNamed(t, s, "CdnAddresses").Properties["Addresses"].([]any) {
		addresses = append(addresses, address.(string))
	}
	for _, f := range s.Functions {
		if got := f.Environment["SLIPWAY_CDN_NETWORKS"]; got != strings.Join(addresses, ",") || f.Environment["SLIPWAY_CLIENT_ADDRESS_HEADER"] != "CF-Connecting-IP" {
			t.Errorf("%s believes %q about %q", f.Name, got, f.Environment["SLIPWAY_CLIENT_ADDRESS_HEADER"])
		}
	}
}

// serviceHost matches the host of a service in a region, whose domain differs between
// partitions. Principals of services are the same in all partitions.
var serviceHost = regexp.MustCompile(`\$\{AWS::Region\}\.amazonaws\.com`)

func TestNoHostIsOfOnePartition(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(top, "template.yaml"))
	check.Must(t, err)
	if found := serviceHost.FindAll(text, -1); len(found) > 0 {
		t.Errorf("write AWS::URLSuffix: %q", found)
	}
}

// logged matches a value of the access log: a variable of API Gateway, or a quoted one.
var logged = regexp.MustCompile(`"?\$context\.([A-Za-z.]+)"?`)

// TestThrottledRequestsAreCounted checks that the filter compares members of the access log
// with the status and the type of API Gateway's own answer, and that the alarm reads its metric.
func TestThrottledRequestsAreCounted(t *testing.T) {
	t.Parallel()
	s := stack(t, variants["with agents"])
	setting, _ := resourceNamed(t, s, "Api").Properties["AccessLogSetting"].(map[string]any)
	format, _ := setting["Format"].(string)
	var members map[string]string
	if err := json.Unmarshal(logged.ReplaceAll([]byte(format), []byte(`"$1"`)), &members); err != nil {
		t.Fatalf("the access log is no JSON: %v\n%s", err, format)
	}
	selectors := map[string]string{}
	for name, variable := range members {
		selectors[variable] = "$." + name
	}
	filter := resourceNamed(t, s, "ThrottledRequests").Properties
	want := fmt.Sprintf(`{ %s = 429 && %s = "THROTTLED" }`, selectors["status"], selectors["error.responseType"])
	if filter["FilterPattern"] != want {
		t.Errorf("the filter is %v, want %s", filter["FilterPattern"], want)
	}
	if group := resourceNamed(t, s, "ApiLogGroup").Properties["LogGroupName"]; filter["LogGroupName"] != group {
		t.Errorf("it reads %v, want %v", filter["LogGroupName"], group)
	}
	if status := statusOf(t, s, "THROTTLED"); status != 429.0 {
		t.Errorf("API Gateway answers such a request with %v", status)
	}
	alarm := resourceNamed(t, s, "ThrottledRequestsAlarm").Properties
	eachMap(filter["MetricTransformations"], func(m map[string]any) {
		if m["MetricNamespace"] != alarm["Namespace"] || m["MetricName"] != alarm["MetricName"] {
			t.Errorf("the alarm reads %v %v, the filter writes %v", alarm["Namespace"], alarm["MetricName"], m)
		}
	})
	for _, r := range stack(t, nil).Resources {
		if strings.HasPrefix(r.Name, "ThrottledRequests") {
			t.Errorf("%s costs something, and nobody has asked for it", r.Name)
		}
	}
}

// statusOf returns the status of an answer of API Gateway itself.
func statusOf(t *testing.T, s *template.Stack, kind string) any {
	t.Helper()
	answers, _ := resourceNamed(t, s, "Api").Properties["GatewayResponses"].(map[string]any)
	answer, _ := answers[kind].(map[string]any)
	return answer["StatusCode"]
}

// TestTheBudgetCountsTheStackAndTellsTheTopic checks whom a budget tells and when, and that it
// counts by the tag of the stack, which agents have too.
func TestTheBudgetCountsTheStackAndTellsTheTopic(t *testing.T) {
	t.Parallel()
	s := stack(t, variants["with agents"])
	budget := resourceNamed(t, s, "Budget").Properties
	what, _ := budget["Budget"].(map[string]any)
	want := map[string]any{"TagKeyValue": []any{"user:slipway:stack$" + stackName}}
	if diff := cmp.Diff(want, what["CostFilters"]); diff != "" {
		t.Errorf("it counts (-want +got):\n%s", diff)
	}
	// A new topic replaces the budget: the name must be a new one, which deployer.yaml allows.
	if got, want := what["BudgetName"], stackName+"-us-east-1-topic"; got != want {
		t.Errorf("it has the name %v, want %s", got, want)
	}
	told := map[string]float64{}
	for _, n := range budget["NotificationsWithSubscribers"].([]any) {
		notification, _ := n.(map[string]any)["Notification"].(map[string]any)
		if diff := cmp.Diff([]any{map[string]any{"SubscriptionType": "SNS", "Address": topicARN}}, n.(map[string]any)["Subscribers"]); diff != "" {
			t.Errorf("it tells (-want +got):\n%s", diff)
		}
		told[notification["NotificationType"].(string)], _ = notification["Threshold"].(float64)
	}
	if diff := cmp.Diff(map[string]float64{"ACTUAL": 80, "FORECASTED": 100}, told); diff != "" {
		t.Errorf("it tells at (-want +got):\n%s", diff)
	}
	for _, r := range stack(t, nil).Resources {
		if r.Type == "AWS::Budgets::Budget" {
			t.Error("there is a budget that nobody has asked for")
		}
	}
}

// TestOnlyExpressModeHasACapacityProvider checks that the cluster has the provider by which
// services of Express Mode place their tasks, and that only a stack with Express Mode adds it: ECS
// refuses a provider in an account without ECS's own role.
func TestOnlyExpressModeHasACapacityProvider(t *testing.T) {
	t.Parallel()
	for name, parameters := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack(t, parameters)
			var found []any
			for _, r := range s.Resources {
				if r.Type == "AWS::ECS::ClusterCapacityProviderAssociations" {
					found = append(found, r.Properties)
				}
			}
			var want []any
			if parameters["ComputeKind"] == "express" {
				want = []any{map[string]any{"Cluster": stackName, "CapacityProviders": []any{"FARGATE"}, "DefaultCapacityProviderStrategy": []any{}}}
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("providers (-want +got):\n%s", diff)
			}
			if providers := resourceNamed(t, s, "Cluster").Properties["CapacityProviders"]; providers != nil {
				t.Errorf("the cluster itself has the providers %v, want no providers", providers)
			}
		})
	}
}

// TestAWorkspaceCannotUseUpAStack: with the quotas that nobody has set, half of the streams, and
// half of the requests that a method takes, are left for other workspaces.
func TestAWorkspaceCannotUseUpAStack(t *testing.T) {
	t.Parallel()
	network := map[string]string{"VpcId": "vpc", "FunctionSubnets": "subnet-c,subnet-d", "FunctionSecurityGroups": "sg-functions"}
	with := func(parameters map[string]string) map[string]string {
		maps.Copy(parameters, network)
		return parameters
	}
	for name, c := range map[string]struct {
		parameters    map[string]string
		streams, rate int64
	}{
		"by default":        {with(map[string]string{}), 1000, 500},
		"in a new account":  {with(map[string]string{"ConcurrencyQuota": "10", "ThrottleRate": "100"}), 10, 100},
		"with reservations": {with(map[string]string{"RunstreamConcurrency": "300"}), 300, 500},
		"managed":           {with(map[string]string{"RunnerCompute": "managed", "ManagedProcesses": "2", "RunstreamConcurrency": "300"}), 8 * 256, 500},
	} {
		for _, f := range stack(t, c.parameters).Functions {
			env, err := hoststack.ReadEnvironment(func(name string) string { return f.Environment[name] })
			if err != nil {
				t.Fatalf("%s: %s: %v", name, f.Name, err)
			}
			if got := env.Quotas.Of(quota.Streams); got != c.streams/2 {
				t.Errorf("%s: %s gives a workspace %d of %d streams", name, f.Name, got, c.streams)
			}
			if got := env.Quotas.Of(quota.Requests); got != c.rate/2 {
				t.Errorf("%s: %s gives a workspace %d of %d requests a second", name, f.Name, got, c.rate)
			}
		}
	}
	s := stack(t, with(map[string]string{"RunnerCompute": "managed", "ManagedProcesses": "2"}))
	text, err := json.Marshal(resourceNamed(t, s, "ManagedRunstream").Properties)
	check.Must(t, err)
	for _, bound := range []string{`"MaxExecutionEnvironments":"?8"?`, `"PerExecutionEnvironmentMaxConcurrency":256`} {
		if !regexp.MustCompile(bound).Match(text) {
			t.Errorf("ManagedRunstream has not %s: %s", bound, text)
		}
	}
}

package archtest_test

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/test/template"
)

// These tests compare template.yaml with the objects that it declares: functions, interface
// documents, state machines, the table.

// stackName differs from every other text that a name could contain. It is also the stack's
// prefix of names.
const stackName = "thestack"

// deployedName is the stack's name for CloudFormation, which may contain hyphens.
const deployedName = "the-deployed"

const listenerARN = "arn:aws:elasticloadbalancing:us-east-1:000000000000:listener/app/" + stackName + "/1/2"

const topicARN = "arn:aws:sns:us-east-1:000000000000:topic"

// variants are parameters with which every condition of the template is true in some variant
// and false in another.
var variants = map[string]map[string]string{
	"without agents": nil,
	"with agents": {
		"VpcId": "vpc", "Subnets": "subnet-a,subnet-b", "SecurityGroups": "sg",
		"FunctionSubnets": "subnet-c,subnet-d", "FunctionSecurityGroups": "sg-functions", "AlbListenerArn": listenerARN, "AlbUrl": "http://alb.test", "AlarmTopic": topicARN, "MonthlyBudget": "100", "DetailedMetrics": "true",
		"CdnNetworks": "192.0.2.0/24,198.51.100.7/32", "ClientAddressHeader": "CF-Connecting-IP",
		"DomainName": "api.test", "CertificateArn": "certificate", "HostedZoneId": "zone", "RunnerConcurrency": "5", "RunstreamConcurrency": "5",
		"AuthorizerConcurrency": "5", "RolloutConcurrency": "5", "ReconcileConcurrency": "2", "WebhookConcurrency": "5", "RequestsConcurrency": "5",
		"GitHubApp": "arn:aws:secretsmanager:us-east-1:000000000000:secret:app", "GitHubWebhook": "arn:aws:secretsmanager:us-east-1:000000000000:secret:webhook",
	},
	"restored": {"TableNameOverride": stackName + "-then"},
	"on managed instances": {
		"RunnerCompute": "managed", "VpcId": "vpc", "FunctionSubnets": "subnet-c,subnet-d", "FunctionSecurityGroups": "sg-functions", "TrafficShift": "AllAtOnce", "ProvisionedConcurrency": "1",
	},
	"with Express Mode": {"ComputeKind": "express", "Architecture": "x86_64", "Firewall": "false", "ApiGatewayAccount": "false"},
}

var loaded = sync.OnceValues(func() (*template.Template, error) { return template.Load(filepath.Join(top, "template.yaml")) })

func written(t *testing.T) *template.Template {
	t.Helper()
	parsed, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func stack(t *testing.T, parameters map[string]string) *template.Stack {
	t.Helper()
	parameters = maps.Clone(parameters)
	if parameters == nil {
		parameters = map[string]string{}
	}
	parameters["NamePrefix"] = stackName
	resolve, _ := stacks.LoadOrStore(fmt.Sprint(parameters), sync.OnceValues(func() (*template.Stack, error) {
		return written(t).Resolve(template.Values{
			StackName: deployedName, Parameters: parameters, References: map[string]string{"Table.Arn": "arn:aws:dynamodb:us-east-1:000000000000:table/" + stackName},
		})
	}))
	s, err := resolve.(func() (*template.Stack, error))()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stacks holds the resolved stacks; each is resolved once.
var stacks sync.Map

// eachStack runs a check on all variants.
func eachStack(t *testing.T, check func(t *testing.T, s *template.Stack)) {
	t.Helper()
	for name, parameters := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, stack(t, parameters))
		})
	}
}

// folders returns the folders in a directory of the source tree.
func folders(t *testing.T, dir string) []string {
	t.Helper()
	found := map[string]bool{}
	for _, f := range files(t) {
		if rest, ok := strings.CutPrefix(f.name, dir+"/"); ok && strings.Contains(rest, "/") {
			name, _, _ := strings.Cut(rest, "/")
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func TestEachFunctionHasAFolder(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range stack(t, nil).Functions {
		name := strings.ToLower(f.Name)
		names = append(names, name)
		if f.CodeURI != "./build/"+name || f.Handler != "bootstrap" || f.Runtime != "provided.al2023" {
			t.Errorf("%s: got %s, %s, %s", f.Name, f.CodeURI, f.Handler, f.Runtime)
		}
	}
	slices.Sort(names)
	if got := folders(t, "functions"); !slices.Equal(got, names) {
		t.Errorf("the folders in functions are %v, the functions of the template %v", got, names)
	}
	for _, resource := range written(t).Resources {
		if resource.Type == "AWS::Serverless::Function" && resource.Metadata["SkipBuild"] != true {
			t.Errorf("%s: make builds it, SAM must not", resource.Name)
		}
	}
}

func TestEachFunctionSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	for _, f := range stack(t, nil).Functions {
		for _, wanted := range []string{`(?s)^\w.*?\.\s`, `(?m)^Trigger: .+`, `(?m)^When it fails: .+`, `(?m)^Retried by: .+`} {
			if !regexp.MustCompile(wanted).MatchString(f.Comment) {
				t.Errorf("the comment above %s has no %s:\n%s", f.Name, wanted, f.Comment)
			}
		}
	}
}

func TestEachFunctionIsWatched(t *testing.T) {
	t.Parallel()
	eachStack(t, func(t *testing.T, s *template.Stack) {
		logs, metrics := map[string]bool{}, map[string][]string{}
		for _, resource := range s.Resources {
			switch resource.Type {
			case "AWS::Logs::LogGroup":
				name, _ := resource.Properties["LogGroupName"].(string)
				logs[name] = true
				if days, ok := resource.Properties["RetentionInDays"].(float64); !ok || days <= 0 {
					t.Errorf("the log group %s keeps logs for ever", resource.Name)
				}
			case "AWS::CloudWatch::Alarm":
				eachMap(resource.Properties, func(m map[string]any) {
					metric, _ := m["MetricName"].(string)
					eachMap(m["Dimensions"], func(d map[string]any) {
						name, _ := d["Value"].(string)
						metrics[name] = append(metrics[name], metric)
					})
				})
			}
		}
		watched := func(name string, wanted ...string) {
			for _, metric := range wanted {
				if !slices.Contains(metrics[name], metric) {
					t.Errorf("no alarm watches %s of %s", metric, name)
				}
			}
		}
		for _, f := range s.Functions {
			// Nobody calls the other functions.
			if _, managed := s.Functions["Managed"+f.Name]; !managed || len(f.Routes) > 0 {
				watched(f.Name, "Throttles")
				// Lambda counts their expected outcomes too.
				if !slices.Contains(expectErrors, f.Name) {
					watched(f.Name, "Errors")
				}
			}
			if !logs[f.LogGroup] {
				t.Errorf("%s has no log group", f.Name)
			}
			if !f.Tracing {
				t.Errorf("%s is not traced", f.Name)
			}
		}
		for _, m := range s.Machines {
			watched("arn:aws:states:us-east-1:000000000000:stateMachine:"+m.MachineName, "ExecutionsFailed", "ExecutionsTimedOut")
		}
		// Indexes count by themselves.
		for _, counted := range []string{s.Functions["Runs"].Environment["SLIPWAY_TABLE"], "list", "due"} {
			watched(counted, "ReadThrottleEvents", "WriteThrottleEvents")
		}
		watched("StartExecution", "ThrottledEvents")
		watched("StateTransition", "ThrottledEvents")
		watched(stackName, "5XXError")
		watched("DeadLetters.QueueName", "ApproximateNumberOfMessagesVisible")
	})
}

// TestAlarmsAreToldAndExplained checks that the topic is told when each alarm goes off and when
// it is over, and that the operators' page says what to do.
func TestAlarmsAreToldAndExplained(t *testing.T) {
	t.Parallel()
	operations := page(t, "infra/operations.md")
	for _, resource := range stack(t, variants["with agents"]).Resources {
		if resource.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		for _, actions := range []string{"AlarmActions", "OKActions"} {
			if diff := cmp.Diff([]any{topicARN}, resource.Properties[actions]); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", resource.Name, actions, diff)
			}
		}
		if !regexp.MustCompile(`(?m)^\| [^|]*\b` + resource.Name + `\b`).MatchString(operations) {
			t.Errorf("infra/operations.md does not explain %s", resource.Name)
		}
	}
}

// eachMap visits all maps within a value.
func eachMap(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(v)
		for _, member := range v {
			eachMap(member, visit)
		}
	case []any:
		for _, item := range v {
			eachMap(item, visit)
		}
	}
}

// variable matches the name of an environment variable, as code writes it, that the template
// sets.
var variable = regexp.MustCompile(`"(SLIPWAY_[A-Z_]+)"`)

// composed are the folders in which functions are assembled from their environment.
var composed = []string{"functions/", "internal/host/stack/"}

func TestFunctionsGetTheVariablesThatTheyRead(t *testing.T) {
	t.Parallel()
	readBy := map[string]string{}
	for _, f := range files(t) {
		if f.isTest() || !slices.ContainsFunc(composed, func(dir string) bool { return strings.HasPrefix(f.name, dir) }) {
			continue
		}
		for _, match := range variable.FindAllStringSubmatch(f.text, -1) {
			readBy[match[1]] = f.name
		}
	}
	eachStack(t, func(t *testing.T, s *template.Stack) {
		for _, f := range s.Functions {
			const quota = 4096
			size := 0
			for name, value := range f.Environment {
				if size += len(name) + len(value); readBy[name] == "" && strings.HasPrefix(name, "SLIPWAY_") {
					t.Errorf("%s has %s, which nobody reads", f.Name, name)
				}
			}
			if size > quota/2 { // names in an account are longer than in this test
				t.Errorf("the environment of %s has %d bytes of %d", f.Name, size, quota)
			}
			for name, reader := range readBy {
				if _, there := f.Environment[name]; !there {
					t.Errorf("%s has no %s, which %s reads", f.Name, name, reader)
				}
			}
			for _, service := range []string{"DYNAMODB", "SFN", "KMS", "SECRETS_MANAGER"} {
				if value, there := f.Environment["AWS_ENDPOINT_URL_"+service]; !there || value != "" {
					t.Errorf("%s: local tools cannot say where %s is", f.Name, service)
				}
			}
		}
	})
}

func TestNoResourceWaitsForItself(t *testing.T) {
	t.Parallel()
	dependencies := written(t).Dependencies()
	var visit func(name string, way []string)
	done := map[string]bool{}
	visit = func(name string, way []string) {
		if slices.Contains(way, name) {
			t.Errorf("a circle: %s", strings.Join(append(way, name), " -> "))
			return
		}
		if done[name] {
			return
		}
		for _, other := range dependencies[name] {
			visit(other, append(slices.Clone(way), name))
		}
		done[name] = true
	}
	for name := range dependencies {
		visit(name, nil)
	}
}

// TestTheStackIsWithinQuotas counts a stack's resources as SAM makes them; infra/sam/check.py
// checks the quotas with the resources that SAM itself makes.
func TestTheStackIsWithinQuotas(t *testing.T) {
	t.Parallel()
	const maxResources, maxNodes = 500, 300
	eachStack(t, func(t *testing.T, s *template.Stack) {
		// A deployment, a stage, and a permission for each authorizer are added.
		resources := len(s.Resources) + 2 + len(s.API.Authorizers)
		nodes := map[string]bool{}
		for _, f := range s.Functions {
			// A function has a role, a permission for each route, and two resources for each
			// schedule.
			resources += 1 + len(f.Routes) + 2*len(f.Schedules)
			for _, route := range f.Routes {
				for p := route.Path; p != "/"; p = path.Dir(p) {
					nodes[p] = true
				}
			}
		}
		if resources > maxResources || len(nodes) > maxNodes {
			t.Errorf("%d resources of %d, %d path nodes of %d", resources, maxResources, len(nodes), maxNodes)
		}
	})
}

var (
	parameterSetting = regexp.MustCompile(`(?m)^parameter_overrides = "(.*)"$`)
	environments     = []string{"default", "us-dev", "us-prod", "eu-prod", "trial"}
)

func TestEnvironmentsCanBeDeployed(t *testing.T) {
	t.Parallel()
	settings := ""
	for _, f := range files(t) {
		if f.name == "samconfig.toml" {
			settings = f.text
		}
	}
	for _, environment := range environments {
		if !strings.Contains(settings, "["+environment+".global.parameters]\nstack_name = ") {
			t.Errorf("samconfig.toml has no stack name for %s", environment)
		}
	}
	prefixes := map[string]bool{}
	for _, match := range parameterSetting.FindAllStringSubmatch(settings, -1) {
		parameters := map[string]string{}
		for setting := range strings.FieldsSeq(match[1]) {
			name, value, _ := strings.Cut(setting, "=")
			parameters[name] = value
		}
		if _, err := written(t).Resolve(template.Values{Parameters: parameters}); err != nil {
			t.Errorf("%s: %v", match[1], err)
		}
		if prefix := parameters["NamePrefix"]; parameters["Architecture"] == "" && (prefix == "" || prefixes[prefix]) {
			t.Errorf("%s: an environment needs a prefix of names of its own", match[1])
		} else {
			prefixes[prefix] = true
		}
	}
}

// A hyphen follows the prefix in each name and pattern of names, so if the prefix itself
// contains no hyphen, no stack's permissions reach the resources of another stack.
func TestPrefixesOfNames(t *testing.T) {
	t.Parallel()
	for prefix, good := range map[string]bool{
		"slipway": true, "s": true, strings.Repeat("s", ecs.MaxPrefix): true, strings.Repeat("s", ecs.MaxPrefix+1): false,
		"slipway-dev": false, "1slipway": false, "Slipway": false, "": false,
	} {
		if _, err := written(t).Resolve(template.Values{Parameters: map[string]string{"NamePrefix": prefix}}); (err == nil) != good {
			t.Errorf("the prefix %q: got %v, want it taken: %t", prefix, err, good)
		}
	}
}

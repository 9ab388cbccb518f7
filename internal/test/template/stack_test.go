package template_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/test/template"
)

func want(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	const guard = "arn:aws:lambda:us-east-1:000000000000:function:Guard"
	want(t, "API", template.API{
		Name: "Api", Stage: "v", DefaultAuthorizer: "Open", BinaryMediaTypes: []string{"application/octet-stream"},
		Authorizers: map[string]template.Authorizer{
			"Open":  {Name: "Open", Function: guard},
			"Key":   {Name: "Key", Function: guard, Headers: []string{"X-Api-Key"}, TTL: time.Minute},
			"Usual": {Name: "Usual", Function: guard, QueryStrings: []string{"q"}, Context: []string{"path"}, TTL: 5 * time.Minute},
		},
		Responses: map[string]template.GatewayResponse{
			"THROTTLED": {
				Status: 429, Headers: map[string]string{"Retry-After": "'2'"}, Templates: map[string]string{"application/json": `{"detail": "slow"}`},
			},
			"DEFAULT_4XX": {Templates: map[string]string{"application/json": "{}"}},
		},
		Throttles: []template.Throttle{{Path: "/*", Method: "*", Rate: 10, Burst: 20}, {Path: "/a", Method: "GET", Rate: 0.5, Burst: 1}},
	}, resolve(t, template.Values{}).API)
}

func TestThrottleOfAMethod(t *testing.T) {
	t.Parallel()
	api := resolve(t, template.Values{Parameters: map[string]string{"Rate": "30"}}).API
	for target, rate := range map[string]float64{"GET /a": 0.5, "POST /a": 30, "ANY /b/{id}": 30} {
		method, path, _ := strings.Cut(target, " ")
		if got := api.Throttle(template.Route{Method: method, Path: path}); got.Rate != rate {
			t.Errorf("%s: got %+v, want the rate %g", target, got, rate)
		}
	}
	if got := (template.API{}).Throttle(template.Route{}); got.Rate != 10_000 || got.Burst != 5_000 {
		t.Errorf("without settings: got %+v, want the quotas of an account", got)
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	const table = "arn:aws:dynamodb:us-east-1:000000000000:table/Table"
	shared := template.Statement{Effect: "Allow", Actions: []string{"s:Shared"}, Resources: []string{table}}
	routes := []template.Route{
		{Function: "Work", Path: "/a", Method: "GET", Timeout: 29 * time.Second},
		{Function: "Work", Path: "/a", Method: "POST", Authorizer: "Key", Streaming: true, Timeout: 15 * time.Minute},
		{Function: "Work", Path: "/b/{id}", Method: "ANY", Authorizer: "Open", Timeout: 29 * time.Second},
	}
	schedules := []template.Schedule{{Function: "Work", Expression: "rate(2 hours)", Every: 2 * time.Hour, Input: "{}"}}
	s := resolve(t, template.Values{})
	want(t, "functions", map[string]template.Function{
		"Guard": {
			Name: "Guard", CodeURI: "./build/guard", Handler: "bootstrap", Runtime: "provided.al2023", Architecture: "arm64", Timeout: 5 * time.Second,
			MemoryMB: 512, Tracing: true, Comment: "Checks who\ncomes in.", Statements: []template.Statement{shared},
			Environment: map[string]string{"TABLE": "Table", "SHARED": "a", "PREFIX": "arn:aws:000000000000:slipway-"},
		},
		"Work": {
			Name: "Work", CodeURI: "./build/work", Handler: "bootstrap", Runtime: "provided.al2023", Architecture: "arm64", Timeout: 29 * time.Second,
			MemoryMB: 512, Tracing: true, LogGroup: "/x/slipway", Alias: "live",
			Environment: map[string]string{
				"TABLE": "Table", "SHARED": "b", "PREFIX": "arn:aws:000000000000:slipway-", "OWN": "y", "LIST": "", "NUMBER": "0",
			},
			// They are in the file's order, by the names of the events; the stack's routes are
			// in the order of paths.
			Routes: []template.Route{routes[0], routes[1], routes[2]}, Schedules: schedules,
			Statements: []template.Statement{
				{Effect: "Allow", Actions: []string{"s:A", "s:B"}, Resources: []string{"slipway/" + table + "/${literal}"}}, shared,
			},
			Managed: []string{"AWSLambdaExecute"},
		},
	}, s.Functions)
	want(t, "routes", routes, s.Routes)
	want(t, "schedules", schedules, s.Schedules)
}

func TestWhatParametersChange(t *testing.T) {
	t.Parallel()
	s := resolve(t, template.Values{
		StackName: "test", Region: "eu-central-1", Account: "1", Partition: "aws-x",
		Parameters: map[string]string{"Architecture": "x86_64", "Subnets": "a, b", "Limit": "7", "Keep": "false", "Domain": "d.org"},
		References: map[string]string{"Table": "other", "Table.Arn": "arn:other", "Record": "record"},
	})
	work := s.Functions["Work"]
	got := []any{
		work.Architecture, work.MemoryMB, work.ReservedConcurrency, work.InVPC, work.Environment["LIST"], work.Environment["NUMBER"], work.Environment["TABLE"],
		work.Environment["PREFIX"], work.LogGroup, s.Tables["Table"].DeletionProtection, s.Machines["Machine"].Substitutions["WorkArn"], len(work.Statements),
	}
	want(t, "values", []any{
		"x86_64", 1024, 7, true, "a,b", "7", "other", "arn:aws-x:1:test-", "/x/test", false, "arn:aws-x:lambda:eu-central-1:1:function:Work:live", 3,
	}, got)
	want(t, "conditional statement", template.Statement{
		Effect: "Deny", Actions: []string{"s:C"}, Resources: []string{"*"}, Condition: map[string]any{"StringEquals": map[string]any{"a": "b"}},
	}, work.Statements[1])
	want(t, "outputs", map[string]string{"Url": "https://Api.execute-api.eu-central-1.amazonaws.com/Api.Stage", "Domain": "record"}, s.Outputs)
	if _, there := s.Resources["Record"]; !there {
		t.Error("a resource is missing whose condition holds")
	}
}

func TestWhatConditionsTakeAway(t *testing.T) {
	t.Parallel()
	s := resolve(t, template.Values{})
	if _, there := s.Resources["Record"]; there || len(s.Outputs) != 1 {
		t.Errorf("a resource or an output is there whose condition does not hold: %v", s.Outputs)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	want(t, "table", map[string]template.Table{"Table": {
		Name: "Table", Attributes: map[string]string{"pk": "S", "n": "N"}, Key: []template.KeyElement{{Name: "pk", Kind: "HASH"}},
		Indexes:     []template.Index{{Name: "byN", Key: []template.KeyElement{{Name: "n", Kind: "HASH"}}, Projection: "INCLUDE", Included: []string{"m"}}},
		BillingMode: "PAY_PER_REQUEST", TTL: "expires", Stream: "NEW_IMAGE", PointInTime: true, DeletionProtection: true, Encrypted: true,
		DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain",
	}}, resolve(t, template.Values{}).Tables)
}

func TestMachineAndRole(t *testing.T) {
	t.Parallel()
	const work = "arn:aws:lambda:us-east-1:000000000000:function:Work:live"
	s := resolve(t, template.Values{})
	want(t, "machine", map[string]template.Machine{"Machine": {
		Name: "Machine", MachineName: "slipway-work", Kind: "STANDARD", Definition: "work.asl.json", Substitutions: map[string]string{"WorkArn": work},
		Statements: []template.Statement{{Effect: "Allow", Actions: []string{"lambda:InvokeFunction"}, Resources: []string{work}}},
		LogLevel:   "ERROR", LogsData: true, Tracing: true,
	}, "Ruled": {
		Name: "Ruled", MachineName: "ruled", Definition: "work.asl.json", Role: "Ruler", Managed: []string{"arn:aws:iam::aws:policy/Some"},
		Statements: []template.Statement{
			{Effect: "Allow", Actions: []string{"lambda:InvokeFunction"}, Resources: []string{work}},
			{Effect: "Allow", Actions: []string{"s:Shared"}, Resources: []string{"arn:aws:dynamodb:us-east-1:000000000000:table/Table"}},
		},
	}}, s.Machines)
	want(t, "role", map[string]template.Role{"Ruler": {
		Name: "Ruler", Services: []string{"states.amazonaws.com"}, Managed: []string{"Shared", "arn:aws:iam::aws:policy/Some"},
		Statements: []template.Statement{{Effect: "Allow", Actions: []string{"lambda:InvokeFunction"}, Resources: []string{work}}},
	}, "Role": {
		Name: "Role", Services: []string{"ecs-tasks.amazonaws.com"}, Managed: []string{"arn:aws:iam::aws:policy/Some"},
		Statements: []template.Statement{{
			Effect: "Allow", Actions: []string{"s:R"}, Resources: []string{"arn:aws:logs:us-east-1:000000000000:log-group:/x/slipway:*"},
		}},
	}}, s.Roles)
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	want(t, "dependencies", map[string][]string{
		"Api": {"Guard", "Work.Alias"}, "Guard": {"Shared", "Table"}, "Work": {"Guard", "Logs", "Shared", "Table"}, "Machine": {"Work.Alias"}, "Ruled": {"Ruler"}, "Ruler": {"Shared", "Work.Alias"},
		"Work.Alias": {"Alarm", "Work"}, "Alarm": {"Work"},
		"Table": nil, "Logs": nil, "Shared": {"Table"}, "Role": {"Logs"}, "Record": nil,
	}, parse(t, sample).Dependencies())
}

package template

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// integrationTimeout is how long API Gateway waits unless an event says otherwise.
const integrationTimeout = 29 * time.Second

// event is an event of a function in SAM's form.
type event struct {
	Type       string
	Properties struct {
		Path, Method         string
		Auth                 struct{ Authorizer string }
		ResponseTransferMode string
		TimeoutInMillis      int
		Schedule, Input      string
		Pattern              map[string]any
	}
}

func readFunction(resource Resource, properties map[string]any) (Function, error) {
	var p struct {
		CodeURI                      string `json:"CodeUri"`
		Handler, Runtime             string
		Architectures                []string
		Timeout                      int
		MemorySize                   int
		ReservedConcurrentExecutions int
		Tracing                      string
		Environment                  struct{ Variables map[string]any }
		Events                       map[string]event
		Policies                     []any
		VpcConfig                    map[string]any
		LoggingConfig                struct{ LogGroup string }
		AutoPublishAlias             string
		CapacityProviderConfig       struct{ PerExecutionEnvironmentMaxConcurrency int }
		FunctionScalingConfig        struct{ MinExecutionEnvironments int }
	}
	if err := convert(properties, &p); err != nil {
		return Function{}, err
	}
	f := Function{
		Name: resource.Name, Comment: resource.Comment, CodeURI: p.CodeURI, Handler: p.Handler, Runtime: p.Runtime, Architecture: "x86_64",
		Timeout: time.Duration(p.Timeout) * time.Second, MemoryMB: p.MemorySize, ReservedConcurrency: p.ReservedConcurrentExecutions,
		Tracing: p.Tracing == "Active", InVPC: p.VpcConfig != nil, LogGroup: p.LoggingConfig.LogGroup, Alias: p.AutoPublishAlias,
		Concurrency: p.CapacityProviderConfig.PerExecutionEnvironmentMaxConcurrency, Processes: p.FunctionScalingConfig.MinExecutionEnvironments, Environment: map[string]string{},
	}
	if len(p.Architectures) == 1 {
		f.Architecture = p.Architectures[0]
	}
	for name, value := range p.Environment.Variables {
		f.Environment[name] = scalar(value)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Events)) {
		if err := f.listen(p.Events[name]); err != nil {
			return f, fmt.Errorf("event %s: %w", name, err)
		}
	}
	var err error
	f.Statements, f.Managed, err = readPolicies(p.Policies)
	return f, err
}

// listen adds the route, schedule or pattern of an event to the function.
func (f *Function) listen(e event) error {
	switch e.Type {
	case "Api":
		route := Route{
			Function: f.Name, Path: e.Properties.Path, Method: strings.ToUpper(e.Properties.Method), Authorizer: e.Properties.Auth.Authorizer,
			Streaming: e.Properties.ResponseTransferMode == "RESPONSE_STREAM", Timeout: integrationTimeout,
		}
		if e.Properties.TimeoutInMillis != 0 {
			route.Timeout = time.Duration(e.Properties.TimeoutInMillis) * time.Millisecond
		}
		f.Routes = append(f.Routes, route)
	case "Schedule":
		every, err := rate(e.Properties.Schedule)
		if err != nil {
			return err
		}
		f.Schedules = append(f.Schedules, Schedule{Function: f.Name, Expression: e.Properties.Schedule, Every: every, Input: e.Properties.Input})
	case "EventBridgeRule":
		f.Patterns = append(f.Patterns, e.Properties.Pattern)
	default:
		return fmt.Errorf("type %s is not understood", e.Type)
	}
	return nil
}

// rate returns the interval of an expression like rate(1 minute).
func rate(expression string) (time.Duration, error) {
	text, _ := strings.CutPrefix(expression, "rate(")
	number, unit, _ := strings.Cut(strings.TrimSuffix(text, ")"), " ")
	n, err := strconv.Atoi(number)
	each := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[strings.TrimSuffix(unit, "s")]
	if err != nil || each == 0 {
		return 0, fmt.Errorf("schedule %q is not understood", expression)
	}
	return time.Duration(n) * each, nil
}

// readPolicies reads SAM's property Policies: names of managed policies, and documents.
func readPolicies(policies []any) (statements []Statement, managed []string, err error) {
	for _, policy := range policies {
		if name, ok := policy.(string); ok {
			managed = append(managed, name)
			continue
		}
		read, err := readStatements(policy)
		if err != nil {
			return nil, nil, err
		}
		statements = append(statements, read...)
	}
	return statements, managed, nil
}

func readStatements(document any) ([]Statement, error) {
	var d struct {
		Statement []struct {
			Effect    string
			Action    oneOrMany
			Resource  oneOrMany
			Condition map[string]any
		}
	}
	if err := convert(document, &d); err != nil {
		return nil, err
	}
	if len(d.Statement) == 0 {
		return nil, fmt.Errorf("policy %v has no statements", document)
	}
	statements := make([]Statement, 0, len(d.Statement))
	for _, s := range d.Statement {
		statements = append(statements, Statement{Effect: s.Effect, Actions: s.Action, Resources: s.Resource, Condition: s.Condition})
	}
	return statements, nil
}

func readRole(resource Resource) (Role, error) {
	var p struct {
		AssumeRolePolicyDocument struct {
			Statement []struct{ Principal struct{ Service oneOrMany } }
		}
		ManagedPolicyArns []string
		Policies          []struct{ PolicyDocument any }
	}
	if err := convert(resource.Properties, &p); err != nil {
		return Role{}, err
	}
	role := Role{Name: resource.Name, Managed: p.ManagedPolicyArns}
	for _, statement := range p.AssumeRolePolicyDocument.Statement {
		role.Services = append(role.Services, statement.Principal.Service...)
	}
	for _, policy := range p.Policies {
		statements, err := readStatements(policy.PolicyDocument)
		if err != nil {
			return role, err
		}
		role.Statements = append(role.Statements, statements...)
	}
	return role, nil
}

// unescape undoes SAM's spelling of media types, in which a slash is "~1".
func unescape(mediaType string) string { return strings.ReplaceAll(mediaType, "~1", "/") }

package template

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Types of the resources that a Stack has fields for.
const (
	typeAPI      = "AWS::Serverless::Api"
	typeFunction = "AWS::Serverless::Function"
	typeMachine  = "AWS::Serverless::StateMachine"
	typeTable    = "AWS::DynamoDB::Table"
	typeRole     = "AWS::IAM::Role"
	typePolicy   = "AWS::IAM::ManagedPolicy"
)

// Stack is the stack that a template makes for given values.
type Stack struct {
	// API is the only REST API.
	API API
	// Functions, Machines, Tables and Roles are maps by logical id.
	Functions map[string]Function
	Machines  map[string]Machine
	Tables    map[string]Table
	Roles     map[string]Role
	// Routes are the routes of all functions, sorted by path and method.
	Routes []Route
	// Schedules are the schedules of all functions.
	Schedules []Schedule
	// Resources are all resources, with resolved properties, but otherwise as they are
	// written: before the SAM transform, without Globals.
	Resources map[string]Resource
	// Outputs is a map by name.
	Outputs map[string]string

	// policies are the statements of the stack's own managed policies, by logical id.
	policies map[string][]Statement
}

// Function is a Lambda function, with Globals applied.
type Function struct {
	// Name is the logical id.
	Name string
	// CodeURI is the folder of its bootstrap, relative to the template.
	CodeURI             string
	Handler             string
	Runtime             string
	Architecture        string
	Timeout             time.Duration
	MemoryMB            int
	Environment         map[string]string
	ReservedConcurrency int // 0: no reserved concurrency
	// Concurrency is how many calls a process has at once, on a managed instance; 0 if each process
	// has one. Processes is how many are kept.
	Concurrency, Processes int
	Tracing                bool
	// Comment is the comment above it in the template.
	Comment   string
	Routes    []Route
	Schedules []Schedule
	// Patterns are the patterns of the EventBridge events that invoke it.
	Patterns []map[string]any
	// Statements are the statements of its own policies and of the stack's managed policies
	// that it names.
	Statements []Statement
	// Managed are the ARNs of other managed policies.
	Managed []string
	// InVPC says whether it has an interface in a VPC.
	InVPC bool
	// Alias is the name of the alias that SAM publishes its versions under, "" for none.
	Alias string
	// LogGroup is the name of its log group, "" for the log group that Lambda makes by itself.
	LogGroup string
}

// Route is a path of the API that a function serves.
type Route struct {
	// Function is the logical id.
	Function string
	Path     string
	// Method is in capitals; "ANY" means all methods.
	Method string
	// Authorizer is the name of an authorizer of the API, "" if every client may call.
	Authorizer string
	// Streaming says that the function answers with a streaming response (ResponseTransferMode:
	// RESPONSE_STREAM).
	Streaming bool
	// Timeout is how long API Gateway waits for the response.
	Timeout time.Duration
}

// Schedule is a timer that invokes a function.
type Schedule struct {
	Function string
	// Expression is in EventBridge's form: rate(1 minute).
	Expression string
	// Every is the interval of a rate expression.
	Every time.Duration
	// Input is the event as JSON, "" for EventBridge's own event.
	Input string
}

// Statement is a statement of a policy.
type Statement struct {
	Effect    string
	Actions   []string
	Resources []string
	Condition map[string]any
}

// Role is an IAM role.
type Role struct {
	Name       string
	Statements []Statement
	Managed    []string
	// Services are the services that may assume it.
	Services []string
}

// Resolve returns the stack that the template makes for the values.
func (t *Template) Resolve(values Values) (*Stack, error) {
	r, err := newResolver(t, values)
	if err != nil {
		return nil, err
	}
	s := &Stack{
		Functions: map[string]Function{}, Machines: map[string]Machine{}, Tables: map[string]Table{}, Roles: map[string]Role{},
		Resources: map[string]Resource{}, Outputs: map[string]string{}, policies: map[string][]Statement{},
	}
	for name, resource := range t.Resources {
		kept, err := r.keep(resource.Condition)
		if err == nil && kept {
			resource.Properties, err = r.properties(resource.Properties)
			s.Resources[name] = resource
		}
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", name, err)
		}
	}
	if err := s.outputs(r, t.outputs); err != nil {
		return nil, err
	}
	globals := map[string]map[string]any{}
	for kind, members := range t.globals {
		if globals[kind], err = r.properties(members); err != nil {
			return nil, fmt.Errorf("globals of %s: %w", kind, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Resources)) {
		if err := s.add(s.Resources[name], globals); err != nil {
			return nil, fmt.Errorf("resource %s: %w", name, err)
		}
	}
	s.finish()
	return s, nil
}

// keep reports whether an object with a condition exists.
func (r *resolver) keep(condition string) (bool, error) {
	if condition == "" {
		return true, nil
	}
	return r.condition(condition)
}

func (r *resolver) properties(members map[string]any) (map[string]any, error) {
	resolved, err := r.resolve(members)
	if err != nil {
		return nil, err
	}
	properties, ok := resolved.(map[string]any)
	if !ok {
		return nil, errors.New("the properties are no map")
	}
	return properties, nil
}

func (s *Stack) outputs(r *resolver, outputs map[string]any) error {
	for name, definition := range outputs {
		members, _ := definition.(map[string]any)
		kept, err := r.keep(scalar(members["Condition"]))
		if err != nil || !kept {
			if err != nil {
				return fmt.Errorf("output %s: %w", name, err)
			}
			continue
		}
		value, err := r.resolve(members["Value"])
		if err != nil {
			return fmt.Errorf("output %s: %w", name, err)
		}
		s.Outputs[name] = scalar(value)
	}
	return nil
}

func (s *Stack) add(resource Resource, globals map[string]map[string]any) (err error) {
	name := resource.Name
	switch resource.Type {
	case typeAPI:
		s.API, err = readAPI(name, merge(globals["Api"], resource.Properties))
	case typeFunction:
		s.Functions[name], err = readFunction(resource, merge(globals["Function"], resource.Properties))
	case typeMachine:
		s.Machines[name], err = readMachine(name, merge(globals["StateMachine"], resource.Properties))
	case typeTable:
		s.Tables[name], err = readTable(resource)
	case typePolicy:
		s.policies[name], err = readStatements(resource.Properties["PolicyDocument"])
	case typeRole:
		s.Roles[name], err = readRole(resource)
	}
	return err
}

// finish fills in the values that are known only when all resources are known.
func (s *Stack) finish() {
	for _, name := range slices.Sorted(maps.Keys(s.Functions)) {
		f := s.Functions[name]
		for i, route := range f.Routes {
			if route.Authorizer == "" {
				f.Routes[i].Authorizer = s.API.DefaultAuthorizer
			}
			if route.Authorizer == "NONE" {
				f.Routes[i].Authorizer = ""
			}
		}
		s.Routes = append(s.Routes, f.Routes...)
		s.Schedules = append(s.Schedules, f.Schedules...)
		f.Statements, f.Managed = s.expand(f.Statements, f.Managed)
		s.Functions[name] = f
	}
	for name, m := range s.Machines {
		if role, own := s.Roles[m.Role]; own {
			m.Statements, m.Managed = slices.Clone(role.Statements), role.Managed
		}
		m.Statements, m.Managed = s.expand(m.Statements, m.Managed)
		s.Machines[name] = m
	}
	slices.SortFunc(s.Routes, compareRoutes)
}

// expand replaces the names of the stack's own managed policies by their statements.
func (s *Stack) expand(statements []Statement, names []string) ([]Statement, []string) {
	var foreign []string
	for _, name := range names {
		if own, ok := s.policies[name]; ok {
			statements = append(statements, own...)
			continue
		}
		foreign = append(foreign, name)
	}
	return statements, foreign
}

// merge applies globals: members of maps are joined, everything else is replaced.
func merge(global, own map[string]any) map[string]any {
	merged := maps.Clone(global)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, value := range own {
		under, isMap := merged[name].(map[string]any)
		over, alsoMap := value.(map[string]any)
		if isMap && alsoMap {
			value = merge(under, over)
		}
		merged[name] = value
	}
	return merged
}

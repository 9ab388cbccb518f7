package stepfunctions

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/emulator/awsjson"
)

// Config holds the parts and settings of a service.
type Config struct {
	// Table keeps the executions. Required.
	Table table.Table
	// Definitions holds <machine>.asl.json for each machine, Substitutions holds the values of
	// the ${Name} in them, and Functions holds the functions that their Tasks may call. See
	// local.Config.
	Definitions   fs.FS
	Substitutions map[string]string
	Functions     map[string]workflow.TaskFunc
	// Prefix precedes a machine's name in its ARN, as
	// arn:aws:states:us-east-1:000000000000:stateMachine:slipway- does. Required.
	Prefix string
	// Now is the clock; the default is the machine's clock.
	Now clock.Clock
	// Log gets the log of workflow/local, and failures of the service itself; the default is
	// slog's.
	Log *slog.Logger
}

// Service answers requests. Make one with New.
type Service struct {
	http    awsjson.Service
	engine  *local.Engine
	history *history
	arns    arns
	// machines are the definitions.
	machines map[workflow.Machine]string
	now      clock.Clock
	made     time.Time
}

// New checks the definitions and makes a service. Nothing runs before Resume or the first request.
func New(config Config) (*Service, error) {
	names, err := parsePrefix(config.Prefix)
	if err != nil {
		return nil, fmt.Errorf("new Step Functions emulator: %w", err)
	}
	now, log := config.Now, cmp.Or(config.Log, slog.Default())
	if now == nil {
		now = clock.System
	}
	s := &Service{history: newHistory(), arns: names, machines: map[workflow.Machine]string{}, now: now, made: now()}
	s.engine, err = local.New(local.Config{
		Table:         config.Table,
		Definitions:   config.Definitions,
		Substitutions: config.Substitutions,
		Functions:     config.Functions,
		Now:           now,
		Log:           log,
		Observer:      s.history.record,
		// Step Functions outlives the processes of the functions, so no execution is suspected
		// of ending them.
		CountAttempts: []workflow.Machine{workflow.Run, workflow.Rollout, workflow.Restart, workflow.Teardown, workflow.Webhook},
	})
	if err != nil {
		return nil, fmt.Errorf("new Step Functions emulator: %w", err)
	}
	if err := s.readMachines(config); err != nil {
		return nil, fmt.Errorf("new Step Functions emulator: %w", err)
	}
	s.http = awsjson.Service{
		Target: "AWSStepFunctions", Version: "1.0", ErrorPrefix: "com.amazonaws.swf.service.v2.model#", Log: log,
		Operations: map[string]awsjson.Operation{
			"StartExecution":       awsjson.Do(s.startExecution),
			"StopExecution":        awsjson.Do(s.stopExecution),
			"DescribeExecution":    awsjson.Do(s.describeExecution),
			"ListExecutions":       awsjson.Do(s.listExecutions),
			"GetExecutionHistory":  awsjson.Do(s.getExecutionHistory),
			"DescribeStateMachine": awsjson.Do(s.describeStateMachine),
			"ListStateMachines":    awsjson.Do(s.listStateMachines),
		},
	}
	return s, nil
}

func (s *Service) readMachines(config Config) error {
	files, err := fs.Glob(config.Definitions, "*.asl.json")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := fs.ReadFile(config.Definitions, file)
		if err != nil {
			return err
		}
		name := workflow.Machine(strings.TrimSuffix(file, ".asl.json"))
		s.machines[name] = os.Expand(string(text), func(name string) string { return config.Substitutions[name] })
	}
	return nil
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.ServeHTTP(w, r) }

// Resume continues the executions that an earlier process left running.
func (s *Service) Resume(ctx context.Context) error { return s.engine.Resume(ctx) }

// Close lets no further Task begin, and waits for the Tasks in progress until ctx ends. A
// later Resume continues the unfinished executions.
func (s *Service) Close(ctx context.Context) { s.engine.Close(ctx) }

type machineItem struct {
	ARN     string       `json:"stateMachineArn"`
	Name    string       `json:"name"`
	Type    string       `json:"type"`
	Created awsjson.Time `json:"creationDate"`
}

type machineDescription struct {
	machineItem
	Status     string `json:"status"`
	Definition string `json:"definition"`
	Role       string `json:"roleArn"`
}

func (s *Service) machine(name workflow.Machine) machineItem {
	return machineItem{ARN: s.arns.machine(name), Name: s.arns.machineName(name), Type: "STANDARD", Created: awsjson.Time(s.made)}
}

func (s *Service) describeStateMachine(_ context.Context, in struct {
	ARN string `json:"stateMachineArn"`
}) (*machineDescription, error) {
	name, err := s.findMachine(in.ARN)
	if err != nil {
		return nil, err
	}
	return &machineDescription{machineItem: s.machine(name), Status: "ACTIVE", Definition: s.machines[name], Role: s.arns.role()}, nil
}

// findMachine returns the machine with an ARN.
func (s *Service) findMachine(arn string) (workflow.Machine, error) {
	name, err := s.arns.parseMachine(arn)
	if err != nil {
		return "", err
	}
	if _, ok := s.machines[name]; !ok {
		return "", noMachine(arn)
	}
	return name, nil
}

func noMachine(arn string) error {
	return &awsjson.Error{Name: "StateMachineDoesNotExist", Message: "State Machine Does Not Exist: '" + arn + "'"}
}

type machineList struct {
	Machines  []machineItem `json:"stateMachines"`
	NextToken string        `json:"nextToken,omitempty"`
}

func (s *Service) listStateMachines(_ context.Context, in pageRequest) (*machineList, error) {
	items := []machineItem{}
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		items = append(items, s.machine(name))
	}
	items, next, err := page(items, in)
	return &machineList{items, next}, err
}

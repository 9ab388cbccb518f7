package stepfunctions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/base/id"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/emulator/awsjson"
)

// maxInput is how large an execution's input may be, in bytes.
const maxInput = 256 << 10

type startRequest struct {
	MachineARN string  `json:"stateMachineArn"`
	Name       string  `json:"name"`
	Input      *string `json:"input"`
}

type startAnswer struct {
	ARN     string       `json:"executionArn"`
	Started awsjson.Time `json:"startDate"`
}

// startExecution begins an execution. A request may name a running execution again if it has
// the same input; otherwise a name can be used for one execution.
func (s *Service) startExecution(ctx context.Context, in startRequest) (*startAnswer, error) {
	machine, err := s.findMachine(in.MachineARN)
	if err != nil {
		return nil, err
	}
	input, name := "{}", cmp.Or(in.Name, id.New(s.now()))
	if in.Input != nil {
		input = *in.Input
	}
	if len(input) > maxInput {
		return nil, &awsjson.Error{Name: "InvalidExecutionInput", Message: fmt.Sprintf("The input is larger than %d bytes.", maxInput)}
	}
	arn := s.arns.execution(machine, name)
	before, err := s.engine.Describe(ctx, machine, name)
	if err == nil && before.Status != workflow.Running {
		return nil, alreadyExists(arn)
	}
	if err := s.engine.Start(ctx, machine, name, json.RawMessage(input)); err != nil {
		return nil, refusal(err)
	}
	// Only the input shows whether this request or another request started it. The input is
	// stored without the spaces between its parts.
	execution, err := s.engine.Describe(ctx, machine, name)
	if err != nil {
		return nil, err
	}
	given, err := json.Marshal(json.RawMessage(input))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(given, execution.Input) {
		return nil, alreadyExists(arn)
	}
	return &startAnswer{arn, awsjson.Time(execution.Started)}, nil
}

func alreadyExists(arn string) error {
	return &awsjson.Error{Name: "ExecutionAlreadyExists", Message: "Execution Already Exists: '" + arn + "'"}
}

// refusal translates the engine's reasons for refusing to start an execution into the
// service's errors.
func refusal(err error) error {
	for reason, name := range map[error]string{local.ErrName: "InvalidName", local.ErrInput: "InvalidExecutionInput"} {
		if errors.Is(err, reason) {
			return &awsjson.Error{Name: name, Message: err.Error()}
		}
	}
	return err
}

type executionRequest struct {
	ARN string `json:"executionArn"`
}

// find returns the execution with an ARN.
func (s *Service) find(ctx context.Context, arn string) (workflow.Execution, error) {
	machine, name, err := s.arns.parseExecution(arn)
	if err != nil {
		return workflow.Execution{}, err
	}
	execution, err := s.engine.Describe(ctx, machine, name)
	if errors.Is(err, workflow.ErrNotFound) {
		err = noExecution(arn)
	}
	return execution, err
}

type stopRequest struct {
	executionRequest
	Cause string `json:"cause"`
}

type stopAnswer struct {
	Stopped awsjson.Time `json:"stopDate"`
}

func (s *Service) stopExecution(ctx context.Context, in stopRequest) (*stopAnswer, error) {
	execution, err := s.find(ctx, in.ARN)
	if err != nil {
		return nil, err
	}
	if err := s.engine.Stop(ctx, execution.Machine, execution.Name, in.Cause); err != nil {
		return nil, err
	}
	execution, err = s.find(ctx, in.ARN)
	return &stopAnswer{awsjson.Time(execution.Stopped)}, err
}

type executionItem struct {
	ARN        string          `json:"executionArn"`
	MachineARN string          `json:"stateMachineArn"`
	Name       string          `json:"name"`
	Status     workflow.Status `json:"status"`
	Started    awsjson.Time    `json:"startDate"`
	Stopped    awsjson.Time    `json:"stopDate,omitzero"`
	Redrives   int             `json:"redriveCount"`
}

func (s *Service) item(e workflow.Execution) executionItem {
	return executionItem{
		ARN:        s.arns.execution(e.Machine, e.Name),
		MachineARN: s.arns.machine(e.Machine),
		Name:       e.Name,
		Status:     e.Status,
		Started:    awsjson.Time(e.Started),
		Stopped:    awsjson.Time(e.Stopped),
	}
}

// included says that no data was left out because of its size.
type included struct {
	Included bool `json:"included"`
}

type executionDescription struct {
	executionItem
	Input         string    `json:"input"`
	InputDetails  included  `json:"inputDetails"`
	Output        string    `json:"output,omitempty"`
	OutputDetails *included `json:"outputDetails,omitempty"`
	Error         string    `json:"error,omitempty"`
	Cause         string    `json:"cause,omitempty"`
	RedriveStatus string    `json:"redriveStatus"`
}

func (s *Service) describeExecution(ctx context.Context, in executionRequest) (*executionDescription, error) {
	e, err := s.find(ctx, in.ARN)
	if err != nil {
		return nil, err
	}
	d := &executionDescription{
		executionItem: s.item(e),
		Input:         string(e.Input),
		InputDetails:  included{true},
		Output:        string(e.Output),
		Error:         e.Error,
		Cause:         e.Cause,
		RedriveStatus: "NOT_REDRIVABLE",
	}
	if e.Output != nil {
		d.OutputDetails = &included{true}
	}
	return d, nil
}

type listRequest struct {
	pageRequest
	MachineARN string          `json:"stateMachineArn"`
	Status     workflow.Status `json:"statusFilter"`
}

type executionList struct {
	Executions []executionItem `json:"executions"`
	NextToken  string          `json:"nextToken,omitempty"`
}

// listExecutions shows the executions of a machine, the executions that started last first.
func (s *Service) listExecutions(ctx context.Context, in listRequest) (*executionList, error) {
	machine, err := s.findMachine(in.MachineARN)
	if err != nil {
		return nil, err
	}
	executions, err := s.engine.List(ctx, machine)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(executions, func(a, b workflow.Execution) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Name, a.Name))
	})
	items := []executionItem{}
	for _, e := range executions {
		if in.Status == "" || e.Status == in.Status {
			items = append(items, s.item(e))
		}
	}
	items, next, err := page(items, in.pageRequest)
	return &executionList{items, next}, err
}

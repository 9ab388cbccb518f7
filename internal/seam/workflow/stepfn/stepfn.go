// Package stepfn is the workflow engine on AWS: each machine is a state machine of Step
// Functions, and each execution is an execution of a Standard workflow.
package stepfn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// Engine starts, stops and describes executions in Step Functions. Make one with New.
type Engine struct {
	client *sfn.Client
	// machines and executions precede the name of a machine in the ARN of the machine and in
	// the ARNs of its executions.
	machines, executions string
}

var _ workflow.Engine = (*Engine)(nil)

// New makes an engine. A machine's name, appended to prefix, is the ARN of the state machine.
// The client decides how often a request that was throttled or lost is sent again.
func New(client *sfn.Client, prefix string) *Engine {
	return &Engine{client: client, machines: prefix, executions: strings.Replace(prefix, ":stateMachine:", ":execution:", 1)}
}

// Start begins an execution; see workflow.Engine. The service remembers a name until 90 days after
// the execution has ended.
func (e *Engine) Start(ctx context.Context, machine workflow.Machine, name string, input json.RawMessage) error {
	// If the name or the input is missing, the service would make one.
	if name == "" || len(input) == 0 {
		return fmt.Errorf("start execution %s of %s: a name and an input are required", name, machine)
	}
	_, err := e.client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: aws.String(e.machines + string(machine)),
		Name:            aws.String(name),
		Input:           aws.String(string(input)),
	})
	if _, exists := errors.AsType[*types.ExecutionAlreadyExists](err); exists {
		return nil
	}
	if _, full := errors.AsType[*types.ExecutionLimitExceeded](err); full {
		err = fmt.Errorf("%w: %w", workflow.ErrBusy, err)
	}
	if err != nil {
		return fmt.Errorf("start execution %s of %s: %w", name, machine, err)
	}
	return nil
}

// Stop ends an execution as Aborted; see workflow.Engine.
func (e *Engine) Stop(ctx context.Context, machine workflow.Machine, name string, cause string) error {
	_, err := e.client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: e.arn(machine, name), Cause: aws.String(cause)})
	if err != nil {
		return fmt.Errorf("stop execution %s of %s: %w", name, machine, known(err))
	}
	return nil
}

// Describe returns an execution; see workflow.Engine. The answer may lag behind for an
// execution that was started a moment ago.
func (e *Engine) Describe(ctx context.Context, machine workflow.Machine, name string) (workflow.Execution, error) {
	out, err := e.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: e.arn(machine, name)})
	if err != nil {
		return workflow.Execution{}, fmt.Errorf("describe execution %s of %s: %w", name, machine, known(err))
	}
	execution := workflow.Execution{
		Machine: machine,
		Name:    name,
		Status:  statusOf(out.Status),
		Input:   json.RawMessage(aws.ToString(out.Input)),
		Error:   aws.ToString(out.Error),
		Cause:   aws.ToString(out.Cause),
		Started: clock.Cut(aws.ToTime(out.StartDate)),
	}
	if execution.Status == workflow.TimedOut {
		// The service documents no error for it.
		execution.Error = cmp.Or(execution.Error, "States.Timeout")
	}
	if out.Output != nil {
		execution.Output = json.RawMessage(*out.Output)
	}
	if out.StopDate != nil {
		execution.Stopped = clock.Cut(*out.StopDate)
	}
	return execution, nil
}

// statusOf reads a status. An execution that waits to be redriven counts as running. Only a
// person can request that.
func statusOf(status types.ExecutionStatus) workflow.Status {
	if status == types.ExecutionStatusPendingRedrive {
		return workflow.Running
	}
	return workflow.Status(status)
}

func (e *Engine) arn(machine workflow.Machine, name string) *string {
	return aws.String(e.executions + string(machine) + ":" + name)
}

// known adds the seam's name to an error of the service.
func known(err error) error {
	if _, missing := errors.AsType[*types.ExecutionDoesNotExist](err); missing {
		return fmt.Errorf("%w: %w", workflow.ErrNotFound, err)
	}
	return err
}

package lambdahost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// errorFailed names a failure that a state machine matches by States.TaskFailed or States.ALL
// only.
const errorFailed = "TaskFailed"

// Failed and Panicked are the messages of the log lines about tasks and timers that ended with no
// expected outcome: neither well, nor with a *workflow.TaskError, nor because a service is busy.
// Alarms of the AWS stack count these lines, for all versions and for each version (template.yaml),
// because Lambda's own metric counts each expected outcome as an error too.
const (
	Failed   = "task failed"
	Panicked = "task panicked"
)

// Task returns the function that Task states call. The error's name is the name of a
// *workflow.TaskError, as on one machine, or workflow.ErrorBusy when the table or another
// service accepts no more calls at the moment. Any other error is logged here and named by its
// invocation: more people read executions than the log.
//
// The task sees the deadline of its invocation and has to end before it.
func Task(task workflow.TaskFunc, log *slog.Logger) func(context.Context, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, input json.RawMessage) (output json.RawMessage, err error) {
		defer func() { err = report(ctx, log, recover(), err) }()
		return task(ctx, input)
	}
}

// Schedule returns the function that a timer calls; an event of EventBridge with one of the
// detail-types goes to its own function instead.
func Schedule(work func(context.Context) error, events map[string]func(ctx context.Context, detail json.RawMessage) error, log *slog.Logger) func(context.Context, json.RawMessage) error {
	return func(ctx context.Context, input json.RawMessage) (err error) {
		defer func() { err = report(ctx, log, recover(), err) }()
		var event struct {
			DetailType string `json:"detail-type"`
			Detail     json.RawMessage
		}
		if err := json.Unmarshal(input, &event); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		if take, ok := events[event.DetailType]; ok {
			return take(ctx, event.Detail)
		}
		return work(ctx)
	}
}

// report turns the error or the panic that ended the work into the error for Lambda. A process
// that panicked is not used again, unless it works on other invocations too: their work is worth
// more than the doubt about what the panic has left.
func report(ctx context.Context, log *slog.Logger, panicked any, err error) error {
	if panicked != nil {
		log.ErrorContext(ctx, Panicked, "panic", panicked, "stack", string(debug.Stack()))
		return failed(ctx, lambdacontext.MaxConcurrency() == 1)
	}
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*workflow.TaskError](err); ok {
		return messages.InvokeResponse_Error{Type: known.Name, Message: known.Cause}
	}
	if isBusy(err) {
		log.WarnContext(ctx, "task met a busy service", "error", err)
		return messages.InvokeResponse_Error{Type: workflow.ErrorBusy, Message: "A service of the platform takes no more calls at the moment."}
	}
	log.ErrorContext(ctx, Failed, "error", err)
	return failed(ctx, false)
}

// throttles recognises the errors by which services of AWS refuse calls that come too fast.
var throttles = retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}

func isBusy(err error) bool {
	return errors.Is(err, table.ErrBusy) || throttles.IsErrorThrottle(err) == aws.TrueTernary
}

func failed(ctx context.Context, exit bool) error {
	return messages.InvokeResponse_Error{
		Type: errorFailed, ShouldExit: exit,
		Message: fmt.Sprintf("The function failed; its log says why (request %s).", invocation(ctx)),
	}
}

package ecs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// The words of ECS about the end of a task. They are compared in lower case.
var (
	// ours name the platform's own troubles: its roles, its network, its logs.
	ours = []string{"resourceinitializationerror", "unable to assume the role", "accessdenied", "is not authorized to perform"}
	// passing name troubles of networks and registries that another attempt may not meet.
	passing = []string{
		"timeout", "timed out", "deadline exceeded", "toomanyrequests", "rate exceeded", "connection refused", "connection reset", "temporary failure", "no such host",
		"500 internal", "502 bad", "503 service", "504 gateway", "unexpected eof",
	}
	crowded = []string{"capacity is unavailable", "capacity unavailable", "unable to place a task", "vcpu limit", "maximum number of", "insufficientcapacity"}
)

func says(text string, oneOf []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(oneOf, func(words string) bool { return strings.Contains(text, words) })
}

// messageLimit bounds the part of AWS's words that a message shows.
const messageLimit = 2000

func failed(reason, format string, args ...any) *compute.Status {
	message := strings.ToValidUTF8(fmt.Sprintf(format, args...), "")
	if len(message) > messageLimit {
		message = strings.ToValidUTF8(message[:messageLimit], "") + "..."
	}
	return &compute.Status{State: compute.Failed, Reason: reason, Message: message}
}

// failureOf returns why the release will not become healthy; nil while it still may become
// healthy. The error is for trouble that the platform causes.
func (t *Target) failureOf(ctx context.Context, service *types.Service, current *types.Deployment) (*compute.Status, error) {
	tasks, err := t.stoppedTasks(ctx, service, current)
	if err != nil {
		return nil, err
	}
	event := latestEvent(service, current)
	if says(event, ours) {
		return nil, errors.New(event)
	}
	failure, last, err := failureIn(tasks)
	if failure != nil || err != nil {
		return failure, err
	}
	given, reason, err := t.gaveUp(ctx, service, current)
	switch {
	case err != nil:
		return nil, err
	case given:
		return gaveUpFor(last, event, reason)
	case current != nil && t.overdue(service, current):
		return overdueFor(last, event, readyLimitOf(service)), nil
	default:
		return nil, nil
	}
}

// gaveUpFor puts into words why ECS starts no more tasks, from what ECS said about the last
// task, the service and the deployment.
func gaveUpFor(last, event, reason string) (*compute.Status, error) {
	switch {
	case says(last, ours):
		return nil, errors.New(last)
	case says(last+event, crowded):
		return failed(compute.ReasonNoCapacity, "there is no room to run the agent on: %s", firstOf(last, event, reason)), nil
	case says(last, []string{pullError}):
		return failed(compute.ReasonImageUnavailable, "the image could not be pulled: %s", last), nil
	default:
		return failed(compute.ReasonStartFailed, "the agent could not be started: %s", firstOf(last, event, reason)), nil
	}
}

// overdueFor puts into words the last known state of a release whose time is over.
func overdueFor(last, event string, limit time.Duration) *compute.Status {
	if says(last+event, crowded) {
		return failed(compute.ReasonNoCapacity, "there was no room to run the agent on within %s: %s", limit, firstOf(last, event))
	}
	return failed(compute.ReasonNotReady, "the agent did not answer GET /ping within %s. %s", limit, firstOf(last, event))
}

// gaveUp reports whether ECS starts no more tasks, and its reason.
func (t *Target) gaveUp(ctx context.Context, service *types.Service, current *types.Deployment) (bool, string, error) {
	if t.cfg.Compute != Express {
		if current == nil || current.RolloutState != types.DeploymentRolloutStateFailed {
			return false, "", nil
		}
		return true, aws.ToString(current.RolloutStateReason), nil
	}
	newest, err := t.newestExpress(ctx, service)
	if err != nil || newest == nil {
		return false, "", err
	}
	switch newest.Status {
	case types.ServiceDeploymentStatusPending, types.ServiceDeploymentStatusInProgress, types.ServiceDeploymentStatusSuccessful:
		return false, "", nil
	}
	return true, aws.ToString(newest.StatusReason), nil
}

// pullError is the beginning, in lower case, of all messages of ECS about images that could
// not be pulled.
const pullError = "cannotpull"

// failureIn returns the first failure of the release that ended tasks show, or else the words about
// the last task.
func failureIn(tasks []types.Task) (failure *compute.Status, last string, err error) {
	for _, task := range tasks {
		if failure, err = taskFailure(task); failure != nil || err != nil {
			return failure, "", err
		}
		last = words(task)
	}
	return nil, last, nil
}

// taskFailure returns the failure of the release if an ended task shows for certain that the
// tasks after it will fail, too.
func taskFailure(task types.Task) (*compute.Status, error) {
	said := words(task)
	switch task.StopCode {
	case types.TaskStopCodeEssentialContainerExited:
		return failed(compute.ReasonStartFailed, "the agent's container ended: %s", said), nil
	case types.TaskStopCodeServiceSchedulerInitiated:
		if says(said, []string{"health check"}) {
			return failed(compute.ReasonNotReady, "the agent does not answer GET /ping with 200 on port %d: %s", port, said), nil
		}
		return nil, nil
	case types.TaskStopCodeTaskFailedToStart:
	default:
		return nil, nil
	}
	switch {
	case says(said, []string{pullError}):
		if says(said, passing) {
			return nil, nil
		}
		return failed(compute.ReasonImageUnavailable, "the image cannot be pulled: %s", said), nil
	case says(said, ours) && !says(said, passing):
		return nil, errors.New(said)
	case says(said, []string{"cannotstartcontainererror", "cannotcreatecontainererror", "containerruntimeerror", "outofmemoryerror"}):
		return failed(compute.ReasonStartFailed, "the agent's container could not be started: %s", said), nil
	default:
		return nil, nil
	}
}

// words joins the texts of ECS about an ended task.
func words(task types.Task) string {
	said := aws.ToString(task.StoppedReason)
	for _, c := range task.Containers {
		if c.ExitCode != nil {
			said += fmt.Sprintf(" (exit code %d)", *c.ExitCode)
		}
		if reason := aws.ToString(c.Reason); reason != "" && !strings.Contains(said, reason) {
			said += ": " + reason
		}
	}
	return strings.TrimSpace(said)
}

func firstOf(texts ...string) string {
	return cmp.Or(append(texts, "AWS gives no reason.")...)
}

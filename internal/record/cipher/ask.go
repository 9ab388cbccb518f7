package cipher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// unavailableError is a fault.Unavailable that is also table.ErrBusy, so that background work
// waits, and the error that has caused it.
type unavailableError struct {
	shown *fault.Error
	cause error
}

func (e unavailableError) Error() string { return e.shown.Message }

func (e unavailableError) Unwrap() []error { return []error{e.shown, table.ErrBusy, e.cause} }

// IsUnavailable reports whether an error says that a repository's own encryption did not answer.
func IsUnavailable(err error) bool {
	_, ok := errors.AsType[unavailableError](err)
	return ok
}

func failed(message string) error { return failedBy(nil, message) }

// failedBy returns the error for a cause, which its text does not show.
func failedBy(cause error, message string) error {
	return unavailableError{fault.New(fault.Unavailable, "%s", message), cause}
}

// answerLimit is how long the work of a timer waits for the answer to one question.
const answerLimit = 2 * time.Second

func (t *Table) askNow(ctx context.Context, of keys.DeploymentParts, operation graph.Operation, request graph.Encryption) (graph.Ciphered, error) {
	if table.IsOfTimer(ctx) {
		return t.askByTimer(ctx, of, operation, request)
	}
	ciphered, err := t.ask(ctx, of.Workspace, of.Deployment, operation, request)
	if err != nil && ctx.Err() != nil {
		return ciphered, err
	}
	if err == nil {
		t.timers.answered(of)
	}
	return ciphered, unavailable(err, len(request.Values), len(ciphered.Values))
}

// askByTimer asks for work on which items of other deployments wait.
func (t *Table) askByTimer(ctx context.Context, of keys.DeploymentParts, operation graph.Operation, request graph.Encryption) (graph.Ciphered, error) {
	end, err := t.timers.begin(of)
	if err != nil {
		return graph.Ciphered{}, err
	}
	defer end()
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	begun := t.now()
	ciphered, err := t.ask(limited, of.Workspace, of.Deployment, operation, request)
	switch {
	case err == nil:
		t.timers.answered(of)
	case errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, ErrGone):
		return ciphered, err
	case limited.Err() != nil && !fault.Is(err, fault.Unavailable):
		t.timers.pause(of, silentPause)
		return ciphered, failed(fmt.Sprintf("The repository's own encryption did not answer within %s. Timers ask it again after %s.", answerLimit, silentPause))
	case t.now().Sub(begun) > slow:
		t.timers.pause(of, slowPause)
	}
	return ciphered, unavailable(err, len(request.Values), len(ciphered.Values))
}

// unavailable returns the error that callers get if a question has no answer, or a wrong answer.
func unavailable(err error, request, answered int) error {
	if err == nil && request != answered {
		return failed("The repository's own encryption has lost values.")
	}
	if err == nil || errors.Is(err, ErrGone) {
		return err
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return failed(known.Message)
	}
	return failedBy(err, "The repository's own encryption cannot be reached.")
}

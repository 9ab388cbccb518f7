package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// errBusy is the fault of a call whose patience is over. The API answers it as 503 with
// Retry-After.
var errBusy = fault.New(fault.Unavailable, "The store is busy. Try again later.")

// WithPatience ends the retries of a call after a time, or earlier when retries of this process use
// up their quota, with a fault.Unavailable. A caller that somebody waits for gives way to others
// so: a throttled partition costs it a few seconds, not all the time that its function may run, and
// does not stay hot by its retries. The default is to retry for as long as the caller's context
// lasts.
func WithPatience(patience time.Duration) Option { return func(t *Table) { t.patience = patience } }

// impatient ends the retries of a call. An attempt that is under way is not cut off, as it may yet
// be answered.
type impatient struct {
	*retry.Standard

	patience time.Duration
}

func (r impatient) GetRetryToken(ctx context.Context, attempt error) (func(error) error, error) {
	start, _ := middleware.GetStackValue(ctx, startKeyOfCall{}).(time.Time)
	if time.Since(start) >= r.patience {
		return nil, errBusy
	}
	release, err := r.Standard.GetRetryToken(ctx, attempt)
	if err != nil {
		return nil, errors.Join(errBusy, err)
	}
	return release, nil
}

// startKeyOfCall is the name of the time at which a call began.
type startKeyOfCall struct{}

// addStart notes when a call begins, before its first attempt.
func addStart(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("SlipwayStart",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(middleware.WithStackValue(ctx, startKeyOfCall{}, time.Now()), in)
		}), middleware.Before)
}

package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// withoutDeadline is how long a call is retried if it has no patience and no deadline.
	withoutDeadline = 30 * time.Second
	// lastMoment is how long before its context's deadline a call ends its retries, so that
	// the caller still has the time to report that the store is busy.
	lastMoment = 2 * time.Second
)

// WithPatience ends the retries of a call after a time, or earlier when the retries of this
// process use up their quota. So a call for which a client waits gives way to other calls: a
// throttled partition costs it a few seconds, not all the time that its function may run, and
// its retries do not keep the partition hot. The default is to retry until shortly before the
// deadline of the caller's context. In both cases the error is table.ErrBusy.
func WithPatience(patience time.Duration) Option { return func(t *Table) { t.patience = patience } }

// patient ends the retries of a call. It does not cut off an attempt that is under way,
// because the attempt may still be answered.
type patient struct {
	*retry.Standard

	// patience is 0 for a caller that waits as long as its context lasts.
	patience time.Duration
}

// MaxAttempts returns 0: only time bounds the retries.
func (r patient) MaxAttempts() int { return 0 }

func (r patient) GetRetryToken(ctx context.Context, attempt error) (func(error) error, error) {
	start, _ := middleware.GetStackValue(ctx, startKeyOfCall{}).(time.Time)
	if !mayWait(ctx, r.patience, start) {
		return nil, errors.Join(table.ErrBusy, attempt)
	}
	release, err := r.Standard.GetRetryToken(ctx, attempt)
	if err != nil {
		return nil, errors.Join(table.ErrBusy, err)
	}
	return release, nil
}

// mayWait reports whether a call that has had no answer since start waits longer.
func mayWait(ctx context.Context, patience time.Duration, start time.Time) bool {
	if clock.EndsWithin(ctx, lastMoment) {
		return false
	}
	if _, ok := ctx.Deadline(); patience == 0 && !ok {
		patience = withoutDeadline
	}
	return patience == 0 || time.Since(start) < patience
}

// startKeyOfCall is the key under which the time at which a call began is stored.
type startKeyOfCall struct{}

// addStart notes when a call begins, before its first attempt.
func addStart(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("SlipwayStart",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(middleware.WithStackValue(ctx, startKeyOfCall{}, time.Now()), in)
		}), middleware.Before)
}

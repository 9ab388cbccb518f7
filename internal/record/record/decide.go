package record

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// patience bounds how long Decide waits between tries, all pauses together. Each lost race
	// means that another writer won a race, so only an item under constant change exhausts it.
	patience = 10 * time.Second
	// firstPause and longestPause bound the random pause before a decision is made again. The
	// bound doubles with each lost race.
	firstPause   = 2 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// errContended is the fault of a decision whose patience is exhausted. The API answers it as 503
// with Retry-After.
var errContended = fault.New(fault.Unavailable, "Too many requests change this resource at the same time. Try again.")

// Decide writes data that depend on data that were read. decide reads, and returns the writes under
// the condition that nothing has changed. Decide commits them. When the race is lost, it waits and
// calls decide again, until the context ends or its patience is exhausted, which is a
// fault.Unavailable. An error of decide is returned unchanged, unless it is ErrLost. Only Decide,
// DecideValue and Retry repeat work after a lost race.
func Decide(ctx context.Context, t table.Table, decide func(context.Context) (Outbox, error)) error {
	_, err := DecideValue(ctx, t, func(ctx context.Context) (struct{}, Outbox, error) {
		o, err := decide(ctx)
		return struct{}{}, o, err
	})
	return err
}

// DecideValue is Decide that also returns a value with the committed decision.
func DecideValue[T any](ctx context.Context, t table.Table, decide func(context.Context) (T, Outbox, error)) (T, error) {
	var none T
	paused := time.Duration(0)
	for bound := firstPause; ; bound = min(2*bound, longestPause) {
		value, o, err := decide(ctx)
		if err == nil {
			err = Commit(ctx, t, o)
		}
		switch {
		case err == nil:
			return value, nil
		case !errors.Is(err, ErrLost):
			return none, err
		case paused > patience:
			return none, errContended
		}
		// The pause is random so that writers that lost together do not come back together.
		pause := rand.N(bound)
		if !clock.Sleep(ctx, pause) {
			return none, context.Cause(ctx)
		}
		paused += pause
	}
}

// Retry is DecideValue for work that only reads, or that commits its own writes. It does the work
// again each time the work returns ErrLost.
func Retry[T any](ctx context.Context, work func(context.Context) (T, error)) (T, error) {
	return DecideValue(ctx, nil, func(ctx context.Context) (T, Outbox, error) {
		value, err := work(ctx)
		return value, Outbox{}, err
	})
}

package record

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Note returns a write that is committed together with a new T, or not at all. It returns nil
// if there is no write.
type Note[T any] func(ctx context.Context, made T) (table.Write, error)

// AddNotes appends the writes of notes. When the condition of such a write fails, another
// attempt at the same request has taken the place of this one, which is a fault.Conflict.
func AddNotes[T any](ctx context.Context, o *Outbox, created T, notes ...Note[T]) error {
	for _, note := range notes {
		write, err := note(ctx, created)
		if err != nil {
			return err
		}
		if write != nil {
			o.AddOr(write, Always(errRepeated))
		}
	}
	return nil
}

// errRepeated says that another attempt at the same request has taken the place of this one.
var errRepeated = fault.New(fault.Conflict, "Another attempt of this request has taken its place. Repeat the request to see the outcome.")

// CommitNew commits the outbox that makes a new T, with its notes, and returns the T.
func CommitNew[T any](ctx context.Context, t table.Table, o Outbox, created T, notes ...Note[T]) (T, error) {
	err := AddNotes(ctx, &o, created, notes...)
	if err == nil {
		err = Commit(ctx, t, o)
	}
	return created, err
}

package table

import "context"

type timerKey struct{}

// ofTimer marks the context of a timer's work on one item: other items, also of other tenants, wait
// until that work is over.
func ofTimer(ctx context.Context) context.Context { return context.WithValue(ctx, timerKey{}, true) }

// IsOfTimer reports whether the work of a Pass makes a call. Such a call should not wait for what a
// single tenant is responsible for.
func IsOfTimer(ctx context.Context) bool { return ctx.Value(timerKey{}) != nil }

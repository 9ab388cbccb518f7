package clock

import (
	"context"
	"time"
)

// Sleep waits for the pause and reports whether ctx has not ended.
func Sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// EndsWithin reports whether the deadline of ctx is less than margin away.
func EndsWithin(ctx context.Context, margin time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < margin
}

// IsOver reports whether ctx has ended. An error of its holder shortly before the deadline means
// the same: connections know the deadline too, and may notice it first.
func IsOver(ctx context.Context, err error) bool {
	return ctx.Err() != nil || (err != nil && EndsWithin(ctx, 100*time.Millisecond))
}

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

// IsOver reports whether ctx has ended. An error of its holder shortly before the deadline means
// the same: connections know the deadline too, and may notice it first.
func IsOver(ctx context.Context, err error) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || (err != nil && ok && time.Until(deadline) < 100*time.Millisecond)
}

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

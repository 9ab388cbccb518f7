// Package clock holds the one source of time that the whole product takes as an input.
//
// Every timestamp that Slipway stores or shows is UTC with microsecond precision; it is cut to
// this precision here and nowhere else, so that a time compares equal before and after it was
// stored.
package clock

import (
	"context"
	"time"
)

// Clock tells the time. Services take a Clock as a field, and tests pass their own.
type Clock func() time.Time

// System reads the machine's clock, cut to the precision that is stored.
func System() time.Time { return Cut(time.Now()) }

// Cut returns t in UTC at microsecond precision.
func Cut(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// layout always writes six fractional digits, so that stored times sort as text.
const layout = "2006-01-02T15:04:05.000000Z07:00"

// Format writes t in the form that is stored and shown: RFC 3339, UTC, always six fractional
// digits.
func Format(t time.Time) string { return t.UTC().Format(layout) }

// FormatOptional writes a time that may be missing. The zero time stands for a missing time
// and is written as "".
func FormatOptional(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Format(t)
}

// Nullable returns a time that may be missing in the form of documents: nil if it is missing.
func Nullable(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := Format(t)
	return &text
}

// Parse reads a time that Format wrote.
func Parse(s string) (time.Time, error) { return time.Parse(layout, s) }

// Sleep waits for the pause and reports whether ctx has not ended.
func Sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
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

package cron

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/fault"
)

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// next returns the first time of a schedule after a moment, zero when there is none before its end.
func (c Content) next(after time.Time) (time.Time, error) {
	schedule, err := parser.Parse(c.Schedule)
	// A time zone has a field of its own, and intervals begin anew with each process.
	if err != nil || strings.Contains(c.Schedule, "=") || strings.HasPrefix(c.Schedule, "@every") {
		return time.Time{}, fault.Shape(fault.Detail{
			Loc: []any{"body", "schedule"}, Type: "value_error",
			Msg: "Value error, a schedule is minute, hour, day of the month, month and day of the week, or one of @hourly, @daily, @weekly, @monthly and @yearly",
		})
	}
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil || c.Timezone == "Local" {
		return time.Time{}, fault.Shape(fault.Detail{Loc: []any{"body", "timezone"}, Msg: "Value error, the time zone is not known", Type: "value_error"})
	}
	at := schedule.Next(after.In(zone))
	if at.IsZero() || (!c.End.IsZero() && at.After(c.End)) {
		return time.Time{}, nil
	}
	return clock.Cut(at), nil
}

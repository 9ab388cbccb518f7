package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // images that have only the program know the time zones, too

	"github.com/robfig/cron/v3"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
)

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// zoneOf returns a time zone by its name; "" is UTC.
func zoneOf(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, refuse("timezone", "value_error", "Value error, the time zone is not known")
	}
	return zone, nil
}

// refuse returns the fault of a member of the request.
func refuse(member, rule, message string) error {
	return fault.Shape(fault.Detail{Loc: []any{"body", member}, Type: rule, Msg: message})
}

// ParseEnd reads the time after which a cron does not fire. A time without a zone is in the
// cron's zone.
func ParseEnd(text, timezone string) (time.Time, error) {
	zone, err := zoneOf(timezone)
	if err != nil {
		return time.Time{}, err
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		end, err = time.ParseInLocation("2006-01-02T15:04:05", text, zone)
	}
	if err == nil && clock.Cut(end).IsZero() { // a stored cron without an end has this time
		return time.Time{}, refuse("end_time", "value_error", "Value error, the time should be after 0001-01-01T00:00:00Z")
	}
	// In UTC, the time may be in a year that does not have four digits, which cannot be
	// written.
	if end = clock.Cut(end); err != nil || end.Year() < 1 || end.Year() > 9999 {
		return time.Time{}, refuse("end_time", "datetime_parsing", "Input should be a valid datetime, as 2030-01-31T08:00:00Z, or without a zone in that of the cron")
	}
	return end, nil
}

// next returns the first time of a schedule after a moment, zero if there is no such time
// before the end of the cron.
func (c Content) next(after time.Time) (time.Time, error) {
	schedule, err := parser.Parse(sundays(c.Schedule))
	// A time zone has a field of its own, and intervals would begin again with each process.
	if err != nil || strings.Contains(c.Schedule, "=") || strings.HasPrefix(c.Schedule, "@every") {
		return time.Time{}, refuse("schedule", "value_error",
			"Value error, a schedule is minute, hour, day of the month, month and day of the week, or one of @hourly, @daily, @weekly, @monthly and @yearly")
	}
	zone, err := zoneOf(c.Timezone)
	if err != nil {
		return time.Time{}, err
	}
	at := nextIn(schedule, zone, after)
	if at.IsZero() {
		return time.Time{}, refuse("schedule", "value_error", "Value error, the schedule has no time in the next five years")
	}
	if !c.End.IsZero() && at.After(c.End) {
		return time.Time{}, nil
	}
	return clock.Cut(at), nil
}

// sameTimes reports whether the cron fires at the same times as another.
func (c Content) sameTimes(as Content) bool {
	return c.Schedule == as.Schedule && c.Timezone == as.Timezone && c.Enabled == as.Enabled && c.End.Equal(as.End)
}

// nextIn returns the first time of a schedule after a moment, zero if there is no such time in the
// next years. A time that the clocks of the zone skip is skipped. A time that they show twice
// counts the first time only, as in other implementations of cron, except in a schedule with every
// hour, which has no pause when the clocks go back. The schedule reads clocks that never change:
// the zone's clocks until they change, and then the next ones. Its own way to pass such a change
// loses a day or finds a wrong day.
func nextIn(schedule cron.Schedule, zone *time.Location, after time.Time) time.Time {
	const years = 10 // the schedule looks five years ahead
	from, last := after.Add(time.Nanosecond), after.AddDate(years, 0, 0)
	for from.Before(last) {
		_, offset := from.In(zone).Zone()
		began, change := from.In(zone).ZoneBounds()
		if !began.IsZero() && !isHourly(schedule) {
			_, before := began.Add(-time.Nanosecond).In(zone).Zone()
			// Until then, the clocks show again what they have shown before.
			if fresh := began.Add(time.Duration(before-offset) * time.Second); from.Before(fresh) {
				from = fresh
				continue
			}
		}
		ahead := time.Duration(offset) * time.Second
		shown := schedule.Next(from.UTC().Add(ahead - time.Nanosecond))
		if shown.IsZero() {
			break
		}
		if at := shown.Add(-ahead); change.IsZero() || at.Before(change) {
			return at
		}
		from = change
	}
	return time.Time{}
}

// isHourly reports whether a schedule has every hour.
func isHourly(schedule cron.Schedule) bool {
	const every = 1<<24 - 1
	spec, ok := schedule.(*cron.SpecSchedule)
	return ok && spec.Hour&every == every
}

// seventh is Sunday by the convention of crontabs, as 0 is. The parser knows only 0.
const seventh = 7

// sundays returns the schedule without the number 7 in its days of the week.
func sundays(schedule string) string {
	fields := strings.Fields(schedule)
	if len(fields) != 5 {
		return schedule
	}
	days := strings.Split(fields[4], ",")
	for i, some := range days {
		days[i] = sunday(some)
	}
	fields[4] = strings.Join(days, ",")
	return strings.Join(fields, " ")
}

// sunday rewrites a day of the week, or a range with or without a step, that ends on the seventh
// day. It does not change any other text, which the parser reads or refuses.
func sunday(days string) string {
	interval, step, stepped := strings.Cut(days, "/")
	from, to, isRange := strings.Cut(interval, "-")
	if !isRange {
		to = from
	}
	if weekday(to) != seventh {
		return days
	}
	every := 1
	if stepped {
		every, _ = strconv.Atoi(step) // the parser refuses other texts
	}
	first := weekday(from)
	switch {
	case first < 0 || first > seventh || every < 1:
		return days
	case first == seventh:
		return "0"
	}
	rest := fmt.Sprintf("%d-6/%d", first, every)
	if (seventh-first)%every == 0 {
		rest += ",0"
	}
	return rest
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// weekday returns the number of a day of the week, -1 for a text that names no day.
func weekday(text string) int {
	if day := slices.Index(weekdays, strings.ToLower(text)); day >= 0 {
		return day
	}
	day, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return day
}

package cron

import (
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheDaysOnWhichClocksChange compares the times of a schedule with what the clocks of its zone
// show in each quarter of an hour. Clocks of these zones change at midnight, by half an hour, or as
// people are used to. What they show twice counts once, except in a schedule with every hour.
func TestTheDaysOnWhichClocksChange(t *testing.T) {
	check.Large(t)
	t.Parallel()
	const quarter = 15 * time.Minute
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{
		"Africa/Cairo", "America/Havana", "America/New_York", "America/Santiago", "Asia/Beirut", "Atlantic/Azores", "Australia/Lord_Howe", "Europe/Berlin", "UTC",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(name)
			check.Must(t, err)
			// again reports whether the clocks have shown a time before.
			again := func(at time.Time) bool {
				_, offset := at.In(zone).Zone()
				for back := quarter; back <= 2*time.Hour; back += quarter {
					if _, before := at.Add(-back).In(zone).Zone(); time.Duration(before-offset)*time.Second == back {
						return true
					}
				}
				return false
			}
			shows := func(at time.Time, hour, minute int) bool {
				at = at.In(zone)
				return at.Hour() == hour && at.Minute() == minute && !again(at)
			}
			for schedule, due := range map[string]func(at time.Time) bool{
				"0 9 * * 6":   func(at time.Time) bool { return shows(at, 9, 0) && at.In(zone).Weekday() == time.Saturday },
				"0 9 * * 5":   func(at time.Time) bool { return shows(at, 9, 0) && at.In(zone).Weekday() == time.Friday },
				"0 9 * * 0":   func(at time.Time) bool { return shows(at, 9, 0) && at.In(zone).Weekday() == time.Sunday },
				"0 0 * * *":   func(at time.Time) bool { return shows(at, 0, 0) },
				"15 23 * * *": func(at time.Time) bool { return shows(at, 23, 15) },
				"30 2 * * *":  func(at time.Time) bool { return shows(at, 2, 30) },
				"30 1 * * *":  func(at time.Time) bool { return shows(at, 1, 30) },
				"30 * * * *":  func(at time.Time) bool { return at.In(zone).Minute() == 30 },
				"30 */2 * * *": func(at time.Time) bool {
					return at.In(zone).Hour()%2 == 0 && at.In(zone).Minute() == 30 && !again(at)
				},
			} {
				content := Content{Schedule: schedule, Timezone: name, Enabled: true}
				last := from
				for at := from.Add(quarter); at.Before(from.AddDate(0, 9, 0)); at = at.Add(quarter) {
					if !due(at) {
						continue
					}
					next, err := content.next(last)
					if check.Must(t, err); !next.Equal(at) {
						t.Fatalf("%s: after %v comes %v, want %v", schedule, last.In(zone), next.In(zone), at.In(zone))
					}
					last = at
				}
			}
		})
	}
}

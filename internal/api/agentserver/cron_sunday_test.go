package agentserver_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSundayIsTheSeventhDayOfTheWeekToo reads the days on which schedules fire. By the convention
// of crontabs, Sunday is both 0 and 7.
func TestSundayIsTheSeventhDayOfTheWeekToo(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	cron, _ := c.daily(t, nil)
	days := func(schedule string) (fires string) {
		for i, name := range "0123456" { // the 6th is a Sunday
			at := time.Date(2030, 1, 6+i, 0, 0, 0, 0, time.UTC)
			c.at.Store(&at)
			// A cron that is disabled forgets the due time of another day.
			wantStatus(t, c.call(t, "PATCH", cron, object{"enabled": false}), http.StatusOK)
			next := c.call(t, "PATCH", cron, object{"schedule": schedule, "enabled": true}).string("next_run_date")
			if next == at.Add(9*time.Hour).Format("2006-01-02T15:04:05.000000Z") {
				fires += string(name)
			}
		}
		return fires
	}
	for of, want := range map[string]string{
		"7": "0", "07": "0", "0,7": "0", "0-7": "0123456", "1-7": "0123456", "5-7": "056", "7-7": "0", "mon-7": "0123456", "SAT-7": "06",
		"1,3,7": "013", "2,5-7": "0256", "0-7/2": "0246", "1-7/2": "0135", "1-7/3": "014", "7/2": "0", "*/7": "0", "*/2": "0246", "5/2": "5", "1-7/10": "1",
		"sun": "0", "sun-sat/3": "036",
	} {
		if diff := cmp.Diff(want, days("0 9 * * "+of)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", of, diff)
		}
	}
	for _, wrong := range []string{"8", "0-8", "7-1", "8-7", "-7", "x-7", "7-", "1-7/0", "1-7/x", "7/0", "7/", "1-7-7", "fri-sun", "1 7"} {
		wantStatus(t, c.call(t, "PATCH", cron, object{"schedule": "0 9 * * " + wrong}), http.StatusUnprocessableEntity)
	}
	wantStatus(t, c.call(t, "PATCH", cron, object{"schedule": "0 7 7 7 7"}), http.StatusOK)
}

// TestATimeThatSpringSkipsIsSkipped plans a cron on the day on which the clocks go from two to
// three.
func TestATimeThatSpringSkipsIsSkipped(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	c.set(t, "2030-03-10T05:00:00Z")
	_, made := c.daily(t, object{"schedule": "30 2 * * *", "timezone": "America/New_York"})
	c.wantEnd(t, "on the day", made, nil, "2030-03-11T06:30:00.000000Z")
}

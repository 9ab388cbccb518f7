package agentserver_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantEnd checks the times at which a cron is shown to end and to fire next; nil is never.
func (c timed) wantEnd(t *testing.T, when string, shown response, end, next any) {
	t.Helper()
	wantStatus(t, shown, http.StatusOK)
	if diff := cmp.Diff([]any{end, next}, []any{shown.member("end_time"), shown.member("next_run_date")}); diff != "" {
		t.Errorf("%s: when it ends and fires next (-want +got):\n%s", when, diff)
	}
}

// TestTheEndOfACronIsCleared checks that an explicit null clears the end, and that no other
// value does.
func TestTheEndOfACronIsCleared(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	const end, next = "2030-01-02T00:00:00.000000Z", "2030-01-01T08:00:00.000000Z"
	cron, made := c.daily(t, object{"end_time": "2030-01-02T00:00:00Z"})
	c.wantEnd(t, "as it was made", made, end, next)
	c.wantEnd(t, "when nothing is said", c.call(t, "PATCH", cron, object{"enabled": true}), end, next)
	c.tick(t, "2030-01-01T08:00:00Z")
	c.wantEnd(t, "when it has ended", c.call(t, "GET", cron, nil), end, nil)
	c.wantEnd(t, "when null is said", c.call(t, "PATCH", cron, object{"end_time": nil}), nil, "2030-01-02T08:00:00.000000Z")
	c.wantEnd(t, "after that", c.call(t, "GET", cron, nil), nil, "2030-01-02T08:00:00.000000Z")
	_, endless := c.daily(t, object{"end_time": nil})
	c.wantEnd(t, "when it is made with null", endless, nil, "2030-01-02T08:00:00.000000Z")
}

// TestAnEndWithoutAZoneIsInThatOfTheCron checks that an end without a zone is in the cron's
// time zone, which is UTC by default.
func TestAnEndWithoutAZoneIsInThatOfTheCron(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	const newYork = "America/New_York"
	for name, test := range map[string]struct {
		more object
		want any
	}{
		"no zone at all":       {object{"end_time": "2030-03-01T12:00:00"}, "2030-03-01T12:00:00.000000Z"},
		"that of the cron":     {object{"end_time": "2030-03-01T12:00:00", "timezone": newYork}, "2030-03-01T17:00:00.000000Z"},
		"in summer":            {object{"end_time": "2030-07-01T12:00:00.25", "timezone": newYork}, "2030-07-01T16:00:00.250000Z"},
		"one of its own":       {object{"end_time": "2030-03-01T12:00:00+02:00", "timezone": newYork}, "2030-03-01T10:00:00.000000Z"},
		"the last microsecond": {object{"end_time": "9999-12-31T23:59:59.999999"}, "9999-12-31T23:59:59.999999Z"},
	} {
		if _, made := c.daily(t, test.more); made.member("end_time") != test.want {
			t.Errorf("%s: it ends at %v, want %v", name, made.member("end_time"), test.want)
		}
	}
	cron, _ := c.daily(t, object{"timezone": newYork})
	for _, test := range []struct {
		change object
		want   any
	}{
		{object{"end_time": "2030-03-01T12:00:00"}, "2030-03-01T17:00:00.000000Z"},
		{object{"timezone": "Asia/Tokyo"}, "2030-03-01T17:00:00.000000Z"}, // the end is a moment
		{object{"end_time": "2030-03-01T12:00:00"}, "2030-03-01T03:00:00.000000Z"},
		{object{"end_time": "2030-03-01T12:00:00", "timezone": "UTC"}, "2030-03-01T12:00:00.000000Z"},
	} {
		patched := c.call(t, "PATCH", cron, test.change)
		if wantStatus(t, patched, http.StatusOK); patched.member("end_time") != test.want {
			t.Errorf("after %v it ends at %v, want %v", test.change, patched.member("end_time"), test.want)
		}
	}
	for _, end := range []any{"tomorrow", "", "2030-03-01", "2030-02-30T12:00:00", "2030-03-01T12:00:00 UTC", "9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00", 7, false} {
		for at, refused := range map[string]response{
			"POST": c.call(t, "POST", "/runs/crons", with(yearly(), "end_time", end)), "PATCH": c.call(t, "PATCH", cron, object{"end_time": end}),
		} {
			wantStatus(t, refused, http.StatusUnprocessableEntity)
			if loc, _ := refused.member("detail").([]any)[0].(map[string]any)["loc"].([]any); len(loc) != 2 || loc[1] != "end_time" {
				t.Errorf("%s of %v: got %s", at, end, refused.text)
			}
		}
	}
	for _, change := range []object{{"timezone": "Mars/Base", "end_time": "2030-03-01T12:00:00"}} {
		refused := c.call(t, "PATCH", cron, change)
		wantStatus(t, refused, http.StatusUnprocessableEntity)
		if loc, _ := refused.member("detail").([]any)[0].(map[string]any)["loc"].([]any); len(loc) != 2 || loc[1] != "timezone" {
			t.Errorf("%v: got %s", change, refused.text)
		}
	}
}

// TestACronThatWouldNeverFireIsRefused checks schedules without a time, and new crons that would
// end before their first time. A change may end a cron.
func TestACronThatWouldNeverFireIsRefused(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	wantRefused := func(refused response, member string) {
		t.Helper()
		wantStatus(t, refused, http.StatusUnprocessableEntity)
		if loc, _ := refused.member("detail").([]any)[0].(map[string]any)["loc"].([]any); len(loc) != 2 || loc[1] != member {
			t.Errorf("got %s, want a problem of %s", refused.text, member)
		}
	}
	daily := with(yearly(), "schedule", "0 8 * * *")
	for _, schedule := range []string{"0 0 30 2 *", "0 0 31 4,6 *"} {
		wantRefused(c.call(t, "POST", "/runs/crons", with(daily, "schedule", schedule)), "schedule")
	}
	for _, end := range []string{"2029-12-31T08:00:00Z", "0001-01-02T00:00:00Z", "2030-01-01T07:59:59Z"} {
		wantRefused(c.call(t, "POST", "/runs/crons", with(daily, "end_time", end)), "end_time")
	}
	leap, made := c.daily(t, object{"schedule": "0 0 29 2 *", "end_time": "2032-02-29T00:00:00Z"})
	c.wantEnd(t, "on a leap day", made, "2032-02-29T00:00:00.000000Z", "2032-02-29T00:00:00.000000Z")
	wantRefused(c.call(t, "PATCH", leap, object{"schedule": "0 0 30 2 *"}), "schedule")
	c.patch(t, leap, object{"end_time": "2029-01-01T00:00:00Z"}, nil)
	_, off := c.daily(t, object{"end_time": "2029-01-01T00:00:00Z", "enabled": false})
	c.wantEnd(t, "when it is not enabled", off, "2029-01-01T00:00:00.000000Z", nil)
}

package clock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
)

func TestATimeIsTheSameAfterItWasStored(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", -5*3600)
	for _, at := range []time.Time{
		clock.System(), clock.Cut(time.Date(2026, 3, 1, 12, 0, 0, 999999999, zone)), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Unix(0, 0).UTC(),
	} {
		if got, err := clock.Parse(clock.Format(at)); err != nil || got != at {
			t.Errorf("%v came back as %v (%v)", at, got, err)
		}
	}
}

func TestTimesAreShownInUTCWithSixDigits(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*3600)
	for at, want := range map[time.Time]string{
		time.Date(2026, 3, 1, 1, 2, 3, 4000, zone):      "2026-02-28T23:02:03.000004Z",
		time.Date(2026, 3, 1, 1, 2, 3, 0, time.UTC):     "2026-03-01T01:02:03.000000Z",
		time.Date(2026, 3, 1, 1, 2, 3, 1999, time.UTC):  "2026-03-01T01:02:03.000001Z",
		time.Date(999, 12, 31, 0, 0, 0, 0, time.UTC):    "0999-12-31T00:00:00.000000Z",
		time.Date(2026, 3, 1, 0, 0, 0, 1e9-1, time.UTC): "2026-03-01T00:00:00.999999Z",
	} {
		if got := clock.Format(at); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestStoredTimesSortAsText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var texts []string
	for _, step := range []time.Duration{time.Microsecond, 9 * time.Microsecond, time.Millisecond, time.Second, time.Minute, 24 * time.Hour, 10000 * time.Hour} {
		texts = append(texts, clock.Format(at))
		at = at.Add(step)
	}
	if !slices.IsSorted(texts) {
		t.Errorf("got %v", texts)
	}
}

func TestParseRefusesOtherTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "now", "2026-03-01", "2026-03-01T12:00:00", "2026-03-01 12:00:00.000000Z"} {
		if at, err := clock.Parse(text); err == nil {
			t.Errorf("%q was read as %v", text, at)
		}
	}
}

func TestATimeMayBeMissing(t *testing.T) {
	t.Parallel()
	if text, shown := clock.FormatOptional(time.Time{}), clock.Nullable(time.Time{}); text != "" || shown != nil {
		t.Errorf("no time is %q and %v", text, shown)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if text, shown := clock.FormatOptional(at), clock.Nullable(at); text != clock.Format(at) || shown == nil || *shown != text {
		t.Errorf("%v is %q and %v", at, text, shown)
	}
}

package id_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-run/slipway/internal/base/id"
)

func TestNewSortsByMicrosecond(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 12, 0, 0, 998_000, time.UTC)
	last := ""
	for i := range 5000 {
		next := id.New(start.Add(time.Duration(i) * time.Microsecond))
		if next <= last {
			t.Fatalf("id %d: %s does not sort after %s", i, next, last)
		}
		last = next
	}
}

func TestNewIsVersion7(t *testing.T) {
	t.Parallel()
	u := uuid.MustParse(id.New(time.Now()))
	if u.Version() != 7 || u.Variant() != uuid.RFC4122 {
		t.Errorf("got version %d, variant %s", u.Version(), u.Variant())
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		id.New(time.Now()):                       true,
		"6ba7b821-9dad-11d1-80b4-00c04fd430c8":   true,
		"":                                       false,
		"not-a-uuid":                             false,
		"{6ba7b821-9dad-11d1-80b4-00c04fd430c8}": false,
		"6ba7b8219dad11d180b400c04fd430c8":       false,
	} {
		if got := id.Valid(text); got != want {
			t.Errorf("Valid(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestTimeReadsBackTheMicrosecond(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i := range 3000 {
		want := start.Add(time.Duration(i) * time.Microsecond)
		if got := id.Time(id.New(want)); !got.Equal(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestFirstSortsWithTheIdsOfItsTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i := range 3000 {
		at := start.Add(time.Duration(i) * time.Microsecond)
		if first := id.First(at); id.New(at.Add(-time.Microsecond)) >= first || id.New(at) < first {
			t.Fatalf("%s: got %s", at, first)
		}
	}
	if id.First(time.Time{}) != "" || id.First(time.Unix(-1, 0)) >= id.New(time.Unix(0, 0)) {
		t.Error("before all ids")
	}
}

func TestAfterMakesIdsThatFollowAnId(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, before := range []string{id.New(now.Add(-time.Hour)), id.New(now), id.New(now.Add(time.Hour)), ""} {
		if at := id.After(before, now); at.Before(now) || id.New(at) <= before {
			t.Errorf("after %s: got %s", before, at)
		}
	}
	if at := id.After("", now); !at.Equal(now) {
		t.Errorf("without an id: got %s", at)
	}
}

func TestOfStandsForItsWords(t *testing.T) {
	t.Parallel()
	one := id.Of("a", "b")
	if u, err := uuid.Parse(one); err != nil || u.Version() != 8 || u.Variant() != uuid.RFC4122 || !id.Valid(one) || one != id.Of("a", "b") {
		t.Errorf("got %s (%v)", one, err)
	}
	for _, other := range []string{id.Of("ab"), id.Of("b", "a"), id.Of("a", "b", ""), id.Of()} {
		if other == one {
			t.Errorf("%s stands for other words too", one)
		}
	}
}

package audit_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func setUp(t *testing.T) (*audit.Store, *sqlite.Table, *fixtures.Clock) {
	t.Helper()
	clock := fixtures.NewClockAt(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0)
	tb := fixtures.Table(t, sqlite.WithClock(clock.Now))
	return audit.NewStore(tb, clock.Now), tb, clock
}

func list(t *testing.T, s *audit.Store, workspace string, page record.Window) (resources []string, next string) {
	t.Helper()
	entries, next, err := s.List(t.Context(), workspace, audit.Filter{}, page)
	check.Must(t, err)
	for _, e := range entries {
		resources = append(resources, e.Resource)
	}
	return resources, next
}

// TestAttackRefusalsBuryNothing has one caller refused the same thing thousands of times, and
// other callers beside it.
func TestAttackRefusalsBuryNothing(t *testing.T) {
	t.Parallel()
	s, _, clock := setUp(t)
	refuse := func(workspace, key, resource string) {
		t.Helper()
		clock.Pass(time.Microsecond)
		e := audit.Refusal(audit.By(t.Context(), audit.Actor{Key: key}), resource, "DELETE")
		check.Must(t, s.AddRefusal(t.Context(), workspace, e))
	}
	want := func(workspace string, n int) []audit.Entry {
		t.Helper()
		entries, _, err := s.List(t.Context(), workspace, audit.Filter{}, record.Window{Limit: 100})
		if err != nil || len(entries) != n {
			t.Fatalf("workspace %s has %d entries (%v), want %d", workspace, len(entries), err, n)
		}
		return entries
	}
	for range 5000 {
		refuse("one", "k", "d")
	}
	want("one", 1)
	refuse("one", "other", "d")
	refuse("two", "k", "d")
	want("two", 1)
	for i := range 5000 {
		refuse("one", "k", strconv.Itoa(i)) // each names another resource
	}
	want("one", 30)
	clock.Pass(time.Minute)
	refuse("one", "k", "d")
	if newest := want("one", 31)[0]; newest.Detail != "DELETE (before it, 4972 refusals were not noted)" {
		t.Errorf("the newest entry says %q", newest.Detail)
	}
}

// TestPages reads a log while it grows: no entry comes twice, and none is left out.
func TestPages(t *testing.T) {
	t.Parallel()
	s, _, clock := setUp(t)
	add := func(workspace, resource string) {
		t.Helper()
		clock.Pass(time.Millisecond)
		check.Must(t, s.Add(t.Context(), workspace, audit.New(t.Context(), audit.CreateKey, resource, "")))
	}
	for _, resource := range []string{"1", "2", "3", "4", "5"} {
		add("one", resource)
		add("two", "other")
	}
	first, next := list(t, s, "one", record.Window{Limit: 2})
	add("one", "6")
	second, next := list(t, s, "one", record.Window{Limit: 2, Cursor: next})
	third, end := list(t, s, "one", record.Window{Limit: 2, Cursor: next})
	if diff := cmp.Diff([][]string{{"5", "4"}, {"3", "2"}, {"1"}}, [][]string{first, second, third}); diff != "" || end != "" {
		t.Errorf("next %q, (-want +got):\n%s", end, diff)
	}
	if _, _, err := s.List(t.Context(), "two", audit.Filter{}, record.Window{Limit: 2, Cursor: next}); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("a cursor of another workspace: got %v", err)
	}
	if entries, _ := list(t, s, "three", record.Window{}); len(entries) > 0 {
		t.Errorf("got %v", entries)
	}
}

// TestFilters filters by each member of an entry, and reads on where a page had too few
// entries.
func TestFilters(t *testing.T) {
	t.Parallel()
	s, _, clock := setUp(t)
	start := clock.Now()
	for i := range 30 {
		clock.Pass(time.Second)
		e := audit.New(audit.By(t.Context(), audit.Actor{Key: "k" + strconv.Itoa(i%2), Subject: "s" + strconv.Itoa(i%3)}), audit.CreateKey, strconv.Itoa(i), "")
		if i%10 == 0 {
			e.Action, e.Outcome = audit.RevokeKey, audit.Refused
		}
		check.Must(t, s.Add(t.Context(), "w", e))
	}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for name, c := range map[string]struct {
		filter audit.Filter
		want   string
	}{
		"action":            {audit.Filter{Action: audit.RevokeKey}, "20 10 0"},
		"outcome":           {audit.Filter{Outcome: audit.Refused}, "20 10 0"},
		"resource":          {audit.Filter{Resource: "17"}, "17"},
		"key and subject":   {audit.Filter{Key: "k1", Subject: "s0"}, "27 21 15 9 3"},
		"since":             {audit.Filter{Since: at(28)}, "29 28 27"},
		"until":             {audit.Filter{Until: at(3)}, "1 0"},
		"between":           {audit.Filter{Since: at(2), Until: at(4), Action: audit.CreateKey}, "2 1"},
		"before everything": {audit.Filter{Until: time.Unix(-1, 0)}, ""},
		"after everything":  {audit.Filter{Since: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, ""},
		"since long ago":    {audit.Filter{Since: time.Unix(-1, 0), Resource: "3"}, "3"},
		"nothing":           {audit.Filter{Action: "x"}, ""},
	} {
		var got []string
		for cursor := ""; ; {
			entries, next, err := s.List(t.Context(), "w", c.filter, record.Window{Limit: 2, Cursor: cursor})
			if err != nil || len(entries) > 2 {
				t.Fatalf("%s: %d entries (%v)", name, len(entries), err)
			}
			for _, e := range entries {
				got = append(got, e.Resource)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
	for _, bad := range []audit.Filter{{Since: at(1), Until: at(1)}, {Since: at(2), Until: at(1)}} {
		if _, _, err := s.List(t.Context(), "w", bad, record.Window{}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}

func TestAnEntrySaysWho(t *testing.T) {
	t.Parallel()
	s, _, clock := setUp(t)
	actor := audit.Actor{Key: "k", Subject: "s", Request: "r"}
	e := audit.New(audit.By(t.Context(), actor), audit.UpdateDeployment, "d", "words")
	e.Outcome = audit.Refused
	check.Must(t, s.Add(t.Context(), "w", e))
	got, _, err := s.List(t.Context(), "w", audit.Filter{}, record.Window{})
	if err != nil || len(got) != 1 || got[0].ID == "" {
		t.Fatalf("got %v (%v)", got, err)
	}
	got[0].ID = ""
	want := audit.Entry{Actor: actor, Action: audit.UpdateDeployment, Resource: "d", Outcome: audit.Refused, Detail: "words", At: clock.Now()}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnEntryStandsOrFallsWithItsTransaction writes an entry beside a change whose condition
// fails.
func TestAnEntryStandsOrFallsWithItsTransaction(t *testing.T) {
	t.Parallel()
	s, tb, clock := setUp(t)
	entry := audit.New(t.Context(), audit.DeleteDeployment, "d", "")
	if err := tb.Transact(t.Context(), table.Check{Key: keys.Workspace("w"), If: table.Present()}, entry.Write("w", clock.Now())); err == nil {
		t.Fatal("the condition held")
	}
	if entries, _ := list(t, s, "w", record.Window{}); len(entries) > 0 {
		t.Errorf("got %v", entries)
	}
}

func TestEntriesAreKeptForMoreThanAYear(t *testing.T) {
	t.Parallel()
	s, _, clock := setUp(t)
	check.Must(t, s.Add(t.Context(), "w", audit.New(t.Context(), audit.CreateKey, "k", "")))
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{366 * 24 * time.Hour, 1}, {35 * 24 * time.Hour, 0}} {
		clock.Pass(c.after)
		if entries, _ := list(t, s, "w", record.Window{}); len(entries) != c.want {
			t.Errorf("at %s there are %v", clock.Now(), entries)
		}
	}
}

func TestAnotherKindOfItemIsNoEntry(t *testing.T) {
	t.Parallel()
	s, tb, _ := setUp(t)
	item := table.Item{Key: keys.AuditEntry("w", "e"), Attrs: table.Attrs{"kind": "thread", "schema": int64(1)}, Body: []byte(`{}`)}
	check.Must(t, tb.Transact(t.Context(), table.Put{Item: item}))
	if entries, _, err := s.List(t.Context(), "w", audit.Filter{}, record.Window{}); err == nil {
		t.Errorf("got %v", entries)
	}
}

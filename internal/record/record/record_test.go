package record_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

var (
	key   = table.Key{PK: "p", SK: "s"}
	made  = time.Date(2026, 3, 1, 12, 0, 0, 1000, time.UTC)
	later = time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("", 3600))
)

// stored returns the item after the writes.
func stored(t *testing.T, writes ...table.Write) *table.Item {
	t.Helper()
	tb := fixtures.Table(t)
	for _, write := range writes {
		if err := tb.Transact(t.Context(), write); err != nil {
			t.Fatal(err)
		}
	}
	item, err := tb.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func put(own table.Attrs) table.Write {
	return table.Put{Item: table.Item{Key: key, Attrs: record.Attrs("thing", made, own), Body: record.Encode(map[string]int{"a": 1})}}
}

func TestANewItemHasTheEnvelope(t *testing.T) {
	t.Parallel()
	want := table.Attrs{
		"kind": "thing", "schema": int64(1), "version": int64(1), "color": "red",
		"created": "2026-03-01T12:00:00.000001Z", "updated": "2026-03-01T12:00:00.000001Z",
	}
	if diff := cmp.Diff(want, stored(t, put(table.Attrs{"color": "red"})).Attrs); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestAChangeCountsTheVersionAndNotesTheTime(t *testing.T) {
	t.Parallel()
	item := stored(t, put(nil), record.Change(key, later, nil, table.Equals(record.Version, int64(1))),
		record.Change(key, later, table.Attrs{"color": "blue"}, table.Equals(record.Version, int64(2))))
	want := table.Attrs{
		"kind": "thing", "schema": int64(1), "version": int64(3), "color": "blue",
		"created": "2026-03-01T12:00:00.000001Z", "updated": "2026-03-01T12:00:00.000000Z",
	}
	if diff := cmp.Diff(want, item.Attrs); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	created, updated, err := record.Times(item)
	if err != nil || !created.Equal(made) || !updated.Equal(later) {
		t.Errorf("got times %v and %v (%v), want %v and %v", created, updated, err, made, later)
	}
}

func TestCheckKnowsItsKindAndSchema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attrs table.Attrs
		good  bool
	}{
		"the kind and schema": {table.Attrs{"kind": "thing", "schema": record.Schema}, true},
		"another kind":        {table.Attrs{"kind": "other", "schema": record.Schema}, false},
		"no kind":             {table.Attrs{"schema": record.Schema}, false},
		"a newer schema":      {table.Attrs{"kind": "thing", "schema": record.Schema + 1}, false},
		"no schema":           {table.Attrs{"kind": "thing"}, false},
	} {
		if err := record.Check(&table.Item{Key: key, Attrs: c.attrs}, "thing"); (err == nil) != c.good {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTimesThatAreNoneAreAnError(t *testing.T) {
	t.Parallel()
	good := "2026-03-01T12:00:00.000000Z"
	for _, attrs := range []table.Attrs{{}, {"created": good}, {"updated": good}, {"created": good, "updated": "2026-03-01"}} {
		if created, updated, err := record.Times(&table.Item{Key: key, Attrs: attrs}); err == nil {
			t.Errorf("%v: got %v and %v, want an error", attrs, created, updated)
		}
	}
}

func TestABodyIsReadBack(t *testing.T) {
	t.Parallel()
	var got map[string]int
	if err := record.Decode(stored(t, put(nil)), &got); err != nil || got["a"] != 1 {
		t.Errorf("got %v (%v)", got, err)
	}
	if err := record.Decode(&table.Item{Key: key, Body: []byte("{")}, &got); err == nil {
		t.Error("a torn body has no error")
	}
}

func TestEncodePanicsOnWhatHasNoJSON(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it encoded a channel")
		}
	}()
	record.Encode(make(chan int))
}

func TestATimeMayBeMissing(t *testing.T) {
	t.Parallel()
	item := &table.Item{Key: key, Attrs: table.Attrs{"none": "", "at": clock.Format(made), "torn": "yesterday"}}
	for name, want := range map[string]time.Time{"none": {}, "absent": {}, "at": made} {
		if got, err := record.Time(item, name); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	if _, err := record.Time(item, "torn"); err == nil {
		t.Error("a torn time has no error")
	}
}

func TestObjectsAreMergedOnTheFirstLevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ below, above, want string }{
		{"", "", ""}, {`{"a":1}`, "", `{"a":1}`}, {"{}", `{"a":1}`, `{"a":1}`}, {`{"a":1}`, "null", `{"a":1}`},
		{`{"a":1,"b":{"x":1}}`, `{"b":{"y":2},"c":null}`, `{"a":1,"b":{"y":2},"c":null}`},
	} {
		if got, err := record.Merge([]byte(c.below), []byte(c.above)); err != nil || string(got) != c.want {
			t.Errorf("%s over %s: got %s, %v, want %s", c.above, c.below, got, err, c.want)
		}
	}
	if _, err := record.Merge([]byte(`{"a":1}`), []byte("[1]")); err == nil {
		t.Error("a list was merged")
	}
}

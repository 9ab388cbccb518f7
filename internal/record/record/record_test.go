package record_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
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
		check.Must(t, tb.Transact(t.Context(), write))
	}
	item, err := tb.Get(t.Context(), key)
	check.Must(t, err)
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
	r := record.Read(item, "thing")
	created, updated := r.Created(), r.Updated()
	if err := r.Err(); err != nil || !created.Equal(made) || !updated.Equal(later) {
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

func TestEncodePanicsOnWhatHasNoJSON(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it encoded a channel")
		}
	}()
	record.Encode(make(chan int))
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

package record_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

func TestAReaderKeepsTheFirstError(t *testing.T) {
	t.Parallel()
	r := record.Reader{Item: &table.Item{Key: key, Body: []byte("{"), Attrs: table.Attrs{"torn": "yesterday"}}}
	r.Time("torn")
	first := r.Err()
	if r.Decode(new(any)); first == nil || r.Err() != first {
		t.Errorf("got %v after %v", r.Err(), first)
	}
}

func TestAnItemOfAnotherKindIsAnError(t *testing.T) {
	t.Parallel()
	r := record.Read(stored(t, put(nil)), "other")
	r.Decode(new(any))
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "other") {
		t.Errorf("got %v", err)
	}
}

func TestEveryItemHasItsTimes(t *testing.T) {
	t.Parallel()
	good := clock.Format(made)
	for _, attrs := range []table.Attrs{{}, {"created": good}, {"updated": good}, {"created": good, "updated": "2026-03-01"}} {
		r := record.Reader{Item: &table.Item{Key: key, Attrs: attrs}}
		if created, updated := r.Created(), r.Updated(); r.Err() == nil {
			t.Errorf("%v: got %v and %v, want an error", attrs, created, updated)
		}
	}
}

func TestAnAttributeMayBeAbsent(t *testing.T) {
	t.Parallel()
	text := ""
	r := record.Reader{Item: &table.Item{Key: key, Attrs: table.Attrs{
		"empty": "", "at": clock.Format(made), "text": `"words"`, "number": int64(7),
	}}}
	for name, want := range map[string]time.Time{"empty": {}, "absent": {}, "at": made} {
		if got := r.Time(name); !got.Equal(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]string{"empty": "", "absent": "", "text": "words"} {
		text = ""
		if r.JSON(name, &text); text != want {
			t.Errorf("%s: got %q, want %q", name, text, want)
		}
	}
	if got := []int64{r.IntOr("number", -1), r.IntOr("absent", -1)}; got[0] != 7 || got[1] != -1 {
		t.Errorf("got the numbers %v", got)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

func TestTornTextIsAnError(t *testing.T) {
	t.Parallel()
	torn := &table.Item{Key: key, Body: []byte("{"), Attrs: table.Attrs{"text": "{", "at": "yesterday"}}
	for name, decode := range map[string]func(*record.Reader){
		"a body":    func(r *record.Reader) { r.Decode(new(any)) },
		"a text":    func(r *record.Reader) { r.JSON("text", new(any)) },
		"a time":    func(r *record.Reader) { r.Time("at") },
		"its times": func(r *record.Reader) { r.Created() },
	} {
		r := record.Reader{Item: torn}
		if decode(&r); r.Err() == nil || !strings.Contains(r.Err().Error(), key.SK) {
			t.Errorf("%s: got %v, want an error that names the item", name, r.Err())
		}
	}
}

func TestABodyIsReadBack(t *testing.T) {
	t.Parallel()
	var got map[string]int
	r := record.Read(stored(t, put(nil)), "thing")
	if r.Decode(&got); r.Err() != nil || got["a"] != 1 {
		t.Errorf("got %v (%v)", got, r.Err())
	}
}

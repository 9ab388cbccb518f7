package dynamo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestKeysThatWereLeftOutAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := key("p", "a"), key("p", "b")
		w := newWire(t,
			batch([]table.Key{a, b}),
			batch([]table.Key{b}, item(a, map[string]int{"n": 1})),
			batch([]table.Key{b}),
			batch(nil, item(b, map[string]int{"n": 2})),
		)
		got, err := w.open().GetBatch(t.Context(), a, b, a)
		check.Must(t, err)
		first := &table.Item{Key: a, Attrs: table.Attrs{"n": int64(1)}}
		wantEqual(t, got, []*table.Item{first, {Key: b, Attrs: table.Attrs{"n": int64(2)}}, first})
		for i, want := range []int{2, 2, 1, 1} {
			if got := strings.Count(string(w.sent()[i].body), `"pk"`); got != want {
				t.Errorf("request %d: got %d keys, want %d", i, got, want)
			}
		}
	})
}

func TestKeysThatAreLeftOutForeverAreABusyStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, batch([]table.Key{key("p", "a")}))
		start := time.Now()
		_, err := w.open().GetBatch(t.Context(), key("p", "a"))
		wantBusy(t, err)
		if took := time.Since(start); took < 30*time.Second || took > time.Minute {
			t.Errorf("got an answer after %v, want it after half a minute", took)
		}
	})
}

// TestBatchIsReadInItsOrder, so that the same read is the same request each time.
func TestBatchIsReadInItsOrder(t *testing.T) {
	t.Parallel()
	w := newWire(t, batch(nil))
	var asked []table.Key
	want := strings.Split("g c e a f b d", " ")
	for _, sk := range want {
		asked = append(asked, key("p", sk))
	}
	_, err := w.open().GetBatch(t.Context(), append(asked, asked...)...)
	check.Must(t, err)
	var sent struct {
		RequestItems map[string]struct {
			Keys []struct{ SK struct{ S string } }
		}
	}
	check.Must(t, json.Unmarshal(w.sent()[0].body, &sent))
	var got []string
	for _, k := range sent.RequestItems["slipway"].Keys {
		got = append(got, k.SK.S)
	}
	wantEqual(t, got, want)
}

// batch is BatchGetItem's answer. left are the keys that it left out.
func batch(left []table.Key, items ...string) answer {
	unprocessed := "{}"
	if len(left) > 0 {
		var keys []string
		for _, k := range left {
			keys = append(keys, fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, k.PK, k.SK))
		}
		unprocessed = fmt.Sprintf(`{"slipway":{"ConsistentRead":true,"Keys":[%s]}}`, strings.Join(keys, ","))
	}
	return reply(http.StatusOK, fmt.Sprintf(`{"Responses":{"slipway":[%s]},"UnprocessedKeys":%s}`, strings.Join(items, ","), unprocessed))
}

// TestPageIsFilledFromSeveral: DynamoDB's pages are shorter than the requested page, and hold
// expired items.
func TestPageIsFilledFromSeveral(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	live := func(sk string) string { return item(key("p", sk), nil, expiring(now.Unix()+1)) }
	dead := func(sk string) string { return item(key("p", sk), nil, expiring(now.Unix())) }
	w := newWire(t, found("b", live("a"), dead("b")), found("c"), found("e", dead("d"), live("e")), found("f", live("f")))
	page, err := w.open(dynamo.WithClock(func() time.Time { return now })).Query(t.Context(), table.Query{PK: "p", Limit: 2})
	check.Must(t, err)
	var got []string
	for _, item := range page.Items {
		got = append(got, item.Key.SK)
	}
	wantEqual(t, got, []string{"a", "e"})
	if page.Cursor == "" {
		t.Error("got no cursor, want one, as there is another item")
	}
	for i, want := range []string{`"Limit":3`, `"Limit":2`, `"Limit":2`, `"Limit":1`} {
		if body := string(w.sent()[i].body); !strings.Contains(body, want) || !strings.Contains(body, `"ConsistentRead":true`) {
			t.Errorf("request %d: got %s, want it consistent and with %s", i, body, want)
		}
	}
}

// TestNothingIsReadBehindAFullPage: the bodies of DynamoDB's first page fill the page, and the
// page still says exactly whether there is another item.
func TestNothingIsReadBehindAFullPage(t *testing.T) {
	t.Parallel()
	large := func(sk string) string { return item(key("p", sk), nil, inline("12345")) }
	query := table.Query{PK: "p", Limit: 100, Bytes: 8}
	for name, c := range map[string]struct {
		answers []answer
		cursor  bool
	}{
		"another item in the page of DynamoDB": {[]answer{found("c", large("a"), large("b"), large("c"))}, true},
		"another item in the next page":        {[]answer{found("b", large("a"), large("b")), found("c", large("c"))}, true},
		"no other item":                        {[]answer{found("b", large("a"), large("b")), found("")}, false},
	} {
		w := newWire(t, c.answers...)
		page, err := w.open().Query(t.Context(), query)
		check.Must(t, err)
		if len(page.Items) != 2 || (page.Cursor != "") != c.cursor || len(w.sent()) != len(c.answers) {
			t.Errorf("%s: got %d items and the cursor %q in %d requests", name, len(page.Items), page.Cursor, len(w.sent()))
		}
	}
}

func TestLastPageHasNoCursor(t *testing.T) {
	t.Parallel()
	w := newWire(t, found("a", item(key("p", "a"), nil)), found(""))
	page, err := w.open().Query(t.Context(), table.Query{PK: "p", Limit: 1})
	if err != nil || len(page.Items) != 1 || page.Cursor != "" {
		t.Errorf("got %d items, cursor %q and error %v, want one item only", len(page.Items), page.Cursor, err)
	}
}

// TestPageGoesOnBehindVanishedItems: an item that is gone together with its body must not
// leave a hole in the page.
func TestPageGoesOnBehindVanishedItems(t *testing.T) {
	t.Parallel()
	w := newWire(t,
		found("", item(key("p", "a"), nil, chunked("GONE", 1)), item(key("p", "b"), nil, inline("x"))),
		batch(nil), reply(http.StatusOK, `{}`),
		found("", item(key("p", "b"), nil, inline("x"))),
	)
	page, err := w.open().Query(t.Context(), table.Query{PK: "p", Limit: 1})
	check.Must(t, err)
	wantEqual(t, page, table.Page{Items: []*table.Item{{Key: key("p", "b"), Body: []byte("x")}}})
	w.wantOperations("Query", "BatchGetItem", "GetItem", "Query")
}

// found is Query's answer. last is where it ended, "" at the end of the partition.
func found(last string, items ...string) answer {
	end := ""
	if last != "" {
		end = fmt.Sprintf(`,"LastEvaluatedKey":{"pk":{"S":"p"},"sk":{"S":%q}}`, last)
	}
	return reply(http.StatusOK, fmt.Sprintf(`{"Items":[%s]%s}`, strings.Join(items, ","), end))
}

// TestReplacedBodyIsFollowed: the body was replaced between the reading of a head and of its
// chunks.
func TestReplacedBodyIsFollowed(t *testing.T) {
	t.Parallel()
	a := key("p", "a")
	w := newWire(t,
		reply(http.StatusOK, `{"Item":`+item(a, nil, chunked("OLD", 1))+`}`), batch(nil),
		reply(http.StatusOK, `{"Item":`+item(a, nil, chunked("NEW", 2))+`}`),
		batch(nil, chunk("p#BODY#NEW#1", "world"), chunk("p#BODY#NEW#0", "hello ")),
	)
	got, err := w.open().Get(t.Context(), a)
	check.Must(t, err)
	wantEqual(t, got, &table.Item{Key: a, Body: []byte("hello world")})
}

func TestBodyThatIsLostIsAnError(t *testing.T) {
	t.Parallel()
	head := reply(http.StatusOK, `{"Item":`+item(key("p", "a"), nil, chunked("LOST", 1))+`}`)
	w := newWire(t, head, batch(nil), head)
	if _, err := w.open().Get(t.Context(), key("p", "a")); err == nil || errors.Is(err, table.ErrNotFound) {
		t.Errorf("got error %v, want one that says what is missing", err)
	}
}

func chunk(pk, body string) string {
	return fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":"CHUNK"},%s}`, pk, inline(body))
}

func TestDamagedItemIsAnError(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]string{
		"no attributes":     `{"pk":{"S":"p"},"sk":{"S":"a"}}`,
		"fraction":          `{"pk":{"S":"p"},"sk":{"S":"a"},"attrs":{"M":{"n":{"N":"1.5"}}}}`,
		"other type":        `{"pk":{"S":"p"},"sk":{"S":"a"},"attrs":{"M":{"n":{"L":[]}}}}`,
		"expires is no int": `{"pk":{"S":"p"},"sk":{"S":"a"},"attrs":{"M":{}},"expires":{"N":"0.5"}}`,
		"chunks is no int":  `{"pk":{"S":"p"},"sk":{"S":"a"},"attrs":{"M":{}},"body_id":{"S":"X"},"body_chunks":{"N":"0.5"}}`,
	} {
		if !json.Valid([]byte(stored)) {
			t.Fatalf("%s: not JSON", name)
		}
		w := newWire(t, reply(http.StatusOK, `{"Item":`+stored+`}`))
		if got, err := w.open().Get(t.Context(), key("p", "a")); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}

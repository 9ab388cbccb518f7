package dynamo_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
)

var (
	none     = because("None")
	conflict = because("TransactionConflict")
	standing = failedOn(item(key("p", "a"), map[string]int{"n": 7}))
)

func TestFirstFailedWriteIsNamed(t *testing.T) {
	t.Parallel()
	w := newWire(t, cancel(none, standing, failedOn(`{}`)))
	err := w.open().Transact(t.Context(),
		table.Put{Item: table.Item{Key: key("p", "fresh")}},
		table.Put{Item: table.Item{Key: key("p", "a")}, If: table.Absent()},
		table.Check{Key: key("p", "none"), If: table.Present()},
	)
	wantFailed(t, err, &table.ConditionFailed{Write: 1, Item: &table.Item{Key: key("p", "a"), Attrs: table.Attrs{"n": int64(7)}}})
}

// TestConflictBeforeAFailedConditionDecides: the conflicting write could be the first write
// whose condition fails.
func TestConflictBeforeAFailedConditionDecides(t *testing.T) {
	t.Parallel()
	fresh := table.Put{Item: table.Item{Key: key("p", "b")}, If: table.Absent()}
	stood := table.Put{Item: table.Item{Key: key("p", "a")}, If: table.Absent()}
	t.Run("conflict first", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t, cancel(conflict, standing), cancel(none, standing))
			wantFailedWrite(t, w.open().Transact(t.Context(), fresh, stood), 1)
		})
	})
	t.Run("condition first", func(t *testing.T) {
		t.Parallel()
		w := newWire(t, cancel(standing, conflict))
		wantFailedWrite(t, w.open().Transact(t.Context(), stood, fresh), 0)
	})
}

func TestExpiredItemIsNotHandedBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := newWire(t, cancel(failedOn(item(key("p", "a"), nil, expiring(now.Unix())))))
	tb := w.open(dynamo.WithClock(func() time.Time { return now }))
	wantFailed(t, tb.Transact(t.Context(), increment), &table.ConditionFailed{})
}

// TestReplacedLargeBodyTakesASecondRound: the first round does not expect a large body, the
// second round leaves a claim on it.
func TestReplacedLargeBodyTakesASecondRound(t *testing.T) {
	t.Parallel()
	w := newWire(t, cancel(failedOn(item(key("p", "a"), nil, chunked("OLD", 2)))), done)
	check.Must(t, w.open().Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a")}}))
	w.wantOperations("TransactWriteItems", "TransactWriteItems", "BatchWriteItem", "BatchWriteItem")
	sent := w.sent()
	if first, second := sent[0].decode(t)["ClientRequestToken"], sent[1].decode(t)["ClientRequestToken"]; first == second {
		t.Errorf("got token %v twice, want another for another request", first)
	}
	if claim := string(sent[1].body); !strings.Contains(claim, "BODY-CLAIMS#") || !strings.Contains(claim, `"OLD"`) {
		t.Errorf("got %s, want a claim on the replaced body", claim)
	}
	for _, chunk := range []string{"p#BODY#OLD#0", "p#BODY#OLD#1"} {
		if !strings.Contains(string(sent[2].body), chunk) {
			t.Errorf("got %s, want chunk %s to be deleted", sent[2].body, chunk)
		}
	}
}

// TestItemWhoseBodyIsGoneIsLookedAtAgain: the item must be returned as a whole, and the write
// behind it was not the first to fail.
func TestItemWhoseBodyIsGoneIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	a, b := key("p", "a"), key("p", "b")
	w := newWire(t,
		cancel(failedOn(item(a, nil, chunked("GONE", 1))), failedOn(item(b, nil))), batch(nil),
		cancel(failedOn(item(a, nil, inline("new"))), failedOn(item(b, nil))),
	)
	err := w.open().Transact(t.Context(),
		table.Put{Item: table.Item{Key: a}, If: table.Absent()},
		table.Put{Item: table.Item{Key: b}, If: table.Absent()},
	)
	wantFailed(t, err, &table.ConditionFailed{Item: &table.Item{Key: a, Body: []byte("new")}})
}

func TestRefusalThatTeachesNothingIsAnError(t *testing.T) {
	t.Parallel()
	w := newWire(t, cancel(standing))
	err := w.open().Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a")}})
	var failed *table.ConditionFailed
	if err == nil || errors.As(err, &failed) {
		t.Errorf("got error %v, want another than a failed condition", err)
	}
}

func TestRefusedWriteIsAnErrorWithItsReason(t *testing.T) {
	t.Parallel()
	w := newWire(t, cancel(none, because("ValidationError")))
	err := w.open().Transact(t.Context(), increment, table.Delete{Key: key("p", "b")})
	if err == nil || !strings.Contains(err.Error(), "write 1: ValidationError") {
		t.Errorf("got error %v, want the reason of write 1", err)
	}
}

func wantFailed(t *testing.T, err error, want *table.ConditionFailed) {
	t.Helper()
	var failed *table.ConditionFailed
	if !errors.As(err, &failed) {
		t.Fatalf("got error %v, want a failed condition", err)
	}
	wantEqual(t, failed, want)
}

func wantFailedWrite(t *testing.T, err error, write int) {
	t.Helper()
	var failed *table.ConditionFailed
	if !errors.As(err, &failed) || failed.Write != write {
		t.Errorf("got error %v, want the failed condition of write %d", err, write)
	}
}

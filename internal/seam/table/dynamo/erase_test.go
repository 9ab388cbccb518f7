package dynamo_test

import (
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

// refusedOn is the refusal of a single write on an item, in DynamoDB's JSON.
func refusedOn(item string) answer {
	return reply(http.StatusBadRequest, fmt.Sprintf(
		`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"injected","Item":%s}`, item))
}

// TestAnErasedLargeBodyLeavesNoChunks: the request for the item alone is refused, and names the
// body. A transaction takes the item and leaves a claim on the body, whose chunks are deleted then.
func TestAnErasedLargeBodyLeavesNoChunks(t *testing.T) {
	t.Parallel()
	w := newWire(t, refusedOn(item(key("p", "a"), nil, chunked("OLD", 2))), done)
	check.Must(t, w.open().Delete(t.Context(), key("p", "a")))
	w.wantOperations("DeleteItem", "TransactWriteItems", "BatchWriteItem", "BatchWriteItem")
	sent := w.sent()
	if claim := string(sent[1].body); !strings.Contains(claim, "BODY-CLAIMS#") || !strings.Contains(claim, `"OLD"`) {
		t.Errorf("got %s, want a claim on the body", claim)
	}
	for _, chunk := range []string{"p#BODY#OLD#0", "p#BODY#OLD#1"} {
		if !strings.Contains(string(sent[2].body), chunk) {
			t.Errorf("got %s, want chunk %s to be deleted", sent[2].body, chunk)
		}
	}
}

// TestADeletionIsOneRequestForEachItem has transient faults between the requests.
func TestADeletionIsOneRequestForEachItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttled := refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException")
		conflict := refuse(http.StatusBadRequest, "TransactionConflictException")
		w := newWire(t, throttled, done, conflict, lost, torn, done, done)
		check.Must(t, w.open().Delete(t.Context(), key("p", "a"), key("p", "b"), key("p", "c")))
		deleted := map[string]bool{}
		for _, r := range w.sent() {
			if r.operation != "DeleteItem" {
				t.Errorf("got a %s, want only DeleteItem", r.operation)
			}
			deleted[fmt.Sprint(r.decode(t)["Key"])] = true
		}
		if len(deleted) != 3 {
			t.Errorf("got deletions of %v, want 3 items", deleted)
		}
	})
}

// TestADeletionGivesUpABusyTable: the error ends the other requests, too.
func TestADeletionGivesUpABusyTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, busy["throttled read or write"])
		var keys []table.Key
		for i := range table.MaxWrites {
			keys = append(keys, key("p", fmt.Sprint(i)))
		}
		start := time.Now()
		wantBusy(t, w.open(dynamo.WithPatience(3*time.Second)).Delete(t.Context(), keys...))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("got an answer after %v, want it after at most 5 s", took)
		}
		if got := len(w.sent()); got > 110 {
			t.Errorf("got %d requests, want the budget of all retries to bound them", got)
		}
	})
}

// TestADeletionInOrderIsOneRequest: it costs half of a transaction.
func TestADeletionInOrderIsOneRequest(t *testing.T) {
	t.Parallel()
	w := newWire(t, done, done)
	check.Must(t, w.open().InOrder(t.Context(), table.Delete{Key: key("p", "a")}, table.Delete{Key: key("p", "b"), If: table.Present()}))
	w.wantOperations("DeleteItem", "DeleteItem")
}

package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
)

// TestTransientFaultsAreRetried sends one request again, with its token, until it is answered.
func TestTransientFaultsAreRetried(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]answer{
		"conflict":               cancel(because("TransactionConflict")),
		"conflict in progress":   refuse(http.StatusBadRequest, "TransactionInProgressException"),
		"throttled in the table": cancel(because("ProvisionedThroughputExceeded")),
		"throttled write":        cancel(because("ThrottlingError")),
		"throttled request":      refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException"),
		"too many requests":      refuse(http.StatusBadRequest, "RequestLimitExceeded"),
		"throttled account":      refuse(http.StatusBadRequest, "ThrottlingException"),
		"fault of the service":   refuse(http.StatusInternalServerError, "InternalServerError"),
		"unavailable":            refuse(http.StatusServiceUnavailable, "ServiceUnavailable"),
		"lost answer":            lost,
		"torn answer":            torn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t, fault, fault, fault, done)
				if err := w.open().Transact(t.Context(), increment); err != nil {
					t.Fatalf("got error %v, want none", err)
				}
				sent := w.sent()
				for i, r := range sent {
					if !bytes.Equal(r.body, sent[0].body) {
						t.Errorf("request %d: got %s, want it to be as the first one, %s", i, r.body, sent[0].body)
					}
				}
				if token, _ := sent[0].decode(t)["ClientRequestToken"].(string); token == "" {
					t.Error("got no token, want one")
				}
			})
		})
	}
}

func TestReadsAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, lost, refuse(http.StatusInternalServerError, "InternalServerError"), torn, reply(http.StatusOK, `{}`))
		if _, err := w.open().Get(t.Context(), key("p", "a")); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("got error %v, want %v", err, table.ErrNotFound)
		}
	})
}

func TestLastingFaultsAreNotRetried(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]answer{
		"AccessDeniedException":     refuse(http.StatusBadRequest, "AccessDeniedException"),
		"ResourceNotFoundException": refuse(http.StatusBadRequest, "ResourceNotFoundException"),
		"ValidationException":       refuse(http.StatusBadRequest, "ValidationException"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, fault)
			err := w.open().Transact(t.Context(), increment)
			var api smithy.APIError
			if !errors.As(err, &api) || api.ErrorCode() != name {
				t.Errorf("got error %v, want %s", err, name)
			}
			w.wantOperations("TransactWriteItems")
		})
	}
}

// TestRetriesEndBeforeTheDeadline checks that a worker whose store stays busy has time to
// report it before its function is ended, and that the retries do not end much earlier.
func TestRetriesEndBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	for name, trouble := range busy {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t, trouble)
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
				defer cancel()
				start := time.Now()
				wantBusy(t, w.open().Transact(ctx, increment))
				if took := time.Since(start); took < 15*time.Minute-4*time.Second || took >= 15*time.Minute {
					t.Errorf("got an answer after %v, want it shortly before the deadline", took)
				}
			})
		})
	}
}

// TestAThrottledMinuteIsWaitedFor has a store that is busy for longer than half a minute, and
// then takes calls.
func TestAThrottledMinuteIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, append(slices.Repeat([]answer{cancel(because("ThrottlingError"))}, 90), done)...)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		start := time.Now()
		if err := w.open().Transact(ctx, increment); err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		if took := time.Since(start); took < 45*time.Second {
			t.Errorf("got an answer after %v, want the store to have been busy for longer", took)
		}
	})
}

func TestRetriesEndWithoutADeadlineToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, refuse(http.StatusInternalServerError, "InternalServerError"))
		start := time.Now()
		wantBusy(t, w.open().Transact(t.Context(), increment))
		if took := time.Since(start); took < 30*time.Second || took > time.Minute {
			t.Errorf("got an answer after %v, want it after half a minute", took)
		}
	})
}

// busy are the answers of a store that is overloaded.
var busy = map[string]answer{
	"throttled read or write": refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException"),
	"throttled transaction":   cancel(because("ThrottlingError")),
	"no answer":               lost,
}

func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	for name, trouble := range busy {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t, trouble)
				start := time.Now()
				wantBusy(t, w.open(dynamo.WithPatience(3*time.Second)).Transact(t.Context(), increment))
				if took := time.Since(start); took < 3*time.Second || took > 5*time.Second {
					t.Errorf("got an answer after %v, want it after 3 to 5 s", took)
				}
			})
		})
	}
}

// TestRetriesHaveABudget makes one call after the other to a busy store: the number of retries
// of all calls together is bounded, so that a late call is answered at once.
func TestRetriesHaveABudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, busy["throttled read or write"])
		tb := w.open(dynamo.WithPatience(3 * time.Second))
		const calls = 60
		for range calls {
			_, err := tb.Get(t.Context(), key("p", "a"))
			wantBusy(t, err)
		}
		if got := len(w.sent()); got > calls+100 {
			t.Errorf("got %d requests for %d calls, want at most 100 retries", got, calls)
		}
	})
}

func TestPatienceIsForWhatMayPassOnly(t *testing.T) {
	t.Parallel()
	w := newWire(t, refuse(http.StatusBadRequest, "ValidationException"))
	if err := w.open(dynamo.WithPatience(time.Second)).Transact(t.Context(), increment); err == nil || fault.Is(err, fault.Unavailable) {
		t.Errorf("got error %v, want it not to be told as one that passes", err)
	}
}

func wantBusy(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, table.ErrBusy) || !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got error %v, want the store to be busy", err)
	}
}

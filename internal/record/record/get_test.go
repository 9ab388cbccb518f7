package record_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestAnAbsentItemIsTheErrorOfTheCaller(t *testing.T) {
	t.Parallel()
	store, missing := fixtures.Table(t), errors.New("no such thing")
	if item, err := record.Get(t.Context(), store, "thing", key, missing); item != nil || !errors.Is(err, missing) {
		t.Errorf("got %v and %v", item, err)
	}
	if item, err := record.Get(t.Context(), store, "thing", key, nil); item != nil || err != nil {
		t.Errorf("got %v and %v where the item may be absent", item, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := record.Get(over, store, "thing", key, missing); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "get thing") {
		t.Errorf("got %v from a table that does not answer", err)
	}
	check.Must(t, store.Transact(t.Context(), put(nil)))
	if item, err := record.Get(t.Context(), store, "thing", key, missing); err != nil || item.Key != key {
		t.Errorf("got %v and %v", item, err)
	}
}

func TestAllItemsAreDecodedInOrder(t *testing.T) {
	t.Parallel()
	store, torn := fixtures.Table(t), errors.New("torn")
	for _, sk := range []string{"b", "a"} {
		check.Must(t, store.Transact(t.Context(), table.Put{Item: table.Item{Key: table.Key{PK: "p", SK: sk}}}))
	}
	name := func(item *table.Item) (string, error) { return item.Key.SK, nil }
	if got, err := record.All(t.Context(), store, "things", table.Query{PK: "p", Limit: 1}, name); err != nil || strings.Join(got, "") != "ab" {
		t.Errorf("got %v and %v", got, err)
	}
	if got, err := record.All(t.Context(), store, "things", table.Query{PK: "q"}, name); err != nil || got == nil || len(got) > 0 {
		t.Errorf("got %#v and %v, want an empty list", got, err)
	}
	if got, err := record.All(t.Context(), store, "things", table.Query{PK: "p"}, func(*table.Item) (string, error) { return "", torn }); got != nil || !errors.Is(err, torn) {
		t.Errorf("got %v and %v", got, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := record.All(over, store, "things", table.Query{PK: "p"}, name); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "list things") {
		t.Errorf("got %v from a table that does not answer", err)
	}
}

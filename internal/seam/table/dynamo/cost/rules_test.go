//go:build cost

package cost_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
	emulator "github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
)

// TestRules checks that DynamoDB Local counts as DynamoDB does.
func TestRules(t *testing.T) {
	t.Parallel()
	m := newMeter(t, local.endpoint)
	tb := openThrough(t, m)
	key := table.Key{PK: "p", SK: "s"}
	index := map[table.Index]table.Key{table.ByDue: {PK: "due", SK: "1"}}
	listed := map[table.Index]table.Key{table.ByList: {PK: "list", SK: "1"}}
	two, three := table.Key{PK: "p", SK: "two"}, table.Key{PK: "p", SK: "three"}
	random := rand.NewChaCha8([32]byte{1})
	body := func(size int) []byte { // random bytes, whose compressed form is not smaller
		bytes := make([]byte, size)
		_, _ = random.Read(bytes)
		return bytes
	}
	transact := func(writes ...table.Write) func() error {
		return func() error { return tb.Transact(t.Context(), writes...) }
	}
	for _, step := range []struct {
		name string
		do   func() error
		want units
	}{
		{"a small item is put", transact(table.Put{Item: table.Item{Key: key, Body: body(100)}}), units{write: 2}},
		{"an attribute of it changes", transact(table.Update{Key: key, Set: table.Attrs{"a": "b"}}), units{write: 2}},
		{"it is replaced by one of 3 KB", transact(table.Put{Item: table.Item{Key: key, Body: body(2500)}}), units{write: 6}},
		{"an attribute of that changes", transact(table.Update{Key: key, Set: table.Attrs{"a": "b"}}), units{write: 6}},
		{"it comes into an index", transact(table.Update{Key: key, Index: index}), units{write: 6, index: 1}},
		{"an attribute changes there", transact(table.Update{Key: key, Set: table.Attrs{"a": "c"}}), units{write: 6}},
		{"it moves in the index", transact(table.Update{Key: key, Index: map[table.Index]table.Key{table.ByDue: {PK: "due", SK: "2"}}}), units{write: 6, index: 2}},
		{"two others are put", transact(table.Put{Item: table.Item{Key: two}}, table.Put{Item: table.Item{Key: three, Index: index}}), units{write: 4, index: 1}},
		{"three alike are put", transact(table.Put{Item: table.Item{Key: table.Key{PK: "q", SK: "1"}}},
			table.Put{Item: table.Item{Key: table.Key{PK: "q", SK: "2"}}}, table.Put{Item: table.Item{Key: table.Key{PK: "q", SK: "3"}}}), units{write: 6}},
		{"one is checked, one changes", transact(table.Check{Key: two, If: table.Present()}, table.Update{Key: three, Set: table.Attrs{"a": "b"}}), units{write: 4}},
		{"three are read, one of which is not there", func() error {
			_, err := tb.GetBatch(t.Context(), key, two, table.Key{PK: "p", SK: "nothing"})
			return err
		}, units{read: 3}},
		{"it is read", func() error { _, err := tb.Get(t.Context(), key); return err }, units{read: 1}},
		{"the index is read", func() error { _, err := tb.Query(t.Context(), table.Query{Index: table.ByDue, PK: "due"}); return err }, units{read: 0.5}},
		{"one that is not there is read", func() error {
			if _, err := tb.Get(t.Context(), table.Key{PK: "p", SK: "nothing"}); !errors.Is(err, table.ErrNotFound) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		}, units{read: 1}},
		{"nothing is found", func() error { _, err := tb.Query(t.Context(), table.Query{PK: "nobody"}); return err }, units{read: 1}},
		{"it comes into the other index, too", transact(table.Update{Key: key, Index: listed}), units{write: 6, index: 3}},
		{"an attribute changes in both", transact(table.Update{Key: key, Set: table.Attrs{"a": "d"}}), units{write: 6, index: 3}},
		{"it is deleted", transact(table.Delete{Key: key}), units{write: 6, index: 4}},
	} {
		check.Must(t, step.do())
		got := m.take()
		if got.units() != step.want {
			t.Errorf("%s: got %+v, want %+v", step.name, got, step.want)
		}
	}
}

// openThrough opens a table behind the meter.
func openThrough(t *testing.T, m *meter) *dynamo.Table {
	t.Helper()
	tb := openTable(m.server.URL, "rules")
	declared, err := emulator.Declared(local.root)
	check.Must(t, err)
	declared.TTL = ""
	check.Must(t, emulator.CreateTable(t.Context(), dynamodb.NewFromConfig(configure(m.server.URL)), "rules", declared))
	m.take()
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb
}

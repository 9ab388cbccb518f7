package table_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestReadersHoldNoMoreThanThereIsRoomFor although each reader reads a large item, and all
// readers get it in the end. A reader that waits too long is refused. Small reads do not wait.
func TestReadersHoldNoMoreThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	held := table.Budgeted(fixtures.Table(t))
	large, small := table.Key{PK: "p", SK: "large"}, table.Key{PK: "p", SK: "small"}
	err := held.Transact(t.Context(), table.Put{Item: table.Item{Key: large, Body: make([]byte, 100_000)}}, table.Put{Item: table.Item{Key: small, Body: []byte("x")}})
	check.Must(t, err)
	const room = 700_000 // for two of them
	bound, refused := budget.New(room), errors.New("no room")
	open := func(owner int, wait time.Duration) *budget.Hold {
		hold := budget.NewHold(bound, 1000, wait, refused)
		hold.For(fmt.Sprint(owner))
		return hold
	}
	most := int64(0)
	var mu sync.Mutex
	var readers sync.WaitGroup
	for owner := range 20 {
		readers.Go(func() {
			hold := open(owner, 0)
			defer hold.Close()
			item, err := held.Get(budget.Holding(t.Context(), hold), large)
			if err != nil || len(item.Body) != 100_000 {
				t.Errorf("reader %d: got %v", owner, err)
			}
			mu.Lock()
			most = max(most, bound.Held())
			mu.Unlock()
		})
	}
	readers.Wait()
	if most == 0 || most > room || bound.Held() != 0 {
		t.Errorf("readers held %d bytes, and %d at the end; want some, at most %d, and 0", most, bound.Held(), room)
	}
	first, second := open(1, 0), open(2, 0)
	defer first.Close()
	defer second.Close()
	for _, hold := range []*budget.Hold{first, second} {
		if _, err := held.Query(budget.Holding(t.Context(), hold), table.Query{PK: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	late := open(3, time.Millisecond)
	defer late.Close()
	if _, err := held.GetBatch(budget.Holding(t.Context(), late), large); !errors.Is(err, refused) {
		t.Errorf("a reader without room: got %v", err)
	}
	if _, err := held.Get(budget.Holding(t.Context(), late), small); err != nil {
		t.Errorf("a small read: %v", err)
	}
	first.Return(first.Detach())
	if _, err := held.GetBatch(budget.Holding(t.Context(), late), large); err != nil {
		t.Errorf("a reader with room: %v", err)
	}
}

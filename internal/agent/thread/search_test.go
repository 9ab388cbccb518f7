package thread_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestASearchLooksAtSoManyThreads checks the limit for searches that can use neither the order
// of the list nor ids.
func TestASearchLooksAtSoManyThreads(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	var ids []string
	for range 3 {
		made, err := s.Create(t.Context(), newRef(), nil, nil, false)
		check.Must(t, err)
		ids = append(ids, made.Thread)
	}
	search := func(filter thread.Filter, by thread.Sort) (int, error) {
		found, err := s.Search(t.Context(), "w", "d", thread.Search{Filter: filter, SortBy: by, Window: record.Window{Limit: 2}}, nil)
		return len(found.Threads), err
	}
	s.SetMost(3)
	if found, err := search(thread.Filter{}, thread.SortUpdated); found != 2 || err != nil {
		t.Errorf("3 of 3: found %d, %v", found, err)
	}
	s.SetMost(2)
	for _, by := range []thread.Sort{thread.SortID, thread.SortStatus, thread.SortUpdated, thread.SortStateUpdated} {
		if _, err := search(thread.Filter{}, by); !fault.Is(err, fault.Invalid) {
			t.Errorf("by %s: got %v, want a refusal", by, err)
		}
		if found, err := search(thread.Filter{IDs: ids}, by); found != 2 || err != nil {
			t.Errorf("by %s and ids: found %d, %v", by, found, err)
		}
	}
	if found, err := search(thread.Filter{}, thread.SortCreated); found != 2 || err != nil {
		t.Errorf("in the order of the list: found %d, %v", found, err)
	}
}

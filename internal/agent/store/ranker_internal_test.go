package store

import (
	"fmt"
	"testing"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackAPageOfLargeVectors checks that a page whose vectors take more memory than a store
// may hold is not kept to make a unit of it.
func TestAttackAPageOfLargeVectors(t *testing.T) {
	t.Parallel()
	const room, each = 100_000, 16_384
	s, put := holding(t, room)
	for i := range 3 * room / each {
		put(ours, fmt.Sprint(i), each)
	}
	query := keys.StoreItemsBelow(ours.Workspace, ours.Deployment, []string{"n"})
	items, err := table.AllItems(t.Context(), s.table, query)
	check.Must(t, err)
	near, err := NewVectors("s", 2, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0})
	check.Must(t, err)
	r := s.ranker(near)
	r.making = s.held.begin(query, near)
	check.Must(t, r.page(t.Context(), items))
	kept := r.making.size
	for _, vectors := range r.noted {
		kept += len(vectors) * widthOf
	}
	if kept > room || len(r.scores) != len(items) {
		t.Errorf("%d bytes are kept of %d allowed, and %d of %d items have scores", kept, room, len(r.scores), len(items))
	}
	s.held.end(r.making, true)
}

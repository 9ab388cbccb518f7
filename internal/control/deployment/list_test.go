package deployment

import (
	"context"
	"fmt"
	"testing"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// TestARequestReadsSoMuchInVainOnly searches for an item at the end of a long list: the
// request stops before the item, and the cursor of its page continues from there.
func TestARequestReadsSoMuchInVainOnly(t *testing.T) {
	t.Parallel()
	const n = 2*mostMisses + 10
	query := keys.DeploymentList("w")
	read := 0
	from := func(_ context.Context, cursor string, size int) (table.Page, error) {
		q := query
		q.Cursor = cursor
		after, err := q.Place()
		if err != nil {
			return table.Page{}, err
		}
		first := 0
		if after != nil {
			if _, err := fmt.Sscan(after.Sort, &first); err != nil {
				return table.Page{}, err
			}
			first++
		}
		var page table.Page
		for i := first; i < min(first+size, n); i++ {
			key := table.Key{PK: "p", SK: fmt.Sprint(i)}
			page.Items = append(page.Items, &table.Item{Key: key, Index: map[table.Index]table.Key{table.ByList: {PK: query.PK, SK: key.SK}}})
		}
		read += len(page.Items)
		if first+size < n {
			page.Cursor = query.CursorAfter(placeOf(page.Items[len(page.Items)-1], query.Index))
		}
		return page, nil
	}
	last := func(item *table.Item) (string, bool, error) { return item.Key.SK, item.Key.SK == fmt.Sprint(n-1), nil }
	window, requests := Window{Limit: 2}, 0
	for {
		requests++
		before := read
		page, err := collect(t.Context(), from, query, window, last)
		if err != nil {
			t.Fatal(err)
		}
		if read-before > mostMisses+table.MaxLimit {
			t.Errorf("request %d read %d items", requests, read-before)
		}
		if window.Cursor = page.Cursor; window.Cursor == "" {
			if len(page.Items) != 1 || requests != 3 {
				t.Errorf("got %v after %d requests, want the last item after 3", page.Items, requests)
			}
			return
		}
		if len(page.Items) != 0 {
			t.Errorf("request %d found %v", requests, page.Items)
		}
	}
}

package store_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestAQueryIsComparedWithABoundedNumberOfVectors refuses a search that would read more vectors,
// below one namespace and below all, and serves all other searches.
func TestAQueryIsComparedWithABoundedNumberOfVectors(t *testing.T) {
	t.Parallel()
	s := store.NewStore(fixtures.DomainTable(t, clock.System), clock.System, quota.Limits{}, slog.Default()).Compare(4 * 2 * 4)
	query := vectors(t, "s", 2, 1, 0)
	put := func(label, key string) {
		t.Helper()
		check.Must(t, s.Put(t.Context(), owner, []string{"n", label}, key, json.RawMessage(`{}`), 0, vectors(t, "s", 2, 1, 1)))
	}
	search := func(near store.Vectors, below ...string) string {
		t.Helper()
		found, total, err := s.Search(t.Context(), owner, store.Wanted{Below: below, Near: near, Window: table.Window{Limit: 1}})
		if fault.Is(err, fault.Invalid) {
			return "refused"
		}
		check.Must(t, err)
		return fmt.Sprintf("%d of %d", len(found), total)
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	for i := range 4 {
		put("a", fmt.Sprint(i))
	}
	expect("as many vectors", search(query, "n"), "1 of 4")
	put("b", "4")
	expect("more vectors", search(query, "n"), "refused")
	expect("more vectors below all namespaces", search(query), "refused")
	expect("a namespace below it", search(query, "n", "a"), "1 of 4")
	expect("no query", search(store.Vectors{}, "n"), "1 of 5")
}

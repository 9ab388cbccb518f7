package keys_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestQueriesOfTenancy stores neighbours of every kind in two workspaces, and asks for each
// collection.
func TestQueriesOfTenancy(t *testing.T) {
	t.Parallel()
	tb := fixtures.Table(t)
	put := func(key table.Key) table.Write { return table.Put{Item: table.Item{Key: key}} }
	writes := []table.Write{put(keys.WorkspaceName("b")), put(keys.WorkspaceName("a"))}
	for _, w := range []string{"w", "w2"} {
		writes = append(writes, put(keys.Workspace(w)))
		for _, x := range []string{"2", "1"} {
			writes = append(writes, put(keys.Member(w, x)), put(keys.APIKeyRecord(w, x)), put(keys.TrustRule(w, x)), put(keys.AuditEntry(w, x)))
		}
	}
	check.Must(t, tb.Transact(t.Context(), writes...))
	for name, c := range map[string]struct {
		query table.Query
		want  []table.Key
	}{
		"WorkspaceNames": {keys.WorkspaceNames(), []table.Key{keys.WorkspaceName("a"), keys.WorkspaceName("b")}},
		"Members":        {keys.Members("w"), []table.Key{keys.Member("w", "1"), keys.Member("w", "2")}},
		"APIKeyRecords":  {keys.APIKeyRecords("w"), []table.Key{keys.APIKeyRecord("w", "1"), keys.APIKeyRecord("w", "2")}},
		"TrustRules":     {keys.TrustRules("w"), []table.Key{keys.TrustRule("w", "1"), keys.TrustRule("w", "2")}},
		"AuditLog":       {keys.AuditLog("w"), []table.Key{keys.AuditEntry("w", "1"), keys.AuditEntry("w", "2")}},
	} {
		items, err := table.AllItems(t.Context(), tb, c.query)
		check.Must(t, err)
		var got []table.Key
		for _, item := range items {
			got = append(got, item.Key)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

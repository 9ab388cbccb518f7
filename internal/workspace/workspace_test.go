package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/table/sqlite"
	"github.com/slipway-run/slipway/internal/workspace"
)

func setUp(t *testing.T) (*workspace.Store, table.Table) {
	t.Helper()
	tb, err := sqlite.Open(filepath.Join(t.TempDir(), "table.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return workspace.NewStore(tb, clock.System), tb
}

func TestAWorkspaceIsReadBack(t *testing.T) {
	t.Parallel()
	store, _ := setUp(t)
	ids := map[string]bool{}
	for range 2 {
		made, err := store.Create(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		read, err := store.Get(t.Context(), made.ID)
		if diff := cmp.Diff(workspace.Workspace{ID: made.ID, Name: "team"}, read); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if !id.Valid(made.ID) || ids[made.ID] {
			t.Errorf("got id %s", made.ID)
		}
		ids[made.ID] = true
	}
}

func TestAnUnknownWorkspaceIsNotFound(t *testing.T) {
	t.Parallel()
	store, _ := setUp(t)
	if w, err := store.Get(t.Context(), "unknown"); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v (%v), want a fault of kind not_found", w, err)
	}
}

func TestAnotherKindOfItemIsNoWorkspace(t *testing.T) {
	t.Parallel()
	store, tb := setUp(t)
	item := table.Item{Key: keys.Workspace("w"), Attrs: table.Attrs{"kind": "workspace", "schema": int64(2)}, Body: []byte(`{}`)}
	if err := tb.Transact(t.Context(), table.Put{Item: item}); err != nil {
		t.Fatal(err)
	}
	if w, err := store.Get(t.Context(), "w"); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("a workspace of a newer schema: got %v (%v), want an error of another kind", w, err)
	}
}

package assistant_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// configured is a patch with a configuration that no other assistant may show.
var configured = assistant.Patch{Config: json.RawMessage(`{"configurable":{"secret":"x"}}`)}

// followed is a table that calls a function after its next transaction.
type followed struct {
	table.Table
	after func()
}

func (f *followed) Transact(ctx context.Context, writes ...table.Write) error {
	err := f.Table.Transact(ctx, writes...)
	if after := f.after; after != nil {
		f.after = nil
		after()
	}
	return err
}

func (f *fixture) versionsOf(of string) []*table.Item {
	f.t.Helper()
	items, err := table.AllItems(f.t.Context(), f.table, keys.AssistantVersions(f.owner.Workspace, f.owner.Deployment, of))
	f.must(err)
	return items
}

// TestVersionsThatADeletionLeaves has the process die halfway. The next assistant with the id does
// not show them, and does not return to them.
func TestVersionsThatADeletionLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dying := &fixtures.Halfway{Table: f.table}
	s, of := assistant.NewStore(dying, f.clock.Now), assistant.DefaultID("agent")
	for range 4 {
		_, err := s.Update(t.Context(), f.owner, of, configured)
		check.Must(t, err)
	}
	dying.Dies.Store(true)
	if err := s.Delete(t.Context(), f.owner, of); !errors.Is(err, fixtures.ErrHalfway) {
		t.Fatalf("got error %v, want %v", err, fixtures.ErrHalfway)
	}
	name := "new"
	_, err := f.Update(t.Context(), f.owner, of, assistant.Patch{Name: &name})
	f.must(err)
	if left := len(f.versionsOf(of)); left < 3 {
		t.Fatalf("%d versions are left", left)
	}
	versions, err := f.Versions(t.Context(), f.owner, of, assistant.Search{Limit: 10})
	f.must(err)
	if len(versions) != 2 || versions[0].Name != name || string(versions[1].Config) != `{}` {
		t.Errorf("got the versions %+v", versions)
	}
	for number := int64(3); number <= 5; number++ {
		if a, err := f.SetLatest(t.Context(), f.owner, of, number); !fault.Is(err, fault.NotFound) {
			t.Errorf("version %d is %s (%v)", number, a.Config, err)
		}
	}
}

// TestADeletionWhoseClientHasGone erases all versions, except those of an assistant that was
// created under the same id meanwhile.
func TestADeletionWhoseClientHasGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tb := &followed{Table: f.table}
	s, a := assistant.NewStore(tb, f.clock.Now), f.create(assistant.Content{Graph: "agent"})
	for range 3 {
		_, err := s.Update(t.Context(), f.owner, a.Assistant, configured)
		check.Must(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tb.after = func() {
		_, err := f.Create(t.Context(), f.owner, a.Assistant, assistant.Content{Graph: "writer"})
		f.must(err)
		cancel()
	}
	check.Must(t, s.Delete(ctx, f.owner, a.Assistant))
	if left := len(f.versionsOf(a.Assistant)); left != 1 {
		t.Errorf("%d versions are left, want only the version of the new assistant", left)
	}
}

package deployment_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// queried is a table that counts the items that queries return.
type queried struct {
	table.Table
	items atomic.Int64
}

func (q *queried) Query(ctx context.Context, query table.Query) (table.Page, error) {
	page, err := q.Table.Query(ctx, query)
	q.items.Add(int64(len(page.Items)))
	return page, err
}

// deployNext makes a revision, which has a build of its own, and promotes it.
func (f *fixture) deployNext(t *testing.T, ref deployment.Ref) string {
	t.Helper()
	if d := f.get(t, ref); !d.Busy {
		f.patch(t, ref, again)
	}
	d, r := f.carry(t, ref)
	check.Must(t, f.Promote(t.Context(), d, r))
	return r.Revision
}

// TestOldBuildsAreFoundWithoutReadingAllRevisions keeps the builds of three of many deployed
// revisions.
func TestOldBuildsAreFoundWithoutReadingAllRevisions(t *testing.T) {
	t.Parallel()
	const kept, page = 3, 50
	f := setUp(t)
	tb := &queried{Table: f.table}
	store := deployment.NewStore(deployment.Config{Table: tb, Sealer: f.sealer, Now: f.clock.Now})
	var removed []string
	var broken string
	forget := func(ref deployment.Ref) (int64, error) {
		tb.items.Store(0)
		err := store.ForgetBuilds(t.Context(), f.get(t, ref), kept, func(_ context.Context, id string) error {
			if id == broken {
				return errors.New("the disk is away")
			}
			removed = append(removed, id)
			return nil
		})
		return tb.items.Load(), err
	}
	ref := f.create(t, fromGit("weather")).Ref
	var ids []string
	for range 2 * page {
		ids = append(ids, f.deployNext(t, ref))
		read, err := forget(ref)
		if err != nil || read > page {
			t.Fatalf("after %d revisions %d were read (%v)", len(ids), read, err)
		}
	}
	if diff := cmp.Diff(ids[:len(ids)-kept], removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}

	// A build that cannot be removed does not hold up the other builds, and is found again.
	removed, broken = nil, ids[len(ids)-kept]
	for range 2 {
		ids = append(ids, f.deployNext(t, ref))
		if _, err := forget(ref); err == nil {
			t.Error("nobody is told of a build that is not removed")
		}
	}
	if want := ids[len(ids)-kept-1 : len(ids)-kept]; !slices.Equal(removed, want) {
		t.Errorf("removed %v, want %v", removed, want)
	}
	broken = ""
	if _, err := forget(ref); err != nil || !slices.Contains(removed, ids[len(ids)-kept-2]) {
		t.Errorf("removed %v (%v), want %s too", removed, err, ids[len(ids)-kept-2])
	}

	// The old builds are still found behind many overtaken revisions.
	removed = nil
	f.patch(t, ref, again)
	for range page + 10 {
		f.patch(t, ref, again)
	}
	ids = append(ids, f.deployNext(t, ref))
	ids = append(ids, f.deployNext(t, ref))
	if read, err := forget(ref); err != nil || read > 3*page || !slices.Equal(removed, ids[len(ids)-kept-2:len(ids)-kept]) {
		t.Errorf("removed %v after %d were read (%v), want %v", removed, read, err, ids[len(ids)-kept-2:len(ids)-kept])
	}
}

// TestAnImageHasNoBuild: there is no build to look for.
func TestAnImageHasNoBuild(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	tb := &queried{Table: f.table}
	store := deployment.NewStore(deployment.Config{Table: tb, Sealer: f.sealer, Now: f.clock.Now})
	d := f.create(t, fromImage("image"))
	if err := store.ForgetBuilds(t.Context(), d, 1, nil); err != nil || tb.items.Load() != 0 {
		t.Errorf("%d revisions were read (%v)", tb.items.Load(), err)
	}
}

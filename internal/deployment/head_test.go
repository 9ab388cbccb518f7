package deployment_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/table"
)

// countingTable counts how often one item is read.
type countingTable struct {
	table.Table
	key   table.Key
	reads atomic.Int64
}

func (c *countingTable) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	if key == c.key {
		c.reads.Add(1)
	}
	return c.Table.Get(ctx, key)
}

func TestAHeadIsReadOnceInATenthOfASecond(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("a"))
	counted := &countingTable{Table: f.table, key: d.Key()}
	reader := deployment.NewStore(deployment.Config{Table: counted, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Listeners: f.listeners, Recalls: true})
	want := func(reads int64, when string) deployment.Deployment {
		t.Helper()
		head, err := reader.Head(t.Context(), d.Ref)
		if err != nil || head.Ref != d.Ref {
			t.Errorf("%s: got %+v (%v)", when, head, err)
		}
		if got := counted.reads.Load(); got != reads {
			t.Errorf("%s: it was read %d times, want %d", when, got, reads)
		}
		return head
	}
	want(1, "at first")
	want(1, "at once again")
	f.clock.move(100 * time.Millisecond)
	want(2, "a tenth of a second later")
	changed := f.patch(t, d.Ref, deployment.Patch{DisplayName: new("A")})
	if head := want(3, "after a change"); !head.Updated.Equal(changed.Updated) {
		t.Errorf("a change is not seen: it is of %s, want %s", head.Updated, changed.Updated)
	}
	f.delete(t, d.Ref)
	if head, err := reader.Head(t.Context(), d.Ref); err == nil && head.Status != deployment.AwaitingDelete || err != nil && !fault.Is(err, fault.NotFound) {
		t.Errorf("after its deletion: got %+v (%v)", head, err)
	}
}

package agentserver_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// fleeting is a table on which another request deletes a thread that is made here. Unless it is
// ours, the other request makes the thread just before: it deletes the thread at once or, if late,
// when the thread was read here.
type fleeting struct {
	table.Table

	others     *thread.Store
	ref        thread.Ref
	ours, late bool
	made, gone atomic.Bool
}

// Transact applies writes.
func (f *fleeting) Transact(ctx context.Context, writes ...table.Write) error {
	if writes[0].Target() != f.ref.Key() || f.made.Load() {
		return f.Table.Transact(ctx, writes...)
	}
	if !f.ours {
		if _, err := f.others.Create(ctx, f.ref, nil, nil, false); err != nil {
			return err
		}
	}
	err := f.Table.Transact(ctx, writes...)
	if f.ours && err != nil {
		return err // it is tried again
	}
	if f.made.Store(true); !f.late {
		err = errors.Join(err, f.others.Delete(ctx, f.ref))
	}
	return err
}

// Get reads an item.
func (f *fleeting) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := f.Table.Get(ctx, key)
	if key == f.ref.Key() && f.late && f.made.Load() && !f.gone.Swap(true) {
		err = errors.Join(err, f.others.Delete(ctx, f.ref))
	}
	return item, err
}

// TestAThreadThatAnotherRequestTakesBackIsMadeAgain checks that a request which may create its
// thread does not fail because another request, which was refused, has made the thread for a
// moment.
func TestAThreadThatAnotherRequestTakesBackIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path       string
		body       object
		ours, late bool
	}{
		"before a run's request reads it": {path: "/threads/" + unknownID + "/runs", body: with(hi(), "if_not_exists", "create")},
		"after a run's request read it":   {path: "/threads/" + unknownID + "/runs", body: with(hi(), "if_not_exists", "create"), late: true},
		"after a run's request made it":   {path: "/threads/" + unknownID + "/runs", body: with(hi(), "if_not_exists", "create"), ours: true},
		"before a thread's request":       {path: "/threads", body: object{"thread_id": unknownID, "if_exists": "do_nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			between := &fleeting{ours: test.ours, late: test.late}
			f := setUpLimited(t, graphtest.Start(t, nil), 0, quota.Limits{}, func(c *agentserver.Config) {
				c.Threads = thread.NewStore(between, clock.System, quota.Limits{}, slog.Default())
			})
			f.deploy(t, "agent")
			between.Table, between.others = f.table, f.threads
			between.ref = thread.Ref{Workspace: f.deployment.Workspace, Deployment: f.deployment.Deployment, Thread: unknownID}
			wantStatus(t, f.call(t, "POST", test.path, test.body), http.StatusOK)
			if !between.made.Load() || between.gone.Load() != test.late {
				t.Error("no other request has made the thread and taken it back")
			}
		})
	}
}

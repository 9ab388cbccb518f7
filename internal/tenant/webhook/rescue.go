package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// rescuePage is how many deliveries are in memory at a time.
const rescuePage = 100

// Rescue gives overdue deliveries a workflow: a workflow that was never started is started,
// and a delivery whose workflow has ended without ending the delivery gets another workflow. A
// workflow ends like this before each long pause.
// When ctx ends, the remaining deliveries are left to the next Rescue; this is not an error.
func (s *Store) Rescue(ctx context.Context, dueBy time.Time) error {
	return table.Pass{Shards: keys.DueDeliveries.Until(dueBy), Page: rescuePage}.Serve(ctx, s.Table, s.rescueItem)
}

func (s *Store) rescueItem(ctx context.Context, item *table.Item) error {
	parts, err := keys.ParseWebhookDelivery(item.Key)
	if err != nil {
		return err
	}
	d, err := s.GetDelivery(ctx, DeliveryRef(parts))
	if fault.Is(err, fault.NotFound) || err == nil && d.Status != Pending {
		return nil // an index may lag behind
	}
	if err == nil {
		err = s.rescue(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("rescue delivery %s: %w", parts.Delivery, err)
	}
	return nil
}

func (s *Store) rescue(ctx context.Context, d Delivery) error {
	execution, err := s.Workflow.Describe(ctx, workflow.Webhook, d.execution())
	lost := err == nil && execution.Status != workflow.Running
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return fmt.Errorf("describe workflow: %w", err)
	}
	now, after := s.Now(), d
	// The version stays, so that an attempt in progress can store its outcome.
	change := table.Update{Key: d.key(), If: table.Equals(record.Version, d.version)}
	if lost {
		after.round++
		change = d.change(now, after)
	}
	// A later Rescue looks at the delivery again when this lease is over.
	change.Index = d.dueAt(slices.MaxFunc([]time.Time{d.Due, now}, time.Time.Compare))
	renewed, err := record.Try(ctx, s.Table, change)
	if err != nil {
		return fmt.Errorf("renew delivery: %w", err)
	}
	if !renewed || execution.Status == workflow.Running {
		return nil // a delivery that has changed is under way
	}
	return s.start(ctx, after)
}

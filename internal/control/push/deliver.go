package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	kindDelivery = "push_delivery"
	// claimTime is how long a delivery may take to reach a deployment. After this time, a
	// repeated delivery is processed again.
	claimTime = 2 * time.Minute
	// deliveredTime is how long a delivery is remembered: GitHub resends them for three days.
	deliveredTime = 4 * 24 * time.Hour
	// buildersAtOnce bounds how many revisions one push makes at a time.
	buildersAtOnce = 8
)

// pushed brings a push from the App to the deployments that watch its branch, in every
// workspace that the installation is bound to.
func (r *Receiver) pushed(ctx context.Context, d Delivery, p payload) error {
	c, ok := p.change()
	if !ok {
		return nil
	}
	ctx, cancel := ownTime(ctx)
	defer cancel()
	workspaces, err := r.cfg.Installations.Workspaces(ctx, p.Installation.ID)
	if err != nil {
		return err
	}
	var failures []error
	for _, workspace := range workspaces {
		failures = append(failures, r.pushedIn(ctx, workspace, d, c))
	}
	return errors.Join(failures...)
}

// ownTime returns the context of a delivery. It continues after the sender's timeout, which is ten
// seconds. It ends before the claims of the delivery, so a repeated delivery works alone.
func ownTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), claimTime)
}

func (r *Receiver) pushedIn(ctx context.Context, workspace string, d Delivery, c change) error {
	names := Names{r.cfg.Table, r.cfg.Now}
	earlier, err := names.earlier(ctx, workspace, c.repository)
	if err != nil {
		return err
	}
	present := c.names
	c.names = union(present, earlier)
	targets, err := r.listed(ctx, workspace, c.names, c.branch)
	if err != nil || len(targets) == 0 {
		return err
	}
	failures := make([]error, len(targets)+1)
	var builders errgroup.Group
	builders.SetLimit(buildersAtOnce)
	for n, t := range targets {
		builders.Go(func() error {
			failures[n] = guard.Run(nil, "deliver a push", func() error { return r.deliver(ctx, t, d, c) })
			return nil
		})
	}
	_ = builders.Wait() // each failure is stored at its index
	failures[len(targets)] = names.note(ctx, workspace, c.repository, earlier, present)
	return errors.Join(failures...)
}

// deliver makes a revision of a deployment, if the deployment watches the changed branch and
// the delivery did not reach it before.
func (r *Receiver) deliver(ctx context.Context, t target, d Delivery, c change) error {
	if watches, err := r.watches(ctx, t, c); err != nil || !watches {
		return err
	}
	key := keys.PushDelivery(t.workspace, t.deployment, d.ID)
	noted := func(life time.Duration, condition table.Cond) table.Put {
		now := r.cfg.Now()
		item := record.Item(key, kindDelivery, now, nil, nil)
		item.Expires = now.Add(life)
		return table.Put{Item: item, If: condition}
	}
	if first, err := record.Try(ctx, r.cfg.Table, noted(claimTime, table.Absent())); err != nil || !first {
		return err
	}
	err := r.cfg.Builder.Build(ctx, t.workspace, t.deployment, c.commit)
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Invalid) {
		err = fmt.Errorf("build deployment %s for a push: %w", t.deployment, err)
		return errors.Join(err, r.cfg.Table.Transact(ctx, table.Delete{Key: key}))
	}
	if err := r.cfg.Table.Transact(ctx, noted(deliveredTime, table.Cond{})); err != nil {
		return fmt.Errorf("note push delivery: %w", err)
	}
	return nil
}

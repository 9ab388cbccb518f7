package cron

import (
	"context"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// counted returns the writes that increase the counts of the deployment's crons, and of its
// workspace's crons, by more.
func (s *Store) counted(ctx context.Context, workspace, deployment string, more int64) ([]table.Write, error) {
	now, own := s.Now(), record.Count{Key: keys.CronCount(workspace, deployment), Most: s.Quotas.Of(quota.DeploymentCrons)}
	stored, write, err := own.Change(ctx, s.Table, now, more)
	switch {
	case err != nil:
		return nil, err
	case more > 0 && stored >= own.Most:
		return nil, s.Quotas.Refuse(quota.DeploymentCrons)
	}
	shared, err := s.Quotas.Take(ctx, s.Table, now, quota.Crons, workspace, more)
	return []table.Write{write, shared}, err
}

// uncount removes the count of a deployment whose crons are erased.
func (s *Store) uncount(ctx context.Context, workspace, deployment string) error {
	key := keys.CronCount(workspace, deployment)
	return record.Decide(ctx, s.Table, func(ctx context.Context) (o record.Outbox, err error) {
		item, err := record.Get(ctx, s.Table, "count of crons", key, nil)
		if err != nil || item == nil {
			return o, err
		}
		shared, err := s.Quotas.Take(ctx, s.Table, s.Now(), quota.Crons, workspace, -record.Counted(item))
		o.Add(table.Delete{Key: key, If: table.Equals(record.Version, item.Int(record.Version))}, shared)
		return o, err
	})
}

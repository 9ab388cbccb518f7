package cron

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// attrCounted says that the count of the workspace includes the deployment's crons. If the
// crons were made before there was such a count, the count includes them from their next
// change on.
const attrCounted = "counted"

func count(workspace, deployment string) record.Count {
	return record.Count{Key: keys.CronCount(workspace, deployment)}
}

// counted returns the writes that increase the counts of the deployment's crons, and of its
// workspace's crons, by more.
func (s *Store) counted(ctx context.Context, workspace, deployment string, more int64) ([]table.Write, error) {
	before, err := s.Table.Get(ctx, keys.CronCount(workspace, deployment))
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return nil, fmt.Errorf("get count of crons: %w", err)
	}
	now, own := s.Now(), count(workspace, deployment)
	own.Most = s.Quotas.Of(quota.DeploymentCrons)
	there, write, err := own.Change(ctx, s.Table, now, more)
	switch {
	case err != nil:
		return nil, err
	case more > 0 && there >= own.Most:
		return nil, s.Quotas.Refuse(quota.DeploymentCrons)
	}
	all := more
	if before == nil || !before.Bool(attrCounted) {
		all += there
		if write, err = adopt(write, before); err != nil {
			return nil, err
		}
	}
	shared, err := s.Quotas.Take(ctx, s.Table, now, quota.Crons, workspace, all)
	return []table.Write{write, shared}, err
}

// adopt marks the write of a deployment's count: with this write the workspace counts the
// deployment's crons. before is the count as it was read, nil if there was no count.
func adopt(write table.Write, before *table.Item) (table.Write, error) {
	switch write := write.(type) {
	case table.Put:
		write.Item.Attrs[attrCounted] = true
		return write, nil
	case table.Update:
		if before == nil {
			return nil, record.ErrLost // another request has counted since
		}
		write.Set[attrCounted] = true
		write.If = table.All(write.If, table.Equals(record.Version, before.Int(record.Version)))
		return write, nil
	}
	return nil, fmt.Errorf("count of crons: unexpected write %T", write)
}

// uncount removes the count of a deployment whose crons are erased.
func (s *Store) uncount(ctx context.Context, workspace, deployment string) error {
	own := count(workspace, deployment)
	return record.Decide(ctx, s.Table, func(ctx context.Context) (o record.Outbox, err error) {
		item, err := record.Get(ctx, s.Table, "count of crons", own.Key, nil)
		if err != nil || item == nil {
			return o, err
		}
		o.Add(table.Delete{Key: own.Key, If: table.Equals(record.Version, item.Int(record.Version))})
		if item.Bool(attrCounted) {
			shared, err := s.Quotas.Take(ctx, s.Table, s.Now(), quota.Crons, workspace, -record.Counted(item))
			if err != nil {
				return o, err
			}
			o.Add(shared)
		}
		return o, nil
	})
}

package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// attrReplicas is the attribute of the count of deployments that holds their replicas, so that a
// deployment costs one write.
const attrReplicas = "replicas"

// Scale is a change of the deployments of a workspace.
type Scale struct {
	// Deployments and Replicas are how many there are more; a number may be negative.
	Deployments, Replicas int64
	// Beyond lets the replicas be more than their limit: the platform itself makes the change.
	Beyond bool
}

// Rescale adds the write that changes the counts of a workspace's deployments and replicas, or
// returns the refusal if one of their quotas has no room.
func (l Limits) Rescale(ctx context.Context, t table.Table, now time.Time, o *record.Outbox, workspace string, more Scale) error {
	most, bounded := l.Of(Replicas), more.Replicas > 0 && !more.Beyond
	if bounded && more.Replicas > most {
		return l.Refuse(Replicas)
	}
	write, err := l.Take(ctx, t, now, Deployments, workspace, more.Deployments)
	if err != nil {
		return err
	}
	if first, ok := write.(table.Put); ok {
		first.Item.Attrs[attrReplicas] = more.Replicas
		o.Add(first)
		return nil
	}
	update, _ := write.(table.Update)
	if more.Replicas != 0 {
		update.Add[attrReplicas] = more.Replicas
	}
	if bounded {
		update.If = table.All(update.If, table.Below(attrReplicas, most-more.Replicas+1))
	}
	o.AddOr(update, func(item *table.Item) error {
		if bounded && item != nil && item.Int(attrReplicas)+more.Replicas > most {
			return l.Refuse(Replicas)
		}
		return nil // the next try knows more
	})
	return nil
}

// scaleOf returns how many deployments a workspace has, and how many replicas are counted for
// them.
func scaleOf(ctx context.Context, t table.Table, workspace string) (deployments, replicas int64, err error) {
	item, err := record.Get(ctx, t, "count", keys.DeploymentCount(workspace), nil)
	if err != nil || item == nil {
		return 0, 0, err
	}
	return record.Counted(item), item.Int(attrReplicas), nil
}

// newCount returns the write of the item of a count that does not exist yet. With a zero time, the
// item does not expire.
func newCount(key table.Key, kind string, now time.Time, counts table.Attrs, expires time.Time) table.Write {
	put := record.New(key, kind, now, counts, nil)
	put.Item.Expires = expires
	return put
}

// counts are the keys of the counts of the quotas whose objects are made rarely.
var counts = map[Name]func(workspace string) table.Key{
	Deployments: keys.DeploymentCount,
	Webhooks:    keys.WebhookCount,
	AuthTokens:  keys.AuthTokenCount, // tokens that older versions have made are not counted
	Crons:       keys.AllCronCount,
}

// Take returns the write that changes the count by more, which may be negative, or the refusal
// if the quota has no room. The write fails when another request takes the last place first,
// so record.Decide asks again.
func (l Limits) Take(ctx context.Context, t table.Table, now time.Time, name Name, workspace string, more int64) (table.Write, error) {
	key, ok := counts[name]
	if !ok {
		return nil, fmt.Errorf("quota %s is not counted in one item", name)
	}
	c := record.Count{Key: key(workspace), Most: l.Of(name)}
	count, write, err := c.Change(ctx, t, now, more)
	if err == nil && more > 0 && count+more > c.Most {
		err = l.Refuse(name)
	}
	return write, err
}

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

// Placed is a change of the deployments of a workspace.
type Placed struct {
	// Deployments and Replicas are how many there are more; a number may be negative.
	Deployments, Replicas int64
	// Beyond lets the replicas be more than their limit: the platform itself makes the change.
	Beyond bool
}

// Place adds the write that changes the counts of a workspace's deployments and replicas, or
// returns the refusal if one of their quotas has no room.
func (l Limits) Place(ctx context.Context, t table.Table, now time.Time, o *record.Outbox, workspace string, more Placed) error {
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

// placed returns how many deployments a workspace has, and how many replicas are counted for them.
func placed(ctx context.Context, t table.Table, workspace string) (deployments, replicas int64, err error) {
	item, err := record.Get(ctx, t, "count", keys.DeploymentCount(workspace), nil)
	if err != nil {
		return 0, 0, err
	}
	if item != nil {
		return record.Counted(item), item.Int(attrReplicas), nil
	}
	c, _ := count(Deployments, workspace)
	deployments, err = c.Read(ctx, t)
	return deployments, 0, err
}

// count returns the count of a quota whose objects are made rarely.
func count(name Name, workspace string) (_ record.Count, ok bool) {
	switch name {
	case Deployments:
		return record.Count{Key: keys.DeploymentCount(workspace), Items: keys.DeploymentList(workspace)}, true
	case Webhooks:
		return record.Count{Key: keys.WebhookCount(workspace), Items: keys.Webhooks(workspace)}, true
	case AuthTokens: // tokens that older versions have made are not counted
		return record.Count{Key: keys.AuthTokenCount(workspace)}, true
	case Crons: // package cron adds the crons of a deployment that older versions have made
		return record.Count{Key: keys.AllCronCount(workspace)}, true
	}
	return record.Count{}, false
}

// Take returns the write that changes the count by more, which may be negative, or the refusal
// if the quota has no room. The write fails when another request takes the last place first,
// so record.Decide asks again.
func (l Limits) Take(ctx context.Context, t table.Table, now time.Time, name Name, workspace string, more int64) (table.Write, error) {
	c, ok := count(name, workspace)
	if !ok {
		return nil, fmt.Errorf("quota %s is not counted in one item", name)
	}
	c.Most = l.Of(name)
	there, write, err := c.Change(ctx, t, now, more)
	if err == nil && more > 0 && there+more > c.Most {
		err = l.Refuse(name)
	}
	return write, err
}

package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

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

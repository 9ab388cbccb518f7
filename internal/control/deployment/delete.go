package deployment

import (
	"context"
	"maps"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Deletion says how to delete a deployment.
type Deletion struct {
	// TracingProject deletes the tracing project too.
	TracingProject bool
	// Force hides a deployment that is already deleted at once, before the resources that it runs
	// on are gone. The teardown goes on. It leaves behind the resources that it cannot remove; the
	// caller that asked for Force has to remove them.
	Force bool
	// Window is for how long the deployment can be undeleted. If the deployment is already deleted,
	// Window can only shorten the time.
	Window time.Duration
	// Expect are the versions that the deletion was asked for.
	Expect record.Versions
}

// Delete takes a deployment out of its workspace's list, frees its name and starts the
// teardown. Deleting it again only ends its recovery window, if it has a recovery window.
func (s *Store) Delete(ctx context.Context, ref Ref, how Deletion) error {
	return record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		d, err := s.Get(ctx, ref)
		if err != nil {
			return o, err
		}
		if err := d.expected(how.Expect); err != nil {
			return o, err
		}
		switch deleted := d.Status == AwaitingDelete; {
		case how.Force && !deleted:
			return o, fault.New(fault.Invalid, "force applies to a deployment that was deleted before; deployment ID %s is %s.", ref.Deployment, d.Status)
		case !deleted:
			return s.deletion(ctx, d, how)
		default:
			return s.deleteAgain(ctx, d, how)
		}
	})
}

// deletion returns the writes that delete a deployment that lives.
func (s *Store) deletion(ctx context.Context, d Deployment, how Deletion) (record.Outbox, error) {
	now := s.now()
	var counted record.Outbox
	if err := s.cfg.Quotas.Rescale(ctx, s.table, now, &counted, d.Workspace, quota.Scale{Deployments: -1, Replicas: -d.replicas}); err != nil {
		return counted, err
	}
	var writes []table.Write
	d.Teardown++
	if how.Window > 0 {
		d.PurgeAt = now.Add(how.Window)
	} else {
		writes = d.release()
	}
	change := d.change(now, table.Attrs{
		attrStatus: string(AwaitingDelete), attrTeardown: int64(d.Teardown), attrPurge: clock.FormatOptional(d.PurgeAt), attrReplicas: int64(0),
	})
	change.Index = overdue(d.Deployment, now)
	change.Index[table.ByList] = keys.DeletedDeploymentEntry(d.Workspace, d.Deployment)
	o, err := s.outbox(ctx, d, []event.Event{d.newEvent(event.DeploymentDeleted)}, append(append(writes, d.unwatch(now)...), change,
		table.Delete{Key: keys.DeploymentName(d.Workspace, d.Name)},
		d.leaveProject(now, how.TracingProject),
		audit.New(ctx, audit.DeleteDeployment, d.Deployment, d.Name).Write(d.Workspace, now),
	)...)
	o.Join(counted)
	o.Then(s.starter(d, s.StartTeardown))
	return o, err
}

// deleteAgain returns the writes that the previous deletion has not done. It starts the teardown in
// any case: it finds nothing to do, or erases data that is kept elsewhere.
func (s *Store) deleteAgain(ctx context.Context, d Deployment, how Deletion) (o record.Outbox, err error) {
	if how.TracingProject {
		// A new deployment may have taken the project over.
		unowned := table.All(table.Equals(attrOwner, ""), table.Equals(attrProject, d.TracingProject))
		if _, err := record.Try(ctx, s.table, table.Delete{Key: keys.TracingProject(d.Workspace, d.Name), If: unowned}); err != nil {
			return o, err
		}
	}
	now := s.now()
	set, stopped := table.Attrs{}, d
	if how.Force {
		// The records of the releases stay until the teardown is done, because the teardown
		// finds the releases by these records.
		how.Window, set[attrForced] = 0, true
		o.Add(d.detach()...)
	}
	shorter := d.Recoverable(now) && now.Add(how.Window).Before(d.PurgeAt)
	if shorter {
		d.Teardown, d.PurgeAt, d.Purging = d.Teardown+1, now.Add(how.Window), how.Window <= 0
		set[attrTeardown], set[attrPurge], set[attrPurging] = int64(d.Teardown), clock.Format(d.PurgeAt), d.Purging
		o.Add(audit.New(ctx, audit.DeleteDeployment, d.Deployment, d.Name).Write(d.Workspace, now))
	}
	if len(set) > 0 {
		change := d.change(now, set)
		change.Index = map[table.Index]table.Key{}
		if how.Force {
			change.Index[table.ByList] = table.Key{}
		}
		if shorter {
			maps.Copy(change.Index, overdue(d.Deployment, now))
			o.Then(func(ctx context.Context) { s.stopTeardown(ctx, stopped, "Its recovery window ends earlier.") })
		}
		o.Add(change)
	}
	o.Then(s.starter(d, s.StartTeardown))
	return o, nil
}

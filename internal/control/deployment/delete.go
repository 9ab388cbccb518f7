package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Deletion says how to delete a deployment.
type Deletion struct {
	// TracingProject deletes the tracing project too.
	TracingProject bool
	// Force takes a deployment that was deleted before out of sight at once, without waiting until what it runs on is gone. The teardown goes on; what it cannot
	// remove it leaves behind, to who asked for it.
	Force bool
	// Window is for how long the deployment can be undeleted. Of one that was deleted before it can end the window earlier, and never later.
	Window time.Duration
	// Expect are the versions that the deletion was asked for.
	Expect Versions
}

// Delete takes a deployment out of its workspace's list, frees its name and starts the teardown. Deleting it again does nothing more than to end its recovery
// window, if it has one.
func (s *Store) Delete(ctx context.Context, ref Ref) error { return s.DeleteAs(ctx, ref, Deletion{}) }

// DeleteAs deletes a deployment in one of several ways.
func (s *Store) DeleteAs(ctx context.Context, ref Ref, how Deletion) error {
	for range contention {
		d, err := s.Get(ctx, ref)
		if err != nil {
			return err
		}
		deleted := d.Status == AwaitingDelete
		if err := how.Expect.check(d); err != nil {
			return err
		}
		var begun Deployment
		switch {
		case how.Force && !deleted:
			return fault.New(fault.Invalid, "force applies to a deployment that was deleted before; deployment ID %s is %s.", ref.Deployment, d.Status)
		case !deleted:
			begun, err = s.markDeleted(ctx, d, how)
		default:
			begun, err = s.deleteAgain(ctx, d, how)
		}
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return err
		}
		// A teardown that was begun goes on: it finds nothing to do, or erases what is kept elsewhere.
		s.begin(ctx, begun, s.StartTeardown)
		return nil
	}
	return fault.New(fault.Unavailable, "Deployment ID %s is changed too often to be deleted.", ref.Deployment)
}

func (s *Store) markDeleted(ctx context.Context, d Deployment, how Deletion) (Deployment, error) {
	now, writes := s.now(), []table.Write(nil)
	d.Teardown++
	if how.Window > 0 {
		d.PurgeAt = now.Add(how.Window)
	} else {
		writes = d.release()
	}
	change := d.change(now, table.Attrs{
		attrStatus: string(AwaitingDelete), attrTeardown: int64(d.Teardown), attrPurge: clock.FormatOptional(d.PurgeAt),
	})
	change.Index = overdue(d.Deployment, now)
	change.Index[table.ByList] = table.Key{}
	err := s.transact(ctx, d, append(append(writes, d.unwatch(now)...), change,
		table.Delete{Key: keys.DeploymentName(d.Workspace, d.Name)},
		d.leaveProject(now, how.TracingProject),
		audit.New(ctx, audit.DeleteDeployment, d.Deployment, d.Name).Write(d.Workspace, now),
	)...)
	if isOvertaken(err) {
		return d, errChanged
	}
	if err != nil {
		return d, fmt.Errorf("delete deployment: %w", err)
	}
	return d, nil
}

// deleteAgain does what a deletion asks for that the one before has not done.
func (s *Store) deleteAgain(ctx context.Context, d Deployment, how Deletion) (Deployment, error) {
	if how.TracingProject {
		if err := s.eraseProject(ctx, d); err != nil {
			return d, err
		}
	}
	now := s.now()
	set, stopped := table.Attrs{}, d
	var writes []table.Write
	if how.Force {
		// What it runs on is found through its records, so that these stay until the teardown is done.
		how.Window, set[attrForced] = 0, true
		writes = d.leave()
	}
	shorter := d.Recoverable(now) && now.Add(how.Window).Before(d.PurgeAt)
	if shorter {
		d.Teardown, d.PurgeAt, d.Purging = d.Teardown+1, now.Add(how.Window), how.Window <= 0
		set[attrTeardown], set[attrPurge], set[attrPurging] = int64(d.Teardown), clock.Format(d.PurgeAt), d.Purging
		writes = append(writes, audit.New(ctx, audit.DeleteDeployment, d.Deployment, d.Name).Write(d.Workspace, now))
	}
	if len(set) == 0 {
		return d, nil
	}
	change := d.change(now, set)
	if shorter {
		change.Index = overdue(d.Deployment, now)
	}
	err := s.table.Transact(ctx, append(writes, change)...)
	if isOvertaken(err) {
		return d, errChanged
	}
	if err != nil {
		return d, fmt.Errorf("delete deployment again: %w", err)
	}
	if shorter {
		s.stopTeardown(ctx, stopped, "Its recovery window ends earlier.")
	}
	return d, nil
}

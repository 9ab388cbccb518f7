package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/audit"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/table"
)

// Deletion says how to delete a deployment.
type Deletion struct {
	// TracingProject deletes the tracing project too.
	TracingProject bool
	// Force takes a deployment that was deleted before out of sight at once, without waiting until what it runs on is gone. The teardown goes on; what it cannot
	// remove it leaves behind, to who asked for it.
	Force bool
	// Expect are the versions that the deletion was asked for.
	Expect Versions
}

// Delete takes a deployment out of its workspace's list, frees its name and starts the teardown. Deleting it again does nothing more.
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
		switch {
		case how.Force && !deleted:
			return fault.New(fault.Invalid, "force applies to a deployment that was deleted before; deployment ID %s is %s.", ref.Deployment, d.Status)
		case !deleted:
			err = s.markDeleted(ctx, d, how.TracingProject)
		case how.TracingProject:
			err = s.eraseProject(ctx, d)
		}
		if err == nil && how.Force {
			err = s.hide(ctx, d)
		}
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return err
		}
		// A teardown that was begun goes on: it finds nothing to do, or erases what is kept elsewhere.
		s.begin(ctx, d, func(ctx context.Context, d Deployment) error { return s.StartTeardown(ctx, d.Ref) })
		return nil
	}
	return fault.New(fault.Unavailable, "Deployment ID %s is changed too often to be deleted.", ref.Deployment)
}

// hide takes a deployment out of everybody's sight but the teardown's, together with its place at a listener. What it runs on is found through its records, so that
// these stay until the teardown is done.
func (s *Store) hide(ctx context.Context, d Deployment) error {
	err := s.table.Transact(ctx, append(d.leave(), d.change(s.now(), table.Attrs{attrForced: true}))...)
	if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("delete deployment by force: %w", err)
	}
	return nil
}

func (s *Store) markDeleted(ctx context.Context, d Deployment, eraseProject bool) error {
	now := s.now()
	change := d.change(now, table.Attrs{attrStatus: string(AwaitingDelete)})
	change.Index = overdue(d.Deployment, now)
	change.Index[table.ByList] = table.Key{}
	err := s.transact(ctx, d, append(d.disconnect(now), change,
		table.Delete{Key: keys.DeploymentName(d.Workspace, d.Name)},
		d.leaveProject(now, eraseProject),
		audit.New(ctx, audit.DeleteDeployment, d.Deployment, d.Name).Write(d.Workspace, now),
	)...)
	if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("delete deployment: %w", err)
	}
	return nil
}

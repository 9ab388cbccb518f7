package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/audit"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/table"
)

// Deletion says how to delete a deployment.
type Deletion struct {
	// TracingProject deletes the tracing project too.
	TracingProject bool
	// Force erases what is stored of a deployment that was deleted before, without waiting until what it runs on is gone. Who asks for it cleans up.
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
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return err
		}
		// A teardown that was begun goes on: it finds nothing to do, or erases what is kept elsewhere.
		s.begin(ctx, d, func(ctx context.Context, d Deployment) error { return s.StartTeardown(ctx, d.Ref) })
		if how.Force {
			return s.eraseAll(ctx, ref)
		}
		return nil
	}
	return fault.New(fault.Unavailable, "Deployment ID %s is changed too often to be deleted.", ref.Deployment)
}

func (s *Store) eraseAll(ctx context.Context, ref Ref) error {
	for {
		more, err := s.EraseRevisions(ctx, ref, func(revision.Ref) error { return nil })
		if err != nil || !more {
			return err
		}
	}
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

package listener

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Patch is a request to change a listener. A nil member changes nothing.
type Patch struct {
	Version *string
	// K8sNamespaces replaces all namespaces when not nil; empty removes them.
	K8sNamespaces *[]string
	// ComputeType and ComputeID cannot be changed; the present value passes.
	ComputeType, ComputeID *string
	// Expect are the accepted versions of the listener; nil accepts any version.
	Expect record.Versions
}

// Patch changes a listener. A broken rule is a fault.Invalid; removing a namespace that a
// deployment runs in is a fault.Conflict.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (Listener, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Listener, record.Outbox, error) {
		var o record.Outbox
		l, err := s.Get(ctx, ref)
		if err != nil {
			return Listener{}, o, err
		}
		if err := l.expected(patch.Expect); err != nil {
			return Listener{}, o, err
		}
		next, changed, err := patch.apply(l)
		if err != nil || !changed {
			return l, o, err
		}
		if err := s.mayLose(ctx, l, next); err != nil {
			return Listener{}, o, err
		}
		next.Updated = s.now()
		set := table.Attrs{}
		if next.Version != nil {
			set[attrSoftware] = *next.Version
		}
		change := record.Change(ref.Key(), next.Updated, set, table.All(present(), l.unchanged()))
		change.Body = record.Encode(next.Spec)
		o.Add(change, l.audit(ctx, audit.UpdateListener, next.Updated))
		next.version++
		return next, o, nil
	})
}

// apply returns the listener as it would be after the patch, and whether that is a change.
func (p Patch) apply(l Listener) (next Listener, changed bool, err error) {
	r := new(rules)
	if p.ComputeType != nil && *p.ComputeType != l.ComputeType {
		r.Breaks("compute_type cannot be changed.")
	}
	if p.ComputeID != nil && *p.ComputeID != l.ComputeID {
		r.Breaks("compute_id cannot be changed.")
	}
	if err := r.Err(); err != nil {
		return Listener{}, false, err
	}
	next = l
	if p.Version != nil && (l.Version == nil || *l.Version != *p.Version) {
		next.Version, changed = p.Version, true
	}
	if p.K8sNamespaces != nil && !slices.Equal(*p.K8sNamespaces, l.ComputeConfig.K8sNamespaces) {
		next.ComputeConfig.K8sNamespaces, changed = *p.K8sNamespaces, true
	}
	return next, changed, validate(next)
}

// mayLose refuses to remove a namespace that is in use. A deployment that is added meanwhile
// changes the listener's version.
func (s *Store) mayLose(ctx context.Context, before, after Listener) error {
	for _, namespace := range before.ComputeConfig.K8sNamespaces {
		if after.Has(namespace) {
			continue
		}
		deployment, err := s.user(ctx, keys.ListenerNamespaceUses(before.Workspace, before.Listener, namespace))
		if err != nil {
			return err
		}
		if deployment != "" {
			return fault.New(fault.Conflict, "compute_config.k8s_namespaces: deployment ID %s runs in the namespace %s.", deployment, namespace)
		}
	}
	return nil
}

// user returns one of the deployments that a query for uses finds, "" without a deployment.
func (s *Store) user(ctx context.Context, query table.Query) (deployment string, err error) {
	use, err := record.First(ctx, s.table, "uses of listener", query)
	if err != nil || use == nil {
		return "", err
	}
	return keys.ListenerUseDeployment(use.Key), nil
}

// Delete deletes a listener. A listener that deployments use, or that is online and still
// removes their releases, is a fault.Conflict. If the listener is away, its remaining orders
// to remove releases are forgotten, because no other process could carry them out. expect are
// the accepted versions: the listener must have one of them; nil accepts any version.
func (s *Store) Delete(ctx context.Context, ref Ref, expect record.Versions) error {
	err := record.Decide(ctx, s.table, func(ctx context.Context) (record.Outbox, error) {
		l, err := s.get(ctx, ref)
		if err != nil || l.leaving { // an earlier call did not reach its end
			return record.Outbox{}, err
		}
		if err := l.expected(expect); err != nil {
			return record.Outbox{}, err
		}
		if err := s.mayGo(ctx, l); err != nil {
			return record.Outbox{}, err
		}
		now := s.now()
		return record.Write(
			record.Change(ref.Key(), now, table.Attrs{attrLeaving: true}, table.All(present(), l.unchanged())),
			table.Delete{Key: keys.ListenerName(l.Workspace, l.ComputeType, l.ComputeID)},
			l.audit(ctx, audit.DeleteListener, now),
		), nil
	})
	if err != nil {
		return err
	}
	return s.erase(ctx, ref)
}

func (s *Store) mayGo(ctx context.Context, l Listener) error {
	deployment, err := s.user(ctx, keys.ListenerUses(l.Workspace, l.Listener))
	if err != nil {
		return err
	}
	if deployment != "" {
		return fault.New(fault.Conflict, "Listener ID %s is used by deployment ID %s.", l.Listener, deployment)
	}
	task, err := record.First(ctx, s.table, "tasks of listener", keys.ListenerTasks(l.Workspace, l.Listener))
	if err != nil {
		return err
	}
	if task != nil && l.Online(s.now()) {
		return fault.New(fault.Conflict, "Listener ID %s still removes releases of deleted deployments. Try again in a moment.", l.Listener)
	}
	return nil
}

// erase removes the records of a listener, the listener itself with the last of them. No task can
// be added while the listener is leaving.
func (s *Store) erase(ctx context.Context, ref Ref) error {
	query := keys.ListenerTasks(ref.Workspace, ref.Listener)
	query.Limit = 40 // two writes for each
	var writes []table.Write
	for items, err := range table.Pages(ctx, s.table, query) {
		if err == nil && len(writes) > 0 {
			err = s.table.Transact(ctx, writes...)
		}
		if err != nil {
			return fmt.Errorf("erase listener: %w", err)
		}
		writes = nil
		for _, item := range items {
			t, err := decodeTask(ref, item)
			if err != nil {
				return err
			}
			writes = append(writes, table.Delete{Key: t.key()}, table.Delete{Key: releaseKey(t.Ref)})
		}
	}
	writes = append(writes, table.Delete{Key: keys.ListenerWake(ref.Workspace, ref.Listener)}, table.Delete{Key: ref.Key()})
	if err := s.table.Transact(ctx, writes...); err != nil {
		return fmt.Errorf("erase listener: %w", err)
	}
	return nil
}

package listener

import (
	"context"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Namespace is a namespace of a listener, where the releases of deployments run.
type Namespace struct {
	Ref
	Name string
	// read is the listener at the time of FindNamespace.
	read Listener
}

// FindNamespace returns the namespace that a deployment's listener_id and listener_config ask for.
// The name "" means the only namespace of the listener. If the namespace is not available, the
// error is a fault.Invalid that names the field.
func (s *Store) FindNamespace(ctx context.Context, workspace, listenerID, namespace string) (Namespace, error) {
	ref := Ref{Workspace: workspace, Listener: listenerID}
	l, err := s.Get(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return Namespace{}, fault.New(fault.Invalid, "source_config.listener_id: listener ID %s not found.", listenerID)
	}
	if err != nil {
		return Namespace{}, err
	}
	const field = "source_config.listener_config.k8s_namespace"
	all := l.ComputeConfig.K8sNamespaces
	switch {
	case len(all) == 0:
		return Namespace{}, fault.New(fault.Invalid, "source_config.listener_id: listener ID %s has no namespaces to run in. Set its compute_config.k8s_namespaces.", listenerID)
	case namespace == "" && len(all) > 1:
		return Namespace{}, fault.New(fault.Invalid, "%s must name one of the namespaces of listener ID %s: %s.", field, listenerID, strings.Join(all, ", "))
	case namespace == "":
		namespace = all[0]
	case !l.Has(namespace):
		return Namespace{}, fault.New(fault.Invalid, "%s: %q is not a namespace of listener ID %s, which has %s.", field, namespace, listenerID, strings.Join(all, ", "))
	}
	return Namespace{Ref: ref, Name: namespace, read: l}, nil
}

// AddUse returns the writes that note a deployment at its namespace. They belong into the
// transaction that creates the deployment. When one of their conditions fails, the listener was
// changed since FindNamespace, and the caller must call FindNamespace again.
func (n Namespace) AddUse(deployment string, now time.Time) []table.Write {
	return []table.Write{
		// The write increases the version, so that a Patch or a Delete that looked for uses
		// before this write looks again. It is no change for users.
		table.Update{Key: n.Key(), Add: map[string]int64{record.Version: 1}, If: table.All(present(), n.read.unchanged())},
		record.New(keys.ListenerUse(n.Workspace, n.Listener, n.Name, deployment), "listener_use", now, nil, nil),
	}
}

// RemoveUse returns the write that removes a deployment's note. It belongs into the transaction
// that erases the deployment, when all its releases have been removed: until then its listener
// must not be deleted.
func RemoveUse(at Ref, namespace, deployment string) table.Write {
	return table.Delete{Key: keys.ListenerUse(at.Workspace, at.Listener, namespace, deployment)}
}

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

// Place is where a deployment's releases run: a namespace of a listener.
type Place struct {
	Ref
	Namespace string
	// as is the listener as it was when the place was checked.
	as Listener
}

// Check returns the place that a deployment's listener_id and listener_config ask for. An
// empty namespace, "", means the only namespace of the listener. The error of a place that is
// not available is a fault.Invalid that names the field.
func (s *Store) Check(ctx context.Context, workspace, listenerID, namespace string) (Place, error) {
	ref := Ref{Workspace: workspace, Listener: listenerID}
	l, err := s.Get(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return Place{}, fault.New(fault.Invalid, "source_config.listener_id: listener ID %s not found.", listenerID)
	}
	if err != nil {
		return Place{}, err
	}
	const field = "source_config.listener_config.k8s_namespace"
	all := l.ComputeConfig.K8sNamespaces
	switch {
	case len(all) == 0:
		return Place{}, fault.New(fault.Invalid, "source_config.listener_id: listener ID %s has no namespaces to run in. Set its compute_config.k8s_namespaces.", listenerID)
	case namespace == "" && len(all) > 1:
		return Place{}, fault.New(fault.Invalid, "%s must name one of the namespaces of listener ID %s: %s.", field, listenerID, strings.Join(all, ", "))
	case namespace == "":
		namespace = all[0]
	case !l.Has(namespace):
		return Place{}, fault.New(fault.Invalid, "%s: %q is not a namespace of listener ID %s, which has %s.", field, namespace, listenerID, strings.Join(all, ", "))
	}
	return Place{Ref: ref, Namespace: namespace, as: l}, nil
}

// Use returns the writes that note a deployment at its place. They belong into the transaction
// that creates the deployment. When one of their conditions fails, the listener was changed
// since Check, and the caller must call Check again.
func (p Place) Use(deployment string, now time.Time) []table.Write {
	return []table.Write{
		// The write increases the version, so that a Patch or a Delete that looked for uses
		// before this write looks again. It is no change for users.
		table.Update{Key: p.Key(), Add: map[string]int64{record.Version: 1}, If: table.All(present(), p.as.unchanged())},
		record.New(keys.ListenerUse(p.Workspace, p.Listener, p.Namespace, deployment), "listener_use", now, nil, nil),
	}
}

// Vacate returns the write that removes a deployment's note. It belongs into the transaction
// that erases the deployment, when all its releases have been removed: until then its listener
// must not be deleted.
func Vacate(place Ref, namespace, deployment string) table.Write {
	return table.Delete{Key: keys.ListenerUse(place.Workspace, place.Listener, namespace, deployment)}
}

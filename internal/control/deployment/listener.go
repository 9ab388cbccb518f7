package deployment

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Remote reports whether a listener runs the deployment's releases.
func (d Deployment) Remote() bool { return d.SourceConfig.ListenerID != nil }

// Namespace is where the listener of a Remote deployment runs its releases. It is stored even when
// the request left the choice to the listener.
func (d Deployment) Namespace() string { return d.SourceConfig.ListenerConfig.namespace() }

func (c *ListenerConfig) namespace() string {
	if c == nil {
		return ""
	}
	return optional.Text(c.K8sNamespace)
}

// supported checks that the place where a deployment runs supports its ResourceSpec and its
// variables. A listener reports this itself, when it runs the deployment.
func (s *Store) supported(d Deployment, secrets []Secret) error {
	if s.cfg.Unsupported == nil || d.Remote() {
		return nil
	}
	names := make([]string, 0, len(secrets)+len(d.SecretReferences))
	for _, secret := range secrets {
		names = append(names, secret.Name)
	}
	for _, reference := range d.SecretReferences {
		names = append(names, reference.Name)
	}
	r := rules{fault.Rules{Broken: s.cfg.Unsupported(d.SourceConfig.ResourceSpec, names)}}
	return r.Err()
}

// reserveNamespace finds the requested namespace for a deployment that runs at a listener, notes it
// on the deployment, and returns the writes that note the deployment there.
func (s *Store) reserveNamespace(ctx context.Context, d *Deployment, namespace string, now time.Time) ([]table.Write, error) {
	if !d.Remote() {
		return nil, nil
	}
	chosen, err := s.cfg.Listeners.FindNamespace(ctx, d.Workspace, *d.SourceConfig.ListenerID, namespace)
	if err != nil {
		return nil, err
	}
	d.SourceConfig.ListenerConfig = &ListenerConfig{K8sNamespace: &chosen.Name}
	return chosen.AddUse(d.Deployment, now), nil
}

// detach returns the writes that remove the deployment from its listener and its integration.
func (d Deployment) detach() []table.Write {
	writes := d.release()
	if d.Remote() {
		at := listener.Ref{Workspace: d.Workspace, Listener: *d.SourceConfig.ListenerID}
		writes = append(writes, listener.RemoveUse(at, d.Namespace(), d.Deployment))
	}
	return writes
}

package deployment_test

import (
	"context"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/table"
)

func (f *fixture) newListener(t *testing.T, computeID string, namespaces ...string) listener.Listener {
	t.Helper()
	l, err := f.listeners.Create(t.Context(), listener.NewListener{Workspace: workspace, Spec: listener.Spec{
		ComputeType: "k8s", ComputeID: computeID, ComputeConfig: listener.ComputeConfig{K8sNamespaces: namespaces},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// at is a request to create a deployment that a listener runs; with an empty namespace the
// listener chooses the namespace.
func at(l listener.Listener, name, namespace string) deployment.NewDeployment {
	r := fromImage(name)
	r.SourceConfig.ListenerID = &l.Listener
	if namespace != "" {
		r.SourceConfig.ListenerConfig = &deployment.ListenerConfig{K8sNamespace: &namespace}
	}
	return r
}

// TestADeploymentTakesItsPlace checks that the deployment holds its listener and namespace
// from its creation until its last part is erased.
func TestADeploymentTakesItsPlace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.newListener(t, "cluster", "agents")
	check := at(l, "weather", "")
	check.ValidateOnly = true
	if d, err := f.Create(t.Context(), check); err != nil || d.Namespace() != "agents" {
		t.Fatalf("validate_only: got %q, %v", d.Namespace(), err)
	}
	d, err := f.Create(t.Context(), at(l, "weather", ""))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := f.Get(t.Context(), d.Ref)
	if err != nil || !stored.Remote() || stored.Namespace() != "agents" {
		t.Fatalf("got %+v, %v", stored.SourceConfig, err)
	}
	used := func() {
		t.Helper()
		if err := f.listeners.Delete(t.Context(), l.Ref, nil); !fault.Is(err, fault.Conflict) {
			t.Errorf("deleting the listener: got %v", err)
		}
		if _, err := f.listeners.Patch(t.Context(), l.Ref, listener.Patch{K8sNamespaces: &[]string{"other"}}); !fault.Is(err, fault.Conflict) {
			t.Errorf("taking the namespace away: got %v", err)
		}
	}
	used()
	if err := f.Delete(t.Context(), d.Ref, deployment.Deletion{}); err != nil {
		t.Fatal(err)
	}
	used()
	if more, err := f.EraseRevisions(t.Context(), d.Ref, func(revision.Ref) error { return nil }); more || err != nil {
		t.Fatal(more, err)
	}
	if err := f.listeners.Delete(t.Context(), l.Ref, nil); err != nil {
		t.Errorf("nothing uses the listener any more: %v", err)
	}
}

// TestAPlaceThatChangesMeanwhile changes the listener between the check of the place and the
// creation of a deployment there.
func TestAPlaceThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*testing.T, *fixture, listener.Listener)
		want   string
		fails  bool
	}{
		"another namespace": {func(t *testing.T, f *fixture, l listener.Listener) {
			if _, err := f.listeners.Patch(t.Context(), l.Ref, listener.Patch{K8sNamespaces: &[]string{"other"}}); err != nil {
				t.Error(err)
			}
		}, "other", false},
		"a deployment beside it": {func(t *testing.T, f *fixture, l listener.Listener) {
			if _, err := f.Create(t.Context(), at(l, "beside", "")); err != nil {
				t.Error(err)
			}
		}, "agents", false},
		"no listener any more": {func(t *testing.T, f *fixture, l listener.Listener) {
			if err := f.listeners.Delete(t.Context(), l.Ref, nil); err != nil {
				t.Error(err)
			}
		}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			l := f.newListener(t, "cluster", "agents")
			slow := &interrupted{Table: f.table, before: func() { c.change(t, f, l) }}
			store := deployment.NewStore(deployment.Config{
				Table: slow, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Listeners: f.listeners,
			})
			d, err := store.Create(t.Context(), at(l, "weather", ""))
			if c.fails {
				if !fault.Is(err, fault.Invalid) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || d.Namespace() != c.want {
				t.Errorf("got %q, %v; want %q", d.Namespace(), err, c.want)
			}
		})
	}
}

// interrupted is a table that calls a function before its first transaction.
type interrupted struct {
	table.Table

	before func()
}

func (i *interrupted) Transact(ctx context.Context, writes ...table.Write) error {
	if before := i.before; before != nil {
		i.before = nil
		before()
	}
	return i.Table.Transact(ctx, writes...)
}

package deployment_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// scaled returns a size of replicas.
func scaled(replicas int) deployment.SourceConfig {
	return deployment.SourceConfig{ResourceSpec: json.RawMessage(fmt.Sprintf(`{"max_scale":%d}`, replicas))}
}

// wantReplicas checks how many replicas are counted for the workspace.
func (f *fixture) wantReplicas(t *testing.T, want int64) {
	t.Helper()
	uses, err := (&quota.Usage{Table: f.table}).Of(t.Context(), workspace)
	check.Must(t, err)
	for _, use := range uses {
		if use.Name == quota.Replicas && *use.Used != want {
			t.Errorf("%d replicas are counted, want %d", *use.Used, want)
		}
	}
}

// TestReplicasAreCounted for each source. A listener's replicas run elsewhere, and an automatic
// rollback is not refused.
func TestReplicasAreCounted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	limited := func(most int64) {
		f.Store = deployment.NewStore(deployment.Config{
			Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Listeners: f.listeners, Log: slog.New(slog.DiscardHandler),
			Quotas: quota.Limits{}.With(quota.Replicas, most),
		})
	}
	limited(14)
	f.create(t, fromGit("built"))
	f.wantReplicas(t, 1)
	prod := fromGit("prod")
	prod.SourceConfig.DeploymentType = new("prod")
	f.create(t, prod)
	f.wantReplicas(t, 11)
	elsewhere := at(f.newListener(t, "cluster", "agents"), "elsewhere", "")
	elsewhere.SourceConfig.ResourceSpec = scaled(100).ResourceSpec
	f.create(t, elsewhere)
	f.wantReplicas(t, 11)

	image := fromImage("image")
	image.SourceConfig = scaled(3)
	d := f.create(t, image)
	large := d.Latest
	d, err := f.Patch(t.Context(), d.Ref, deployment.Patch{SourceConfig: scaled(1)})
	check.Must(t, err)
	f.wantReplicas(t, 12)
	limited(12)
	if d, err = f.Get(t.Context(), d.Ref); err != nil {
		t.Fatal(err)
	}
	d.Busy, d.Active, d.Previous = false, d.Latest, large
	_, active, err := f.GetRevision(t.Context(), d.Revision(d.Active))
	check.Must(t, err)
	check.Must(t, f.RollBack(t.Context(), d, active, "It crashed."))
	f.wantReplicas(t, 14)
	if _, err := f.Patch(t.Context(), d.Ref, deployment.Patch{SourceConfig: scaled(4)}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a change to more replicas: %v", err)
	}
	if _, err := f.Patch(t.Context(), d.Ref, deployment.Patch{RevisionConfig: revision.Config{ImageURI: new("registry.test/agent:2")}}); err != nil {
		t.Errorf("a change to as many replicas: %v", err)
	}
	check.Must(t, f.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	f.wantReplicas(t, 11)
}

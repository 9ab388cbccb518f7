package deployment_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
)

// TestWhatCannotBeHadIsRefused asks for a volume in a place that has no volumes, and for a
// volume that needs a secret.
func TestWhatCannotBeHadIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	store := deployment.NewStore(deployment.Config{
		Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Listeners: f.listeners, Integrations: f.integrations,
		Unsupported: func(spec json.RawMessage, secrets []string) []string {
			if strings.Contains(string(spec), "volumes") && strings.Join(secrets, " ") != "KEY" {
				return []string{"source_config.resource_spec.volumes is not to be had."}
			}
			return nil
		},
	})
	want := func(err error) {
		t.Helper()
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "resource_spec.volumes is not to be had.") {
			t.Errorf("got %v", err)
		}
	}
	volumes := json.RawMessage(`{"volumes":[{"name":"a","emptyDir":{}}]}`)
	request := fromImage("a")
	request.SourceConfig.ResourceSpec = volumes
	_, err := store.Create(t.Context(), request)
	want(err)
	request.Secrets = []deployment.Secret{{Name: "KEY", Value: "v"}}
	d, err := store.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Patch(t.Context(), d.Ref, deployment.Patch{Secrets: &[]deployment.Secret{}})
	want(err)
	f.keep(t, "search", map[string]string{"a": "v"})
	references := to("KEY search a")
	if _, err := store.Patch(t.Context(), d.Ref, deployment.Patch{Secrets: &[]deployment.Secret{}, SecretReferences: &references, ValidateOnly: true}); err != nil {
		t.Errorf("what is referred to counts: %v", err)
	}
	if _, err := store.Patch(t.Context(), d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{ResourceSpec: volumes}}); err != nil {
		t.Errorf("the secrets that are there count: %v", err)
	}
	other, err := store.Create(t.Context(), fromImage("b"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Patch(t.Context(), other.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{ResourceSpec: volumes}})
	want(err)
}

package rollout

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestAListenerIsToldWhereAndWhatToRun checks the release of a deployment that a listener
// runs: its ResourceSpec has the defaults filled in.
func TestAListenerIsToldWhereAndWhatToRun(t *testing.T) {
	t.Parallel()
	key := fixtures.Key(t)
	r := New(Config{Deployments: deployment.NewStore(deployment.Config{Sealer: key, Now: clock.System}), Hasher: key})
	rev := revision.Revision{Ref: revision.Ref{Workspace: "w", Deployment: "d", Revision: "r"}, Spec: revision.Spec{
		Source: revision.ExternalDocker, Config: revision.Config{ImageURI: new("image")}, ResourceSpec: json.RawMessage(`{"db_cpu":0.5,"labels":{"a":"b"}}`),
	}}
	d := deployment.Deployment{Spec: deployment.Spec{Name: "weather", SourceConfig: deployment.SourceConfig{ListenerID: new("l")}}}
	for _, namespace := range []string{"", "agents"} {
		if namespace != "" {
			d.SourceConfig.ListenerConfig = &deployment.ListenerConfig{K8sNamespace: &namespace}
		}
		got, err := r.release(t.Context(), d, rev)
		check.Must(t, err)
		want := compute.Placement{Listener: "l", Namespace: namespace}
		if diff := cmp.Diff(want, got.Placement); diff != "" || got.Artifact.Image != "image" {
			t.Errorf("image %q, placement (-want +got):\n%s", got.Artifact.Image, diff)
		}
		if want := `{"db_cpu":0.5,"db_cpu_limit":1,"labels":{"a":"b"}}`; string(got.ResourceSpec) != want {
			t.Errorf("ResourceSpec %s, want %s", got.ResourceSpec, want)
		}
	}
}

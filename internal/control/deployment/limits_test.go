package deployment_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// TestRunLimits checks that the limits count all replicas that a release may have, so that no
// run waits while one more replica could be started for it.
func TestRunLimits(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const timeout = 1500 * time.Millisecond
	settings := []deployment.Secret{{Name: "N_JOBS_PER_WORKER", Value: "3"}, {Name: "BG_JOB_TIMEOUT_SECS", Value: "1.5"}}
	for name, c := range map[string]struct {
		request deployment.NewDeployment
		secrets []deployment.Secret
		want    compute.RunLimits
	}{
		"dev":     {typed(fromGit("dev"), "dev"), settings, compute.RunLimits{Jobs: 3, Timeout: timeout}},
		"prod":    {typed(fromGit("prod"), "prod"), settings, compute.RunLimits{Jobs: 30, Timeout: timeout, Scales: true}},
		"unset":   {typed(fromGit("unset"), "prod"), nil, compute.RunLimits{Scales: true}},
		"wrong":   {fromGit("wrong"), []deployment.Secret{{Name: "N_JOBS_PER_WORKER", Value: "-1"}, {Name: "BG_JOB_TIMEOUT_SECS", Value: "soon"}}, compute.RunLimits{}},
		"image":   {sized(fromImage("image"), `{"min_scale":1,"max_scale":4}`), settings, compute.RunLimits{Jobs: 12, Timeout: timeout, Scales: true}},
		"minimum": {sized(fromImage("minimum"), `{"min_scale":2}`), settings, compute.RunLimits{Jobs: 6, Timeout: timeout}},
	} {
		c.request.Secrets = c.secrets
		d := f.create(t, c.request)
		got, err := f.RunLimits(t.Context(), compute.Ref(d.Revision(d.Latest)))
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func typed(request deployment.NewDeployment, kind string) deployment.NewDeployment {
	request.SourceConfig.DeploymentType = &kind
	return request
}

func sized(request deployment.NewDeployment, spec string) deployment.NewDeployment {
	request.SourceConfig.ResourceSpec = json.RawMessage(spec)
	return request
}

// BenchmarkRunLimits reads the limits of a release with two secrets.
func BenchmarkRunLimits(b *testing.B) {
	f := setUp(b)
	request := fromGit("limits")
	request.Secrets = []deployment.Secret{{Name: "N_JOBS_PER_WORKER", Value: "3"}, {Name: "KEY", Value: "open-sesame"}}
	d := f.create(b, request)
	for b.Loop() {
		if _, err := f.RunLimits(b.Context(), compute.Ref(d.Revision(d.Latest))); err != nil {
			b.Fatal(err)
		}
	}
}

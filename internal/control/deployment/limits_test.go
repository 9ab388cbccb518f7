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
	settings := []deployment.Secret{{Name: "N_JOBS_PER_WORKER", Value: "3"}, {Name: "BG_JOB_TIMEOUT_SECS", Value: "1.5"}}
	for name, c := range map[string]struct {
		request deployment.NewDeployment
		secrets []deployment.Secret
		jobs    int
		timeout time.Duration
	}{
		"dev":     {typed(fromGit("dev"), "dev"), settings, 3, 1500 * time.Millisecond},
		"prod":    {typed(fromGit("prod"), "prod"), settings, 30, 1500 * time.Millisecond},
		"unset":   {typed(fromGit("unset"), "prod"), nil, 0, 0},
		"wrong":   {fromGit("wrong"), []deployment.Secret{{Name: "N_JOBS_PER_WORKER", Value: "-1"}, {Name: "BG_JOB_TIMEOUT_SECS", Value: "soon"}}, 0, 0},
		"image":   {sized(fromImage("image"), `{"min_scale":1,"max_scale":4}`), settings, 12, 1500 * time.Millisecond},
		"minimum": {sized(fromImage("minimum"), `{"min_scale":2}`), settings, 6, 1500 * time.Millisecond},
	} {
		c.request.Secrets = c.secrets
		d := f.create(t, c.request)
		jobs, timeout, err := f.RunLimits(t.Context(), compute.Ref(d.Revision(d.Latest)))
		if err != nil || jobs != c.jobs || timeout != c.timeout {
			t.Errorf("%s: got %d, %s, %v; want %d, %s", name, jobs, timeout, err, c.jobs, c.timeout)
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
		if _, _, err := f.RunLimits(b.Context(), compute.Ref(d.Revision(d.Latest))); err != nil {
			b.Fatal(err)
		}
	}
}

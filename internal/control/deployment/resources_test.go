package deployment_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

func TestResourcesOfAnImage(t *testing.T) {
	t.Parallel()
	d := deployment.Deployment{Spec: deployment.Spec{Source: revision.ExternalDocker}}
	for spec, want := range map[string]compute.Resources{
		``:     {},
		`{}`:   {},
		`null`: {},
		`{"cpu":0.5,"memory_mb":1024,"min_scale":1,"max_scale":3,"labels":{"a":"b"},"queue_cpu":9}`: {CPU: 1, MemoryMB: 2048, MinScale: 1, MaxScale: 3},
		`{"cpu":1,"cpu_limit":1,"memory_mb":1024,"memory_limit_mb":null,"max_scale":null}`:          {CPU: 1, MemoryMB: 2048},
		`{"memory_mb":1024,"memory_limit_mb":4096}`:                                                 {MemoryMB: 4096},
		`{"memory_mb":1024,"memory_limit_mb":512,"cpu_limit":3}`:                                    {CPU: 3, MemoryMB: 1024},
	} {
		got, err := d.Resources(revision.Revision{Spec: revision.Spec{ResourceSpec: json.RawMessage(spec)}})
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", spec, got, err, want)
		}
	}
	if _, err := d.Resources(revision.Revision{Spec: revision.Spec{ResourceSpec: json.RawMessage(`[]`)}}); err == nil {
		t.Error("a list: got no error")
	}
}

func TestResourcesOfATypedDeployment(t *testing.T) {
	t.Parallel()
	dev := compute.Resources{CPU: 1, MemoryMB: 1024, MaxScale: 1}
	for kind, want := range map[string]compute.Resources{
		"": dev, "dev_free": dev, "dev": dev, "prod": {CPU: 2, MemoryMB: 2048, MinScale: 1, MaxScale: 10},
		"dev_zero": dev, "dev_free_zero": dev,
	} {
		for _, source := range []revision.Source{revision.GitHub, revision.InternalSource, revision.InternalDocker} {
			d := deployment.Deployment{Spec: deployment.Spec{Source: source}}
			if kind != "" {
				d.SourceConfig.DeploymentType = &kind
			}
			if got, err := d.Resources(revision.Revision{}); err != nil || got != want {
				t.Errorf("%s, %q: got %+v, %v; want %+v", source, kind, got, err, want)
			}
		}
	}
}

// TestResourcesOfATier gives each size to a type: only the number of replicas still comes from
// the type.
func TestResourcesOfATier(t *testing.T) {
	t.Parallel()
	prod := "prod"
	for tier, want := range map[string]compute.Resources{
		"SERVERLESS_S": {CPU: 1, MemoryMB: 2048}, "SERVERLESS_M": {CPU: 2, MemoryMB: 5120}, "SERVERLESS_L": {CPU: 4, MemoryMB: 9216},
		"DEDICATED_S": {CPU: 3, MemoryMB: 6144}, "DEDICATED_M": {CPU: 5, MemoryMB: 12288}, "DEDICATED_L": {CPU: 10, MemoryMB: 24576},
	} {
		d := deployment.Deployment{Spec: deployment.Spec{Source: revision.GitHub, SourceConfig: deployment.SourceConfig{DeploymentType: &prod}}}
		want.MinScale, want.MaxScale = 1, 10
		if got, err := d.Resources(revision.Revision{Spec: revision.Spec{ComputeTier: &tier}}); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", tier, got, err, want)
		}
	}
}

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
		"huge":    {typed(fromGit("huge"), "prod"), []deployment.Secret{{Name: "N_JOBS_PER_WORKER", Value: fmt.Sprint(math.MaxInt)}}, compute.RunLimits{Jobs: 10_000_000, Scales: true}},
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

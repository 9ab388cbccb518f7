package deployment_test

import (
	"encoding/json"
	"testing"

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

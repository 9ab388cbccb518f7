package deployment

import (
	"encoding/json"
	"fmt"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Types of deployments. Deployments of the free types cost nothing, and count as free.
const (
	freeType     = "dev_free"
	devType      = "dev"
	prodType     = "prod"
	zeroType     = "dev_zero"
	freeZeroType = "dev_free_zero"
)

// isFree reports whether deployments of a type cost nothing.
func isFree(kind string) bool { return kind == freeType || kind == freeZeroType }

// typeResources are the resources that each replica of an agent may use, and the number of
// replicas, by the deployment's type. Only a compute.Sleeper goes down to zero replicas: a
// person who wants an agent that never sleeps chooses prod.
var typeResources = map[string]compute.Resources{
	freeType:     {CPU: 1, MemoryMB: 1024, MinScale: 0, MaxScale: 1},
	devType:      {CPU: 1, MemoryMB: 1024, MinScale: 0, MaxScale: 1},
	prodType:     {CPU: 2, MemoryMB: 2048, MinScale: 1, MaxScale: 10},
	zeroType:     {CPU: 1, MemoryMB: 1024, MinScale: 0, MaxScale: 1},
	freeZeroType: {CPU: 1, MemoryMB: 1024, MinScale: 0, MaxScale: 1},
}

// mostReplicas returns how many replicas the newest revision may have at most, as the
// workspace's quota counts them.
func (d Deployment) mostReplicas() (int64, error) {
	if !d.hasSource() || d.Remote() {
		return 0, nil
	}
	resources, err := d.Resources(revision.Revision{Spec: d.revisionSpec()})
	if err != nil {
		return 0, err
	}
	return int64(resources.OrDefaults().MaxScale), nil
}

// Resources returns the resources of a revision's agent. For an external image the
// ResourceSpec defines them, defaults included: the limits are what a replica may use. A
// target of one size gives the limits to the replica from the start. A limit below its request
// is ignored. For all other sources the deployment's type defines the resources; a deployment
// without a type is a dev.
func (d Deployment) Resources(rev revision.Revision) (compute.Resources, error) {
	if d.Source != revision.ExternalDocker {
		kind := devType
		if d.SourceConfig.DeploymentType != nil {
			kind = *d.SourceConfig.DeploymentType
		}
		resources := typeResources[kind]
		if rev.ComputeTier != nil {
			size := tiers[*rev.ComputeTier]
			resources.CPU, resources.MemoryMB = size.cpu, size.memoryMB
		}
		return resources, nil
	}
	effective, err := rev.Effective()
	if err != nil {
		return compute.Resources{}, fmt.Errorf("revision %s: %w", rev.Revision, err)
	}
	if effective == nil {
		return compute.Resources{}, nil
	}
	var spec struct {
		CPU           float64 `json:"cpu"`
		CPULimit      float64 `json:"cpu_limit"`
		MemoryMB      int     `json:"memory_mb"`
		MemoryLimitMB int     `json:"memory_limit_mb"`
		MinScale      int     `json:"min_scale"`
		MaxScale      int     `json:"max_scale"`
	}
	if err := json.Unmarshal(effective, &spec); err != nil {
		return compute.Resources{}, fmt.Errorf("decode resource_spec of revision %s: %w", rev.Revision, err)
	}
	return compute.Resources{
		CPU: max(spec.CPU, spec.CPULimit), MemoryMB: max(spec.MemoryMB, spec.MemoryLimitMB), MinScale: spec.MinScale, MaxScale: spec.MaxScale,
	}, nil
}

package deployment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// isFree reports whether deployments of a type cost nothing.
func isFree(kind string) bool { return kind == "dev_free" || kind == "dev_free_zero" }

// defaultType is the type of a deployment without a type.
const defaultType = "dev"

// typeResources are the resources that each replica of an agent may use, and the number of
// replicas, by the deployment's type. Only a target of one machine goes down to zero replicas: a
// person who wants an agent that never sleeps chooses prod.
var typeResources = map[string]compute.Resources{
	"dev_free":      {CPU: 1, MemoryMB: 1024, MinScale: 0, MaxScale: 1},
	defaultType:     {CPU: 1, MemoryMB: 1024, MinScale: 0, MaxScale: 1},
	"prod":          {CPU: 2, MemoryMB: 2048, MinScale: 1, MaxScale: 10},
	"dev_zero":      {CPU: 1, MemoryMB: 1024, MinScale: 0, MaxScale: 1},
	"dev_free_zero": {CPU: 1, MemoryMB: 1024, MinScale: 0, MaxScale: 1},
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
		resources := typeResources[cmp.Or(optional.Text(d.SourceConfig.DeploymentType), defaultType)]
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

// size is the size of a replica.
type size struct {
	cpu      float64
	memoryMB int
	// dedicated tiers may have a database of their own.
	dedicated bool
}

// tiers are the sizes that a deployment may get instead of the size of its type.
var tiers = map[string]size{
	"SERVERLESS_S": {cpu: 1, memoryMB: 2 << 10}, "SERVERLESS_M": {cpu: 2, memoryMB: 5 << 10}, "SERVERLESS_L": {cpu: 4, memoryMB: 9 << 10},
	"DEDICATED_S": {cpu: 3, memoryMB: 6 << 10, dedicated: true}, "DEDICATED_M": {cpu: 5, memoryMB: 12 << 10, dedicated: true},
	"DEDICATED_L": {cpu: 10, memoryMB: 24 << 10, dedicated: true},
}

// applyTiers gives the deployment the tiers of a request; nil changes nothing.
func (d *Deployment) applyTiers(compute, database *string) error {
	if compute == nil && database == nil {
		return nil
	}
	if d.Source == revision.ExternalDocker {
		return fault.New(fault.Invalid, "compute_tier and database_tier do not apply to source %s: its resources are in source_config.resource_spec.", d.Source)
	}
	d.setTiers(compute, database)
	if database == nil {
		return nil
	}
	if !tiers[*database].dedicated {
		return fault.New(fault.Invalid, "database_tier must be a dedicated one, not %s.", *database)
	}
	if d.DatabaseTier == nil {
		return fault.New(fault.Invalid, "database_tier needs a compute_tier that is a dedicated one.")
	}
	return nil
}

// setTiers sets the tiers that are not nil. A database tier exists only together with a
// dedicated compute tier.
func (d *Deployment) setTiers(compute, database *string) {
	replace(&d.ComputeTier, compute)
	replace(&d.DatabaseTier, database)
	if d.ComputeTier == nil || !tiers[*d.ComputeTier].dedicated {
		d.DatabaseTier = nil
	}
}

// settingTimeout is the predefined setting for the time that a run may take.
const settingTimeout = "BG_JOB_TIMEOUT_SECS"

// RunLimits returns the limits that a release's environment sets. A limit that is not set, or is
// not a positive number, is 0. A release at a listener does not scale: its Kubernetes does that.
func (s *Store) RunLimits(ctx context.Context, release compute.Ref) (compute.RunLimits, error) {
	d, r, err := s.GetRevision(ctx, revision.Ref(release))
	if err != nil {
		return compute.RunLimits{}, err
	}
	env := map[string]string{}
	maps.Copy(env, r.Artifact.Env)
	secrets, err := s.presentSecrets(ctx, d, r)
	if err != nil {
		return compute.RunLimits{}, err
	}
	maps.Copy(env, valuesOf(secrets))
	size, err := d.Resources(r)
	if err != nil {
		return compute.RunLimits{}, err
	}
	size = size.OrDefaults()
	limits := compute.RunLimits{Jobs: compute.JobsOf(env) * size.MaxScale, Scales: size.Scales() && !d.Remote()}
	if seconds, err := strconv.ParseFloat(env[settingTimeout], 64); err == nil && seconds > 0 {
		limits.Timeout = time.Duration(min(seconds, maxTimeout.Seconds()) * float64(time.Second))
	}
	return limits, nil
}

// maxTimeout is the longest timeout of a run.
const maxTimeout = 365 * 24 * time.Hour

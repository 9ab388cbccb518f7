package deployment

import (
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
)

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

// takeTiers gives the deployment the tiers of a request; nil changes nothing.
func (d *Deployment) takeTiers(compute, database *string) error {
	if compute == nil && database == nil {
		return nil
	}
	if d.Source == revision.ExternalDocker {
		return fault.New(fault.Invalid, "compute_tier and database_tier do not apply to source %s: its resources are in source_config.resource_spec.", d.Source)
	}
	for _, tier := range []*string{compute, database} {
		if tier == nil {
			continue
		}
		if _, known := tiers[*tier]; !known {
			return fault.New(fault.Invalid, "There is no tier %q.", *tier)
		}
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

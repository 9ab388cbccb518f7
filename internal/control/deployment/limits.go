package deployment

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

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
	for _, secret := range secrets {
		env[secret.Name] = secret.Value
	}
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

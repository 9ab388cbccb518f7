package deployment

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Predefined settings of an agent server that bound its runs.
const (
	settingJobs    = "N_JOBS_PER_WORKER"
	settingTimeout = "BG_JOB_TIMEOUT_SECS"
)

// RunLimits returns the limits that a release's environment sets: how many runs it works on at
// a time, over all its replicas, and how long each run may take. 0 stands for a limit that is
// not set, or is not a positive number.
func (s *Store) RunLimits(ctx context.Context, release compute.Ref) (jobs int, timeout time.Duration, err error) {
	d, r, err := s.GetRevision(ctx, revision.Ref(release))
	if err != nil {
		return 0, 0, err
	}
	env := map[string]string{}
	maps.Copy(env, r.Artifact.Env)
	secrets, err := s.presentSecrets(ctx, d, r)
	if err != nil {
		return 0, 0, err
	}
	for _, secret := range secrets {
		env[secret.Name] = secret.Value
	}
	size, err := d.Resources(r)
	if err != nil {
		return 0, 0, err
	}
	if perReplica, err := strconv.Atoi(env[settingJobs]); err == nil && perReplica > 0 {
		jobs = perReplica * size.OrDefaults().MaxScale
	}
	if seconds, err := strconv.ParseFloat(env[settingTimeout], 64); err == nil && seconds > 0 {
		timeout = time.Duration(min(seconds, maxTimeout.Seconds()) * float64(time.Second))
	}
	return jobs, timeout, nil
}

// maxTimeout is the longest timeout of a run.
const maxTimeout = 365 * 24 * time.Hour

package compute

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Environment is the environment of an agent. It starts with the artifact's variables, the
// release's variables replace them, and last come the variables that the platform promises to
// an agent and that no release can set: where the agent listens, and the token of its callers.
func (r Release) Environment(host, port string) map[string]string {
	env := map[string]string{}
	maps.Copy(env, r.Artifact.Env)
	maps.Copy(env, r.Env)
	env["HOST"], env["PORT"], env[TokenVariable] = host, port, r.Token
	return env
}

// TokenVariable names the token that an agent expects of its callers.
const TokenVariable = "SLIPWAY_INVOKE_TOKEN"

// Entries writes an environment in the form that processes take, "NAME=value", in order.
func Entries(env map[string]string) []string {
	entries := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		entries = append(entries, name+"="+env[name])
	}
	return entries
}

const (
	// jobsVariable is the predefined setting for the number of runs that a replica is meant
	// for at a time.
	jobsVariable = "N_JOBS_PER_WORKER"
	defaultJobs  = 10
	// mostJobs is more than any replica can work on. Its product with a number of replicas fits
	// into an int.
	mostJobs = 1_000_000
)

// JobsOf is the number of runs that an environment sets for a replica, 0 if the environment sets
// no positive number. It is mostJobs at most.
func JobsOf(env map[string]string) int {
	if jobs, err := strconv.Atoi(env[jobsVariable]); err == nil && jobs > 0 {
		return min(jobs, mostJobs)
	}
	return 0
}

// Jobs is the number of callers that a replica of the release is meant for. A replica gets more
// callers if no more replicas are allowed, or until a further replica has come.
func (r Release) Jobs() int { return cmp.Or(JobsOf(r.Env), JobsOf(r.Artifact.Env), defaultJobs) }

// RunLimits is what a release's settings say about its runs.
type RunLimits struct {
	// Jobs is how many runs the release works on at a time, over all its replicas, and Timeout
	// is how long each run may take. 0 stands for no limit.
	Jobs    int
	Timeout time.Duration
	// Scales is set if the platform changes the number of the release's replicas with the
	// number of its runs.
	Scales bool
}

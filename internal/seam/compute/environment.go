package compute

import (
	"maps"
	"slices"
)

// Environment is what an agent gets: of its artifact, over that of the release, and over both what
// the platform promises an agent, which no release can set: where it listens, and the token of its
// callers.
func (r Release) Environment(host, port string) map[string]string {
	env := map[string]string{}
	maps.Copy(env, r.Artifact.Env)
	maps.Copy(env, r.Env)
	env["HOST"], env["PORT"], env[TokenVariable] = host, port, r.Token
	return env
}

// TokenVariable names the token that an agent expects of its callers.
const TokenVariable = "SLIPWAY_INVOKE_TOKEN"

// Entries writes an environment as processes have it, "NAME=value", in order.
func Entries(env map[string]string) []string {
	entries := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		entries = append(entries, name+"="+env[name])
	}
	return entries
}

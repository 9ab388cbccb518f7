package compute

import (
	"maps"
	"slices"
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

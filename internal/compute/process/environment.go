package process

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-run/slipway/internal/compute"
)

const (
	host    = "127.0.0.1"
	homeDir = "home"
	tempDir = "tmp"
)

// environment is all that the agent gets. Of the server's own environment that is PATH only; what the platform promises an agent cannot
// be set by the release.
func environment(spec compute.Release, dir, port string) []string {
	env := map[string]string{
		"PATH":   os.Getenv("PATH"),
		"HOME":   filepath.Join(dir, homeDir),
		"TMPDIR": filepath.Join(dir, tempDir),
	}
	maps.Copy(env, spec.Artifact.Env)
	maps.Copy(env, spec.Env)
	env["HOST"] = host
	env["PORT"] = port
	env["SLIPWAY_INVOKE_TOKEN"] = spec.Token
	entries := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		entries = append(entries, name+"="+env[name])
	}
	return entries
}

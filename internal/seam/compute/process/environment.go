package process

import (
	"maps"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

const (
	host    = "127.0.0.1"
	homeDir = "home"
	tempDir = "tmp"
)

// socketVariable names the path at which an agent may listen in place of HOST and PORT.
const socketVariable = "SLIPWAY_SOCKET"

// environment is the agent's whole environment. PATH is the only variable of the server's own
// environment in it.
func environment(spec compute.Release, dir, port string, offered *socket) []string {
	env := map[string]string{
		"PATH":   os.Getenv("PATH"),
		"HOME":   filepath.Join(dir, homeDir),
		"TMPDIR": filepath.Join(dir, tempDir),
	}
	maps.Copy(env, spec.Environment(host, port))
	if offered != nil {
		env[socketVariable] = offered.path()
	}
	return compute.Entries(env)
}

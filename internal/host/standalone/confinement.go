package standalone

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/base/child"
	buildlocal "github.com/slipway-run/slipway/internal/seam/build/local"
)

// usersFile is the file in the data directory that says which users workspaces have.
const usersFile = "users.json"

// openUsers gives workspaces users of their own where the system can.
func openUsers(path string, users child.UserRange) (*child.Users, error) {
	if !givesUsers(users) {
		return nil, nil
	}
	return child.OpenUsers(path, users)
}

func givesUsers(users child.UserRange) bool {
	return users != child.UserRange{} && child.CanChangeUser() == nil
}

// Gaps says, a sentence each, what this machine cannot keep agents and builds from when the server
// may give those users to workspaces.
func Gaps(users child.UserRange) []string {
	gaps := child.Gaps(givesUsers(users))
	if err := child.CanLimit(); err != nil {
		gaps = append(gaps, fmt.Sprintf(
			"This server cannot bound the processors, memory and processes of agents and builds, because it has no control groups of version 2 that it may divide (%v).", err))
	}
	if names := buildlocal.Withheld(); len(names) > 0 {
		gaps = append(gaps, fmt.Sprintf(
			"The credentials in %s are kept from the commands of repositories, which get the addresses without them: let proxies and package registries admit this machine by its address.",
			strings.Join(names, ", ")))
	}
	return gaps
}

// refuseAgents says why no agent may run as a process now, "" when agents may.
func (s *Server) refuseAgents(ctx context.Context) (string, error) {
	if child.Confines() || s.config.TrustAgents {
		return "", nil
	}
	workspaces, err := s.workspaces.List(ctx)
	if err != nil {
		return "", err
	}
	return refusal(len(workspaces)), nil
}

// refusal is what agents are told on a machine that cannot confine them.
func refusal(workspaces int) string {
	if workspaces < 2 {
		return ""
	}
	return "this machine cannot keep the agents of its workspaces apart (slipway doctor says why). The server's operator can run agents as images, or start the server with --trust-agents."
}

package standalone

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-run/slipway/internal/base/child"
	buildlocal "github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
)

// usersFile is the file in the data directory that lists the users of workspaces.
const usersFile = "users.json"

// agentsDir is the directory in the data directory that holds the files of agents.
const agentsDir = "agents"

// openUsers gives workspaces users of their own if the system can do so.
func (s *Server) openUsers() (err error) {
	if s.noUsers = noUsers(s.config.Data, s.config.Users); s.noUsers == nil {
		s.users, err = child.OpenUsers(s.path(usersFile), s.config.Users)
	}
	return err
}

// errNotWanted is the reason why workspaces have no users of their own if the operator chose
// this.
var errNotWanted = errors.New("as --agent-users says")

// noUsers returns the reason why workspaces get no users for this data directory, nil if they
// do.
func noUsers(data string, users child.UserRange) error {
	if users == (child.UserRange{}) {
		return errNotWanted
	}
	return child.CanChangeUser(data)
}

// Gaps returns one sentence for each gap in the confinement of agents and builds on this
// machine, if the server has this data directory and may give these users to workspaces.
func Gaps(data string, users child.UserRange) []string {
	none := noUsers(data, users)
	gaps := child.Gaps(none)
	if files := buildlocal.Closed(); none == nil && len(files) > 0 {
		gaps = append(gaps, fmt.Sprintf("Builds cannot read %s, which the server's environment names: let everybody read what is there.", strings.Join(files, ", ")))
	}
	if agents, err := filepath.Abs(filepath.Join(data, agentsDir)); err != nil || !process.OffersSockets(agents) {
		gaps = append(gaps, "The path of the data directory is too long for Unix sockets, so agents listen at ports, where other agents reach them: give the server a data directory with a shorter path.")
	}
	if err := child.CanLimit(); err != nil {
		rest := ""
		if none == nil {
			rest = fmt.Sprintf("; those of a workspace have at most %d processes and threads together", child.MostProcesses)
		}
		gaps = append(gaps, fmt.Sprintf(
			"This server cannot bound the processors, memory and processes of agents and builds, because it has no control groups of version 2 that it may divide (%v)%s.", err, rest))
	}
	if names := buildlocal.Withheld(); len(names) > 0 {
		gaps = append(gaps, fmt.Sprintf(
			"The credentials in %s are kept from the commands of repositories, which get the addresses without them: let proxies and package registries admit this machine by its address.",
			strings.Join(names, ", ")))
	}
	return gaps
}

// refuseCode states why no code of a tenant (of an agent or of a build) may run as a process
// now. It returns "" if the code may run.
func (s *Server) refuseCode(ctx context.Context) (string, error) {
	if s.config.TrustAgents || child.Separates(s.noUsers) {
		return "", nil
	}
	workspaces, err := s.workspaces.List(ctx)
	if err != nil {
		return "", err
	}
	return refusal(len(workspaces)), nil
}

// warnOfRefusal logs that no code of a tenant may run: agents that ran before are not started.
func (s *Server) warnOfRefusal() error {
	why, err := s.refuseCode(context.Background())
	if err == nil && why != "" {
		s.config.Log.Warn("no agents and builds run as processes: " + why)
	}
	return err
}

// refusal is the message for agents and builds on a machine that cannot confine them.
func refusal(workspaces int) string {
	if workspaces < 2 {
		return ""
	}
	return "this server cannot keep the agents and builds of its workspaces apart (slipway doctor says why). The server's operator can start it on Linux 6.7 or newer (for version 4 of Landlock) as root with its data in /var/lib/slipway, run agents as images, or start the server with --trust-agents."
}

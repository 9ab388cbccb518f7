package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
)

const (
	host    = "127.0.0.1"
	homeDir = "home"
	tempDir = "tmp"
	// socketVariable names the path at which an agent may listen in place of HOST and PORT.
	socketVariable = "SLIPWAY_SOCKET"
)

// agent is one process of a release.
type agent struct {
	machine  *machine
	revision string
	port     string
	socket   *socket
	limits   child.Limits
	process  *child.Process
	output   *files.Writer
	// dirs are the directories of the release, user is the agent's user. leave notes that this
	// user's agent has ended.
	dirs  []string
	user  int
	leave func() error
	// excess is why the server ended the agent, nil if it did not, or on request.
	excess atomic.Pointer[excess]
}

// release is a release whose processes can be started.
type release struct {
	machine *machine
	spec    compute.Release
}

// Release is the release as it was prepared.
func (r release) Release() compute.Release { return r.spec }

// Start starts the process of a replica.
func (r release) Start(ctx context.Context) (replica.Replica, *compute.Status) {
	if refuse := r.machine.cfg.Refuse; refuse != nil {
		why, err := refuse(ctx)
		if err != nil {
			return nil, failed(compute.ReasonStartFailed, "the agent could not be started: %v", err)
		}
		if why != "" {
			return nil, failed(compute.ReasonStartFailed, "%s", why)
		}
	}
	port, failure := choosePort(r.spec)
	if failure != nil {
		return nil, failure
	}
	a, err := r.machine.launch(ctx, r.spec, port)
	if errors.Is(err, errOverDisk) {
		return nil, failed(compute.ReasonOutOfDisk, "the agent was not started: its files take more than the %d MB of disk that they may", r.machine.cfg.DiskMB)
	}
	if err != nil {
		return nil, failed(compute.ReasonStartFailed, "the agent could not be started: %v", err)
	}
	return a, nil
}

func (m *machine) launch(ctx context.Context, spec compute.Release, port string) (*agent, error) {
	dir := m.dirOf(spec.Revision)
	confinement, err := m.confinement(spec, port)
	if err != nil {
		return nil, err
	}
	end, _, err := m.disk.starting.Take(ctx, spec.Revision)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := m.makeRoom(spec); err != nil {
		return nil, err
	}
	var offered *socket // none for a release that fixes its port, or if paths are too long here
	if !m.Lone(spec) && OffersSockets(m.cfg.Dir) {
		if offered, err = m.sockets.offer(confinement.User); err != nil {
			return nil, fmt.Errorf("offer a socket: %w", err)
		}
	}
	if offered != nil && confinement.Private != "" {
		confinement.Write = append(confinement.Write, offered.dir)
	}
	a, err := m.startProcess(ctx, spec, dir, port, confinement, offered)
	if err != nil {
		return nil, errors.Join(err, m.sockets.withdraw(offered))
	}
	return a, nil
}

func (m *machine) startProcess(ctx context.Context, spec compute.Release, dir, port string, confinement child.Confinement, offered *socket) (*agent, error) {
	for _, name := range []string{homeDir, tempDir} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	// An earlier server may have built the agent for another user.
	for _, own := range confinement.Write {
		if err := child.OwnOnce(ctx, own, confinement.User); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("give files to the user of the workspace: %w", err)
		}
	}
	output, err := m.cfg.Logs.Writer(spec.Revision, revisionlog.Deploy, spec.SecretValues()...)
	if err != nil {
		return nil, err
	}
	size, leave := spec.Resources.OrDefaults(), m.cfg.Users.Enter(confinement.User)
	limits := child.Limits{CPU: size.CPU, MemoryMB: size.MemoryMB, Processes: replica.ProcessLimit}
	process, err := m.children.Start(child.Command{
		Args:    spec.Artifact.Start,
		Dir:     spec.Artifact.Dir,
		Env:     environment(spec, dir, port, offered),
		Stdout:  output,
		Confine: confinement,
		Limits:  limits,
	})
	if err != nil {
		return nil, errors.Join(err, output.Close(), leave())
	}
	a := &agent{machine: m, revision: spec.Revision, port: port, socket: offered, limits: limits, process: process, output: output, dirs: m.dirsOf(spec), user: confinement.User, leave: leave}
	m.disk.add(a)
	return a, nil
}

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

// confinement keeps an agent from everything that is not its own. A release that was built by
// a server which did not note the paths that belong to the release could not run under a
// confinement, so it gets none. An agent listens on its own port, or on a port that the system
// chooses: it cannot take the port that another agent is about to get.
func (m *machine) confinement(spec compute.Release, port string) (child.Confinement, error) {
	if len(spec.Artifact.Own) == 0 || m.cfg.Private == "" {
		return child.Confinement{}, nil
	}
	user, err := m.cfg.Users.Of(spec.Workspace)
	if err != nil {
		return child.Confinement{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return child.Confinement{}, err
	}
	return child.Confinement{
		Private: m.cfg.Private, Write: m.dirsOf(spec), Read: spec.Artifact.Shared,
		User: user, Ports: []uint16{0, uint16(number)},
	}, nil
}

// URL is where the process listens: at its port until there is a socket.
func (a *agent) URL() string {
	if a.socket.listens() {
		return "http://" + a.socket.host
	}
	return "http://" + address(a.port)
}

// Done is closed when the process has ended.
func (a *agent) Done() <-chan struct{} { return a.process.Done() }

// End stops the process and reports errors that occurred in the background.
func (a *agent) End(kill context.Context) {
	stopped := a.process.Stop(kill, a.machine.cfg.StopGrace)
	_, err := a.process.Exit()
	a.machine.disk.remove(a)
	if err = errors.Join(stopped, err, a.output.Close(), a.machine.sockets.withdraw(a.socket), a.leave()); err != nil {
		a.machine.cfg.Log.Error("run agent", "revision", a.revision, "error", err)
	}
}

// Ended says why the process ended.
func (a *agent) Ended(before bool) *compute.Status {
	exit, _ := a.process.Exit() // End reports the error
	when := ""
	if before {
		when = " before it answered GET /ping"
	}
	if over := a.excess.Load(); over != nil {
		return a.Failure(over.reason, fmt.Sprintf("the agent was ended%s because %s", when, over.what))
	}
	if exit.OutOfMemory {
		return a.Failure(compute.ReasonOutOfMemory, fmt.Sprintf("the agent was ended%s because it used more than the %d MB of memory that it may", when, a.limits.MemoryMB))
	}
	what := fmt.Sprintf("the agent %s%s", exit, when)
	if !before {
		return a.Failure(compute.ReasonEnded, what)
	}
	if complainsOfAddress(a.output.Last()) || isTaken(a.port) {
		return a.Failure(compute.ReasonPortTaken, fmt.Sprintf("%s: the address %s is in use by another process", what, address(a.port)))
	}
	return a.Failure(compute.ReasonStartFailed, what)
}

// Failure is a status with the agent's last output.
func (a *agent) Failure(reason, what string) *compute.Status {
	return replica.Failed(reason, replica.Said(what, a.output.Last()))
}

func failed(reason, format string, args ...any) *compute.Status {
	return replica.Failed(reason, fmt.Sprintf(format, args...))
}

// Package process is the compute target of one machine: it runs each replica of a release as a
// child process. The process listens at the Unix socket that it is offered, if it takes the
// offer, or else on a loopback port.
//
// Package replica decides how many replicas there are, starts them again and counts their
// callers. This package starts a process.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
)

// Config holds the values that a Target needs.
type Config struct {
	// Dir holds the agents' home directories and the records of their processes.
	Dir string
	// Logs get the agents' output. Log gets the target's own messages.
	Logs *files.Logs
	Log  *slog.Logger
	// Private is the server's directory. An agent reaches only its own paths in it. "" keeps
	// nothing from agents.
	Private string
	// Users gives each workspace's agents a user of their own. With nil, agents have the
	// server's user.
	Users *child.Users
	// Refuse says why no agent may run now, "" if agents may run. A nil Refuse refuses no
	// agent.
	Refuse func(context.Context) (string, error)
	// DiskMB is how many MB of disk the files of a release may take: the files of its build,
	// which has a bound of its own, and what its agents write; default 20480.
	DiskMB int
	// LookPause is the longest time without a look at these files; default a minute. Files that
	// are removed elsewhere on the disk hide files that an agent writes.
	LookPause time.Duration
	// Sockets is how many sockets the agents of a workspace may hold; default 8192. Where
	// workspaces have no users of their own, this is for the agents of a release.
	Sockets int
	replica.Limits
	// Alarm and Try may be nil.
	Alarm compute.Alarm
	Try   replica.Try
}

// Target implements compute.Target as replica.Target does.
type Target struct {
	*replica.Target
	sockets *sockets
	// release lets another server use the directory; calling it again does nothing.
	release func() error
}

// machine is the replica.Host of processes.
type machine struct {
	cfg      Config
	children *child.Registry
	sockets  *sockets
	disk     diskWatch
	look     disk.Look
}

// New returns a target that keeps its files in cfg.Dir and ends the agents that an earlier server
// left running there.
func New(cfg Config) (*Target, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open process target: %w", err)
	}
	cfg.Dir, cfg.Limits, cfg.DiskMB = dir, cfg.OrDefaults(), cmp.Or(cfg.DiskMB, 20480)
	cfg.LookPause, cfg.Sockets = cmp.Or(cfg.LookPause, time.Minute), cmp.Or(cfg.Sockets, 8192)
	if cfg.Private != "" {
		if cfg.Private, err = filepath.Abs(cfg.Private); err != nil {
			return nil, fmt.Errorf("open process target: %w", err)
		}
	}
	children, err := child.Open(filepath.Join(cfg.Dir, "running"))
	if err != nil {
		return nil, fmt.Errorf("open process target: %w", err)
	}
	if err := sweep(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("open process target: %w", err), children.Close())
	}
	sockets := newSockets(cfg.Dir)
	dial := sockets.dialer(new(net.Dialer).DialContext)
	m := &machine{cfg: cfg, children: children, sockets: sockets, disk: newDiskWatch(), look: disk.Statfs}
	watching, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(guard.Func(cfg.Log, "watch what agents take", func() { m.watch(watching) }))
	release := func() error {
		stop()
		watch.Wait()
		return children.Close()
	}
	return &Target{replica.New(m, cfg.Limits, cfg.Alarm, cfg.Log, dial, cfg.Try), sockets, sync.OnceValue(release)}, nil
}

// releasesDir holds the files of agents. erasedDir holds the files of an earlier server's agents
// until they are erased.
const releasesDir, erasedDir = "releases", "erased"

// sweep erases the files of an earlier server's agents: agents keep nothing from one start of the
// server to the next, as with containers. Files that cannot be erased stay where no agent finds
// them. They do not keep the server from starting, because any agent could have left them.
func sweep(cfg Config) error {
	erased := filepath.Join(cfg.Dir, erasedDir)
	if err := os.MkdirAll(erased, 0o700); err != nil {
		return err
	}
	for _, name := range []string{releasesDir, socketDir} {
		aside, err := os.MkdirTemp(erased, "")
		if err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(cfg.Dir, name), filepath.Join(aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := child.RemoveFiles(erased); err != nil {
		cfg.Log.Error("the files of earlier agents cannot be erased", "directory", erased, "error", err)
	}
	return nil
}

// Dialer returns a function that connects to the URLs of this target's endpoints, and to other
// URLs as next does.
func (t *Target) Dialer(next replica.Dial) replica.Dial { return t.sockets.dialer(next) }

// Close stops all agents and returns when they have ended. Agents that have not ended when ctx
// ends are killed. Closing again does nothing.
func (t *Target) Close(ctx context.Context) error {
	t.Target.Close(ctx)
	if err := t.release(); err != nil {
		return fmt.Errorf("close process target: %w", err)
	}
	return nil
}

// Prepare gives one replica to a release whose configuration fixes its port, because two
// replicas cannot listen there.
func (m *machine) Prepare(_ context.Context, spec compute.Release) (replica.Prepared, *compute.Status) {
	if m.Lone(spec) {
		spec.Resources.MinScale, spec.Resources.MaxScale = 1, 1
	}
	return release{m, spec}, nil
}

// Lone reports whether the release's configuration fixes its port.
func (*machine) Lone(spec compute.Release) bool { return spec.Artifact.Env[portVariable] != "" }

// Erase removes the files of a release.
func (m *machine) Erase(spec compute.Release) error { return child.RemoveFiles(m.dirOf(spec.Revision)) }

func (m *machine) dirOf(revision string) string {
	return filepath.Join(m.cfg.Dir, releasesDir, revision)
}

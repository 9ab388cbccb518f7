// Package local is the builder of one machine: it clones a commit with git, or unpacks an
// uploaded tarball, checks the framework configuration file and builds the agent that the file
// describes: as an image if Config.Images is set, else as a tree for processes.
//
// A build is a job. Jobs wait for one of a few places. The workspaces with the fewest places
// come first, then the workspaces that have waited longest since they last got a place, and then
// the jobs that were started first. If all places are taken, there is one more place for a
// workspace that has none. So when a build ends, the next build is one of a workspace that has no
// place, if such a build waits. A job ends with a result
// that is kept in a file, so that a finished build is known after a restart of the server. If
// a build was running when the server ended, it is absent afterwards, and the next start of it
// begins with an empty directory.
//
// The repository's commands, and git, which reads files of strangers, are kept from all files
// that do not belong to their build, if the system can enforce this. The server itself is not
// restricted: it writes its files where no build can write, and it reads the files of a build
// through the directory that it opened before the first command. That is why a clone is made by
// the program git and not by a library, which would read those files inside the server, without a
// limit of its own for memory.
//
// Files that outlive a build are bounded, too. When the home directory that a workspace's
// builds share takes more disk than the limit, the next build gets another home. One day after
// the last build that has used a home is gone, the next removal of a build, or the next start
// of the server, erases the home. For installed packages and resolved versions, the lock
// states that were used last are kept. Python packages that a build uses are kept, too.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// Config is the configuration of a Builder. A value that is zero gets the default that is
// named at it.
type Config struct {
	// Dir holds the trees of all revisions, the caches of all workspaces and the records of running
	// commands.
	Dir string
	// Logs get the output of builds. Log gets the messages of the builder itself.
	Logs *files.Logs
	Log  *slog.Logger
	// Uploads has the tarballs that are built in place of repositories; nil if there are no
	// uploads.
	Uploads upload.Opener
	// Images makes images of the trees that are built; nil leaves the trees as they are. Bases
	// are the base images of these images.
	Images Images
	Bases  dockerfile.Bases
	// Private is the server's directory. In it a repository's commands reach only the files of
	// their build. "" restricts no command.
	Private string
	// Users gives each workspace's commands a user of their own; nil runs them as the server's
	// user.
	Users *child.Users
	// Refuse returns the reason why no command of a tenant may run on this machine, "" if
	// commands may run; nil refuses no command.
	Refuse func(ctx context.Context) (string, error)
	// Networks are the networks that repositories may have addresses in although these
	// addresses are not public.
	Networks outbound.Networks
	// LocalRepositories lets repositories be directories of this machine; OperatorSSH gives git
	// over ssh the keys, the agent and the configuration of the user that the server runs as.
	LocalRepositories, OperatorSSH bool
	// Connect is a command that gets a host and a port as further arguments and calls
	// outbound.Connect; ssh makes its connections with this command. Without a command, no
	// repository is cloned over ssh.
	Connect []string
	// Offers are the keys of configuration files that the agents of this builder are served
	// with, among the keys that not every platform serves.
	Offers []framework.Offer
	// Space is the disk that Dir is on; nil always has room.
	Space *disk.Space
	// Room returns an error to refuse another build of a workspace; nil refuses no build.
	Room func(workspace string) error
	// Timeout is how long a build may take once it has a place (15 min).
	Timeout time.Duration
	// ReachLimit is how long a repository may take to answer which commit a ref names (20 s).
	ReachLimit time.Duration
	// MemoryMB is how many MB of memory a command and all processes that it starts may use
	// (4096), if the system can limit it.
	MemoryMB int
	// DiskMB is how many MB of disk the files of a build may take (10240), including the
	// packages that are installed for it. The files that it leaves in its workspace's home may
	// take as much again.
	DiskMB int
	// HomeMB is how many MB of disk the home of a workspace's builds may take before the next
	// build begins another home (10240).
	HomeMB int
	// Sockets is how many sockets a build may hold (8192).
	Sockets int
	// Places is how many builds run at a time (2). If all places are taken, one more build runs
	// for a workspace that has no place.
	Places int
}

// Builder implements build.Builder.
type Builder struct {
	cfg      Config
	children *child.Registry
	// release lets another server use the directory; calling it again does nothing.
	release func() error
	running sync.WaitGroup
	// installing is held while the builder installs something that all builds use.
	installing sync.Mutex
	tools      tools
	// proxy makes the connections of git.
	proxy *outbound.Proxy
	// homes are the homes that builds use, environments the environments that Python builds share.
	homes, environments noted[string]
	// sizes is the disk space of the builds that have ended and are kept. Config.DiskMB bounds the
	// builds that run, and Config.HomeMB the files that builds leave in a workspace's home.
	sizes noted[size]

	mu      sync.Mutex
	closed  bool
	busy    int
	busyOf  map[string]int  // by workspace
	turn    int             // how many jobs have got a place
	turnOf  map[string]int  // the turn of each workspace's last place since all were free
	waiting []*job          // in the order of Start
	jobs    map[string]*job // the jobs that wait or run, by revision
}

var _ build.Builder = (*Builder)(nil)

// New returns a builder that keeps its files in cfg.Dir and ends the commands that an earlier
// server left running there.
func New(cfg Config) (*Builder, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open builder: %w", err)
	}
	cfg.Dir = dir
	if cfg.Private != "" {
		if cfg.Private, err = filepath.Abs(cfg.Private); err != nil {
			return nil, err
		}
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 15*time.Minute)
	cfg.ReachLimit = cmp.Or(cfg.ReachLimit, 20*time.Second)
	cfg.MemoryMB, cfg.DiskMB, cfg.HomeMB = cmp.Or(cfg.MemoryMB, 4096), cmp.Or(cfg.DiskMB, 10240), cmp.Or(cfg.HomeMB, 10240)
	cfg.Sockets = cmp.Or(cfg.Sockets, 8192)
	cfg.Places = cmp.Or(cfg.Places, 2)
	b := &Builder{cfg: cfg, tools: findTools(os.Getenv("PATH"), cfg.Private, cfg.Users != nil), busyOf: map[string]int{}, turnOf: map[string]int{}, jobs: map[string]*job{}}
	if b.children, err = child.Open(filepath.Join(dir, "running")); err != nil {
		return nil, fmt.Errorf("open builder: %w", err)
	}
	if b.proxy, err = outbound.OpenProxy(cfg.Networks); err != nil {
		return nil, errors.Join(fmt.Errorf("open builder: %w", err), b.children.Close())
	}
	b.release = sync.OnceValue(func() error { return errors.Join(b.children.Close(), b.proxy.Close()) })
	if err := errors.Join(b.prepareGit(), b.openHomes(), b.openEnvironments(), b.openSizes()); err != nil {
		return nil, errors.Join(fmt.Errorf("open builder: %w", err), b.release())
	}
	return b, nil
}

// Start queues the build of a revision, unless the build is queued, runs or has succeeded. A
// queued build gets the credentials again.
func (b *Builder) Start(_ context.Context, spec build.Spec) error {
	if !id.Valid(spec.Revision) || !id.Valid(spec.Workspace) {
		return fmt.Errorf("start build: revision %q or workspace %q is not an id", spec.Revision, spec.Workspace)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("start build of revision %s: the server is shutting down", spec.Revision)
	}
	if j := b.jobs[spec.Revision]; j != nil {
		if j.ctx.Err() != nil {
			return fmt.Errorf("start build of revision %s: the one before is still being removed", spec.Revision)
		}
		if slices.Contains(b.waiting, j) {
			j.spec.Credentials = spec.Credentials
		}
		return nil
	}
	result, err := b.readResult(spec.Revision)
	if err != nil || result.State == build.Succeeded {
		return err
	}
	j := &job{builder: b, spec: spec, done: make(chan struct{}), result: build.Result{State: build.Absent}}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	b.jobs[spec.Revision] = j
	b.waiting = append(b.waiting, j)
	b.fillPlaces()
	return nil
}

// fillPlaces starts jobs while there are places. The caller holds b.mu.
func (b *Builder) fillPlaces() {
	for len(b.waiting) > 0 && (b.busy < b.cfg.Places || b.mayUseSpare()) {
		j := b.takeNext()
		b.busy++
		b.busyOf[j.spec.Workspace]++
		b.turn++
		b.turnOf[j.spec.Workspace] = b.turn
		b.running.Go(guard.Func(b.cfg.Log, "build", func() {
			defer b.free(j)
			j.run()
		}))
	}
}

// mayUseSpare reports whether the next job runs although all places are taken: the workspaces
// that have them could keep them for as long as a build may take, and the next job belongs to
// another workspace. The caller holds b.mu.
func (b *Builder) mayUseSpare() bool {
	return b.busy == b.cfg.Places && slices.ContainsFunc(b.waiting, func(j *job) bool { return b.busyOf[j.spec.Workspace] == 0 })
}

// takeNext takes the job whose turn it is, so that no workspace keeps the places from the others
// by asking for more or by asking earlier. The caller holds b.mu.
func (b *Builder) takeNext() *job {
	next := slices.MinFunc(b.waiting, func(one, other *job) int {
		return cmp.Or(
			cmp.Compare(b.busyOf[one.spec.Workspace], b.busyOf[other.spec.Workspace]),
			cmp.Compare(b.turnOf[one.spec.Workspace], b.turnOf[other.spec.Workspace]),
		)
	})
	b.waiting = slices.DeleteFunc(b.waiting, func(j *job) bool { return j == next })
	return next
}

// free forgets a job whose result is stored, and gives its place to the next job. When no job is
// left, it forgets the turns of the workspaces.
func (b *Builder) free(j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.jobs, j.spec.Revision)
	close(j.done)
	b.busy--
	if b.busyOf[j.spec.Workspace]--; b.busyOf[j.spec.Workspace] == 0 {
		delete(b.busyOf, j.spec.Workspace)
	}
	b.fillPlaces()
	if b.busy == 0 {
		clear(b.turnOf)
	}
}

// Await returns the result of a build as soon as the build has a result.
func (b *Builder) Await(ctx context.Context, revision string) (build.Result, error) {
	if !id.Valid(revision) {
		return build.Result{}, fmt.Errorf("await build: revision %q is not an id", revision)
	}
	b.mu.Lock()
	j := b.jobs[revision]
	b.mu.Unlock()
	if j == nil {
		return b.readResult(revision)
	}
	select {
	case <-j.done:
		return j.result, j.err
	case <-ctx.Done():
		return build.Result{State: build.Running}, nil
	}
}

// Remove cancels the build and erases its tree and its result.
func (b *Builder) Remove(ctx context.Context, revision string) error {
	if !id.Valid(revision) {
		return fmt.Errorf("remove build: revision %q is not an id", revision)
	}
	if err := b.remove(ctx, revision); err != nil {
		return fmt.Errorf("remove build of revision %s: %w", revision, err)
	}
	return nil
}

func (b *Builder) remove(ctx context.Context, revision string) error {
	if j := b.cancel(revision); j != nil {
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := b.removeImage(ctx, revision); err != nil {
		return err
	}
	defer b.sizes.leave(revision)
	if err := errors.Join(child.RemoveFiles(b.dirOf(revision)), b.leaveEnvironment(revision), b.leaveHome(revision)); err != nil {
		return err
	}
	// This file goes last: it says which files are left to erase.
	return child.RemoveFiles(b.recordOf(revision))
}

// cancel ends the job of a revision, if there is one. A job that still waits for a place ends
// at once.
func (b *Builder) cancel(revision string) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[revision]
	if j == nil {
		return nil
	}
	j.cancel()
	if i := slices.Index(b.waiting, j); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		delete(b.jobs, revision)
		close(j.done)
	}
	return j
}

// Close cancels all builds, which are absent from then on, and returns when they have ended.
// Closing again does nothing.
func (b *Builder) Close() error {
	b.mu.Lock()
	b.closed = true
	revisions := slices.Collect(maps.Keys(b.jobs))
	b.mu.Unlock()
	for _, revision := range revisions {
		b.cancel(revision)
	}
	b.running.Wait()
	if err := b.release(); err != nil {
		return fmt.Errorf("close builder: %w", err)
	}
	return nil
}

func (b *Builder) dirOf(revision string) string {
	return filepath.Join(b.cfg.Dir, "revisions", revision)
}

// recordOf returns the directory that the server itself writes about a revision's build. The
// build only reads it.
func (b *Builder) recordOf(revision string) string {
	return filepath.Join(b.cfg.Dir, "records", revision)
}

// keptOf returns the directory of the files that the server keeps from a workspace's builds
// for later builds. No build writes to it.
func (b *Builder) keptOf(workspace string) string {
	return filepath.Join(b.cfg.Dir, "kept", workspace)
}

// makeReadable creates directories. Every user who may enter the parent directory may read
// their names and contents.
func makeReadable(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// openTree makes all files and directories below a directory readable in the same way.
func openTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.Chmod(path, 0o755)
		case entry.Type().IsRegular():
			return os.Chmod(path, 0o644)
		}
		return nil
	})
}

// makeDirs creates directories for the server and its children only.
func makeDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

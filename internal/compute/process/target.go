// Package process is the compute target of one machine: it runs each release as a child process that listens on a loopback port.
//
// Each release has a supervisor, one goroutine that starts the agent, waits until it answers GET /ping, and starts it again when it
// ends. Until the agent has been healthy once, its end is the release's failure; from then on it is restarted for as long as the
// release is wanted. Everything that others ask of a release, they read from the state that its supervisor publishes.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/child"
	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

// Config is what a Target needs. Durations that are zero get the default named at each.
type Config struct {
	// Dir holds the agents' home directories and the records of their processes.
	Dir string
	// Logs get the agents' output, Log what the target itself has to say.
	Logs *revisionlog.Logs
	Log  *slog.Logger
	// ReadyLimit is how long an agent may take to answer GET /ping (300 s).
	ReadyLimit time.Duration
	// DrainLimit is how long Remove lets callers finish (10 min).
	DrainLimit time.Duration
	// StopGrace is the time between SIGTERM and SIGKILL (10 s).
	StopGrace time.Duration
	// RestartMin and RestartMax bound the pause before an agent that crashed is started again; it doubles from one (100 ms) to the
	// other (30 s), and begins anew when the agent was healthy for longer than RestartMax.
	RestartMin, RestartMax time.Duration
}

// Target implements compute.Target.
type Target struct {
	cfg      Config
	children *child.Registry
	// release lets another server use the directory; calling it again does nothing.
	release func() error
	probes  *http.Client

	// stop ends all releases, kill ends their grace too.
	stop, kill             context.Context
	stopRelease, killAgent context.CancelFunc
	// supervised counts the goroutines of releases, also of those that are being removed.
	supervised sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	releases map[string]*release // by revision
}

var _ compute.Target = (*Target)(nil)

// New returns a target that keeps its files in cfg.Dir and ends the agents that an earlier server left running there.
func New(cfg Config) (*Target, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open process target: %w", err)
	}
	cfg.Dir = dir
	cfg.ReadyLimit = cmp.Or(cfg.ReadyLimit, 300*time.Second)
	cfg.DrainLimit = cmp.Or(cfg.DrainLimit, 10*time.Minute)
	cfg.StopGrace = cmp.Or(cfg.StopGrace, 10*time.Second)
	cfg.RestartMin = cmp.Or(cfg.RestartMin, 100*time.Millisecond)
	cfg.RestartMax = cmp.Or(cfg.RestartMax, 30*time.Second)
	children, err := child.Open(filepath.Join(cfg.Dir, "running"))
	if err != nil {
		return nil, fmt.Errorf("open process target: %w", err)
	}
	// Agents keep nothing from one start of the server to the next, as containers would not.
	if err := child.RemoveFiles(filepath.Join(cfg.Dir, "releases")); err != nil {
		return nil, errors.Join(fmt.Errorf("open process target: %w", err), children.Close())
	}
	t := &Target{cfg: cfg, children: children, release: sync.OnceValue(children.Close), probes: newProbeClient(), releases: map[string]*release{}}
	t.stop, t.stopRelease = context.WithCancel(context.Background())
	t.kill, t.killAgent = context.WithCancel(context.Background())
	return t, nil
}

// Apply makes the release run and keeps it running until Remove or Close.
func (t *Target) Apply(_ context.Context, spec compute.Release) error {
	if !id.Valid(spec.Revision) {
		return fmt.Errorf("apply release: revision %q is not an id", spec.Revision)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("apply release %s: the server is shutting down", spec.Revision)
	}
	if r := t.releases[spec.Revision]; r != nil && r.report().State != compute.Failed {
		return nil
	}
	r := newRelease(t, spec)
	t.releases[spec.Revision] = r
	t.supervised.Go(r.supervise)
	return nil
}

// Await returns the release's status, once it is not Progressing.
func (t *Target) Await(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	r := t.find(ref)
	if r == nil {
		return absent, nil
	}
	for {
		status, changed := r.watch()
		if status.State != compute.Progressing {
			return status, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status, nil
		}
	}
}

// Acquire returns where the release answers and counts the caller in until it calls done.
func (t *Target) Acquire(ctx context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	r := t.find(ref)
	if r == nil {
		return compute.Endpoint{}, nil, &compute.UnavailableError{Ref: ref, Status: absent}
	}
	for {
		endpoint, status, changed := r.enter()
		if status.State == compute.Healthy {
			return endpoint, sync.OnceFunc(r.leave), nil
		}
		unavailable := &compute.UnavailableError{Ref: ref, Status: status}
		if status.State != compute.Progressing {
			return compute.Endpoint{}, nil, unavailable
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return compute.Endpoint{}, nil, unavailable
		}
	}
}

// Remove takes the release out at once and stops its agent when its callers have left.
func (t *Target) Remove(_ context.Context, ref compute.Ref) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.releases[ref.Revision]
	if r == nil || t.closed {
		return nil
	}
	delete(t.releases, ref.Revision)
	r.drain()
	t.supervised.Go(func() {
		r.finish()
		t.erase(ref.Revision)
	})
	return nil
}

// Close stops all agents and returns when they have ended. Those that have not ended when ctx ends are killed. Closing again does
// nothing.
func (t *Target) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stopRelease()
	defer context.AfterFunc(ctx, t.killAgent)()
	t.supervised.Wait()
	t.killAgent()
	t.probes.CloseIdleConnections()
	if err := t.release(); err != nil {
		return fmt.Errorf("close process target: %w", err)
	}
	return nil
}

func (t *Target) find(ref compute.Ref) *release {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.releases[ref.Revision]
}

func (t *Target) dirOf(revision string) string { return filepath.Join(t.cfg.Dir, "releases", revision) }

// erase removes the files of a release that has stopped, unless it was applied again meanwhile.
func (t *Target) erase(revision string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.releases[revision] != nil {
		return
	}
	if err := child.RemoveFiles(t.dirOf(revision)); err != nil {
		t.cfg.Log.Error("erase release", "revision", revision, "error", err)
	}
}

// absent is the status of a release that was never applied here, or removed.
var absent = compute.Status{State: compute.Absent, Message: "it does not run on this server"}

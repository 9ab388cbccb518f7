package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// An agent fills its limit of disk only by taking free space from the disk. So the watch asks
// the file system for its free space, which is one system call, and walks through the files of
// agents only when much of it has gone.
const (
	// freePause is the time between two questions for the free space.
	freePause = time.Second
	// freeStep is how many bytes of free space must have gone before files are looked at.
	freeStep = 64 << 20
	// looksPart is the part of the time, 1 in so many, that looks may take.
	looksPart = 20
	// longestPause bounds the time after a look that took long.
	longestPause = 5 * time.Minute
	// mostShared is how many bytes the files of a workspace's user may take in the memory that
	// all programs of the machine share.
	mostShared = 256 << 20
)

// diskWatch knows the agents that run.
type diskWatch struct {
	mu      sync.Mutex
	running map[*agent]struct{}
	// starting has a lock for each revision whose agents are being started.
	starting map[string]*start
}

// start is a lock, and how many starts have it or wait for it.
type start struct {
	sync.Mutex

	users int
}

// begin waits until no other agent of a revision is being started, and returns the function that
// ends this start. So an agent finds either no files removed, or the agents that have them.
func (w *diskWatch) begin(revision string) (end func()) {
	w.mu.Lock()
	if w.starting == nil {
		w.starting = map[string]*start{}
	}
	s := w.starting[revision]
	if s == nil {
		s = &start{}
		w.starting[revision] = s
	}
	s.users++
	w.mu.Unlock()
	s.Lock()
	return func() {
		s.Unlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(w.starting, revision)
		}
	}
}

// add notes an agent that has been started.
func (w *diskWatch) add(a *agent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = map[*agent]struct{}{}
	}
	w.running[a] = struct{}{}
}

// remove notes that an agent has ended. last says that no other agent of its user runs.
func (w *diskWatch) remove(a *agent) (last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, a)
	for other := range w.running {
		if other.user == a.user {
			return false
		}
	}
	return true
}

// agents returns the agents that run, by the revision whose files they share.
func (w *diskWatch) agents() map[string][]*agent {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string][]*agent{}
	for a := range w.running {
		all[a.revision] = append(all[a.revision], a)
	}
	return all
}

// watchDisk ends agents whose files take more disk than they may, until ctx ends.
func (m *machine) watchDisk(ctx context.Context) {
	places := []string{m.cfg.Dir, child.SharedMemory}
	most, looked := map[string]int64{}, time.Now()
	for pause := freePause; ; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		gone := time.Since(looked) >= m.cfg.LookPause
		for _, place := range places {
			usage, err := disk.Statfs(place)
			if err != nil {
				continue // a machine may have no such place; then agents have none, either
			}
			most[place] = max(most[place], usage.Free)
			gone = gone || most[place]-usage.Free >= m.cfg.step()
		}
		if pause = freePause; !gone {
			continue
		}
		clear(most)
		looked = time.Now()
		if err := guard.Run(m.cfg.Log, "look at the disk of agents", func() error {
			m.lookAtDisk()
			return nil
		}); err != nil {
			m.cfg.Log.Error("the disk of agents was not looked at", "error", err)
		}
		pause = min(max(freePause, looksPart*time.Since(looked)), longestPause)
	}
}

// step is how many bytes of free space must have gone before files are looked at: a small limit
// needs a smaller step.
func (c Config) step() int64 { return min(freeStep, c.mostDisk()/2) }

// mostDisk is how many bytes the files of a release may take.
func (c Config) mostDisk() int64 { return int64(c.DiskMB) << 20 }

// lookAtDisk ends the agents of the releases whose files take too much disk.
func (m *machine) lookAtDisk() {
	for _, agents := range m.disk.agents() {
		first := agents[0]
		if !m.overDisk(first.dirs) && (first.user == 0 || child.SharedBy(first.user) <= mostShared) {
			continue
		}
		for _, a := range agents {
			a.overDisk.Store(true)
			if err := a.process.Kill(); err != nil {
				m.cfg.Log.Error("end agent whose files take too much disk", "revision", a.revision, "error", err)
			}
		}
	}
}

// errOverDisk says that the files of a release take too much disk before its agent is started.
var errOverDisk = errors.New("the files of the agent take too much disk")

// makeRoom returns errOverDisk if the files of a release already take too much disk. The home
// and the temporary files of its earlier agents are removed first, if none of them runs. The
// caller has begun the start of an agent.
func (m *machine) makeRoom(spec compute.Release) error {
	dirs := m.dirsOf(spec)
	if !m.overDisk(dirs) {
		return nil
	}
	if len(m.disk.agents()[spec.Revision]) == 0 {
		if err := child.RemoveFiles(m.dirOf(spec.Revision)); err != nil {
			return fmt.Errorf("remove the files of earlier agents: %w", err)
		}
	}
	if m.overDisk(dirs) {
		return errOverDisk
	}
	return nil
}

// dirsOf returns the directories into which the agents of a release may write.
func (m *machine) dirsOf(spec compute.Release) []string {
	return append([]string{m.dirOf(spec.Revision)}, spec.Artifact.Own...)
}

// overDisk reports whether the files in directories together take more disk than they may.
func (m *machine) overDisk(dirs []string) bool {
	left := m.cfg.mostDisk()
	for _, dir := range dirs {
		left -= disk.Taken(dir, left)
	}
	return left < 0
}

// forgetShared removes what the agents of a user have left in shared memory, after the last of
// them. A build of the workspace that runs has the same user, and loses its files there. Agents
// without a user of their own share the user of the server: their files stay.
func (m *machine) forgetShared(a *agent) error {
	if last := m.disk.remove(a); !last || a.user == 0 {
		return nil
	}
	return child.RemoveShared(a.user)
}

package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/turn"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// An agent fills its limit of disk only by taking free space from the disk, or by making files. So
// the watch asks the file system for its free space and for the number of files that it can still
// hold, which is one system call, and walks through the files of agents only when much has gone.
const (
	// freePause is the time between two questions for the free space.
	freePause = time.Second
	// freeStep is how many bytes of free space must have gone before files are looked at. A file
	// counts as disk.Smallest.
	freeStep = 64 << 20
	// mostShared is how many bytes the files of a workspace's user may take in the memory that
	// all programs of the machine share.
	mostShared = 256 << 20
)

// diskWatch knows the agents that run.
type diskWatch struct {
	mu      sync.Mutex
	running map[*agent]struct{}
	// added gets a value when an agent was added.
	added chan struct{}
	// starting lets the agents of a revision start one after the other. So an agent finds either no
	// files removed, or the agents that have them.
	starting *turn.Turns[string]
}

func newDiskWatch() diskWatch {
	return diskWatch{running: map[*agent]struct{}{}, added: make(chan struct{}, 1), starting: turn.New[string](1)}
}

// add notes an agent that has been started.
func (w *diskWatch) add(a *agent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[a] = struct{}{}
	select {
	case w.added <- struct{}{}:
	default: // it has a value already
	}
}

// remove notes that an agent has ended.
func (w *diskWatch) remove(a *agent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, a)
}

// await waits until an agent runs, and returns false if ctx ends first.
func (w *diskWatch) await(ctx context.Context) bool {
	for {
		w.mu.Lock()
		running := len(w.running)
		w.mu.Unlock()
		if running > 0 {
			return true
		}
		select {
		case <-w.added:
		case <-ctx.Done():
			return false
		}
	}
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

// watch ends agents that take more disk or sockets than they may, until ctx ends.
func (m *machine) watch(ctx context.Context) {
	var files, sockets looks
	places := []string{m.cfg.Dir, child.SharedMemory}
	most, looked := map[string]disk.Usage{}, time.Now()
	for m.disk.await(ctx) && clock.Sleep(ctx, freePause) {
		if child.SocketsInUse() > m.cfg.Sockets {
			sockets.look(m.cfg.Log, "look at the sockets of agents", m.lookAtSockets)
		}
		if !files.due() {
			continue
		}
		gone := time.Since(looked) >= m.cfg.LookPause
		for _, place := range places {
			usage, err := m.look(place)
			if err != nil {
				continue // a machine may have no such place; then agents have none, either
			}
			free := disk.Usage{Free: max(most[place].Free, usage.Free), FreeFiles: max(most[place].FreeFiles, usage.FreeFiles)}
			most[place] = free
			gone = gone || free.Free-usage.Free >= m.cfg.step() || free.FreeFiles-usage.FreeFiles >= m.cfg.step()/disk.Smallest
		}
		if gone {
			clear(most)
			looked = time.Now()
			files.look(m.cfg.Log, "look at the disk of agents", m.lookAtDisk)
		}
	}
}

// step is how many bytes of free space must have gone before files are looked at: a small limit
// needs a smaller step.
func (c Config) step() int64 { return min(freeStep, c.mostDisk()/2) }

// mostDisk is how many bytes the files of a release may take.
func (c Config) mostDisk() int64 { return int64(c.DiskMB) << 20 }

// lookAtDisk ends the agents of the releases whose files take too much disk.
func (m *machine) lookAtDisk() {
	running := m.disk.agents()
	held := child.HeldBytes(m.cfg.Dir, processesOf(running))
	for _, agents := range running {
		first, removed := agents[0], int64(0)
		for _, a := range agents {
			removed += held[a.process]
		}
		if !m.overDisk(first.dirs, removed) && (first.user == 0 || child.SharedBy(first.user) <= mostShared) {
			continue
		}
		m.endAll(agents, excess{
			compute.ReasonOutOfDisk,
			fmt.Sprintf("its files took more than the disk that they may: %d MB, and %d MB of shared memory", m.cfg.DiskMB, mostShared>>20),
		})
	}
}

// errOverDisk says that the files of a release take too much disk before its agent is started.
var errOverDisk = errors.New("the files of the agent take too much disk")

// makeRoom returns errOverDisk if the files of a release already take too much disk. The home
// and the temporary files of its earlier agents are removed first, if none of them runs. The
// caller has begun the start of an agent.
func (m *machine) makeRoom(spec compute.Release) error {
	dirs := m.dirsOf(spec)
	if !m.overDisk(dirs, 0) {
		return nil
	}
	if len(m.disk.agents()[spec.Revision]) == 0 {
		if err := child.RemoveFiles(m.dirOf(spec.Revision)); err != nil {
			return fmt.Errorf("remove the files of earlier agents: %w", err)
		}
	}
	if m.overDisk(dirs, 0) {
		return errOverDisk
	}
	return nil
}

// dirsOf returns the directories into which the agents of a release may write.
func (m *machine) dirsOf(spec compute.Release) []string {
	return append([]string{m.dirOf(spec.Revision)}, spec.Artifact.Own...)
}

// overDisk reports whether the files in directories, and removed bytes of files without a name,
// together take more disk than they may.
func (m *machine) overDisk(dirs []string, removed int64) bool {
	left := m.cfg.mostDisk() - removed
	for _, dir := range dirs {
		left -= disk.Taken(dir, left)
	}
	return left < 0
}

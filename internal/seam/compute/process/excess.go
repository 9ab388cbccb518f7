package process

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

const (
	// looksPart is the part of the time, 1 in so many, that looks may take.
	looksPart = 20
	// longestPause bounds the time after a look that took long.
	longestPause = 5 * time.Minute
)

// looks are looks of one kind at agents. They take a part of the time at most.
type looks struct{ next time.Time }

// due reports whether there may be a look again.
func (l *looks) due() bool { return !time.Now().Before(l.next) }

// look looks if it may. A look that panics is over; the next look may do better.
func (l *looks) look(log *slog.Logger, what string, look func()) {
	if !l.due() {
		return
	}
	began := time.Now()
	guard.Func(log, what, look)()
	l.next = time.Now().Add(min(looksPart*time.Since(began), longestPause))
}

// excess is what an agent took more of than it may.
type excess struct{ reason, what string }

// endAll ends agents because of an excess.
func (m *machine) endAll(agents []*agent, over excess) {
	for _, a := range agents {
		a.excess.Store(&over)
		if err := a.process.Kill(); err != nil {
			m.cfg.Log.Error("end agent that takes too much", "revision", a.revision, "reason", over.reason, "error", err)
		}
	}
}

// processesOf returns the processes of agents.
func processesOf(running map[string][]*agent) (processes []*child.Process) {
	for _, agents := range running {
		for _, a := range agents {
			processes = append(processes, a.process)
		}
	}
	return processes
}

// lookAtSockets ends the agents of the releases that hold too many sockets.
func (m *machine) lookAtSockets() {
	running := m.disk.agents()
	for _, agents := range greedy(running, child.Sockets(processesOf(running)), m.cfg.Sockets) {
		m.endAll(agents, excess{
			compute.ReasonOutOfSockets,
			fmt.Sprintf("it held too many sockets: the agents of a workspace may hold %d together", m.cfg.Sockets),
		})
	}
}

// greedy returns the agents of the releases that hold too many sockets. The releases of a workspace
// that hold more together than they may are those that hold more than an equal part each. Where
// workspaces have no users of their own, each release counts by itself.
func greedy(running map[string][]*agent, held map[*child.Process]int, most int) (over [][]*agent) {
	type holder struct {
		user     int
		revision string
	}
	of := func(a *agent) holder {
		if a.user == 0 {
			return holder{revision: a.revision}
		}
		return holder{user: a.user}
	}
	byRelease, total, releases := map[string]int{}, map[holder]int{}, map[holder]int{}
	for revision, agents := range running {
		for _, a := range agents {
			byRelease[revision] += held[a.process]
		}
		total[of(agents[0])] += byRelease[revision]
		releases[of(agents[0])]++
	}
	for revision, agents := range running {
		by := of(agents[0])
		if total[by] > most && byRelease[revision] > most/releases[by] {
			over = append(over, agents)
		}
	}
	return over
}

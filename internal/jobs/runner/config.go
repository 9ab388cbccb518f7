package runner

import (
	"context"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Deployments returns the release of a deployment that serves.
type Deployments interface {
	// Serving returns the revision that serves the thread. During a canary this may be the
	// canary. For an empty thread id it is always the active revision. The error is a
	// fault.Unavailable for a deployment without an active revision, a fault.Conflict for a
	// deleted deployment, and a fault.NotFound for an unknown deployment.
	Serving(ctx context.Context, workspace, deployment, thread string) (compute.Ref, error)
	// ServingSince is Serving, and also names the newest restart of the agents, "" before the
	// first restart: the values in a release's environment may change with each restart.
	ServingSince(ctx context.Context, workspace, deployment, thread string) (release compute.Ref, restart string, err error)
}

// Config is the configuration of a Runner.
type Config struct {
	Runs        *run.Store
	Deployments Deployments
	Target      compute.Target
	Graph       *graph.Client
	Log         *slog.Logger
	// ServerURL returns the URL of a deployment's agent server, whose store its agent may use;
	// nil if agents cannot reach it.
	ServerURL func(deployment string) string
	// ReadLimits reads the limits of runs in a release's own environment, which hold wherever
	// the workers of the runs are. If ReadLimits is nil, no release has such limits.
	ReadLimits func(ctx context.Context, release compute.Ref) (compute.RunLimits, error)
	// Busy, if not nil, gets how long the runs of a release that scales have been with its agent
	// since the last call: all runs of this process together, soon after each full minute,
	// and when the last run leaves the agent. If the process dies, the times that it has not
	// reported are lost.
	Busy func(ctx context.Context, release compute.Ref, worked time.Duration)
	// Now is the clock of Busy; default clock.System.
	Now clock.Clock
	// Jobs is how many runs of a deployment this runner itself works on at a time, while the
	// other runs wait; default 1024. Timeout is how long a run may take in all its attempts
	// together unless the release says otherwise; default an hour.
	Jobs    int
	Timeout time.Duration
	// Budget is the budget for the memory of agents' events until they are stored; default a
	// budget of its own. States is the budget for the states of the threads whose runs are
	// worked on: large ones are counted as long as the run's agent works, so this budget is a
	// lasting one of its own. Reads take part in it if their table is table.Budgeted.
	Budget, States *budget.Budget
	// StateAtRest is how many bytes of a state are not counted in States once the state was sent
	// to the agent; default 8 MiB, so that only runs on very large states wait for the ends of
	// other runs. StateWait is how long a run waits for room in States, until it goes on
	// without it; default a minute.
	StateAtRest int64
	StateWait   time.Duration
	// MaxEvents is how many events a run may send, default a million. MaxBytes is how many
	// bytes of events one attempt at a run may send, default 1 GiB.
	MaxEvents, MaxBytes int64
	// Reserve returns a fault if there is no room for the data that runs store; nil is for a
	// platform that always has room.
	Reserve func() error
	// FlushDelay is how long events are collected before they are written; default 2 ms.
	FlushDelay time.Duration
	// FlushInterval is the least time between two writes of one attempt's events, for a
	// platform where each write costs money: the first event after a silence is written after
	// FlushDelay, later events wait. It must be well below the lease of a run. Default none.
	// The end of an attempt and a full batch do not wait. ReaderlessInterval takes its place, if
	// it is longer, while no reader waits for the run's events; the store of runs must be Paced.
	FlushInterval, ReaderlessInterval time.Duration
	// Heartbeat is how long an agent may be silent before its readers see the input; default 5 s.
	// SilentHeartbeat is how often the worker checks from then on whether it must renew the lease;
	// default Heartbeat.
	Heartbeat, SilentHeartbeat time.Duration
	// AgentWait is how long a run waits for an agent that is being restarted; default 30 s.
	AgentWait time.Duration
	// Margin is how long before the deadline of its task, if there is one, a worker hands its run
	// over to the next slice; default 3 s.
	Margin time.Duration
}

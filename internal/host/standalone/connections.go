package standalone

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// connections returns the limits on the connections that the server holds at a time.
func (s *Server) connections() (inbound.Limits, error) {
	if s.config.Connections != (inbound.Limits{}) {
		return s.config.Connections, nil
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return inbound.Limits{}, fmt.Errorf("read the limit of open files: %w", err)
	}
	return inbound.LimitsOf(files.Cur), nil
}

// agentClient returns a client that reaches agents on every kind of address where they listen.
func (s *Server) agentClient() *graph.Client {
	transport := graph.NewTransport()
	transport.DialContext = s.processes.Dialer(transport.DialContext)
	return graph.NewClient(transport)
}

// MemoryBound is how many bytes the bodies of requests and the events of agents may take.
func (c Config) MemoryBound() int64 { return cmp.Or(c.Memory, runner.DefaultMemory) }

// stateShare divides the MemoryBound: the states of threads whose runs are worked on may take
// this part in addition.
const stateShare = 2

// states returns the budget for the states of threads whose runs are worked on.
func (c Config) states() *budget.Budget { return budget.NewLasting(c.MemoryBound() / stateShare) }

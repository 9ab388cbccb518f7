package standalone

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/quota"
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

// readShare divides the MemoryBound: the data that requests have read may take this part in
// addition. Connections that wait may take twice this part.
const readShare = 3

// streamMemory is how many bytes the connections may take that wait.
func (c Config) streamMemory() int64 { return 2 * c.MemoryBound() / readShare }

// fitted returns the configuration with quotas that the memory has room for, except for quotas that
// the operator has set.
func (c Config) fitted() Config {
	most := web.StreamsWithin(c.streamMemory())
	c.Quotas = c.Quotas.Within(quota.Streams, most).Within(quota.ThreadStreams, most)
	return c
}

// boundMemory gives requests their memory.
func (s *Server) boundMemory() {
	s.mux.Bodies = s.room
	s.mux.Reads = budget.New(s.config.MemoryBound() / readShare)
	s.mux.Streams = budget.NewLasting(s.config.streamMemory())
}

// states returns the budget for the states of threads whose runs are worked on.
func (c Config) states() *budget.Budget { return budget.NewLasting(c.MemoryBound() / stateShare) }

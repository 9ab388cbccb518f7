package standalone

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// stopGrace is how long running work may go on when the server stops.
const stopGrace = 10 * time.Second

// end stops a server that serves: it accepts no new requests, gives the running work and the timers
// that were told to end stopGrace together, and releases everything. cut ends the requests that
// are left.
func (s *Server) end(ctx context.Context, server *http.Server, timers *sync.WaitGroup, cut context.CancelCauseFunc) error {
	s.config.Log.Info("stopping")
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(grace) }()
	timersEnded := make(chan struct{})
	go func() {
		timers.Wait()
		close(timersEnded)
	}()
	s.engine.Close(grace)
	select {
	case <-timersEnded:
	case <-grace.Done():
	}
	if grace.Err() != nil {
		s.config.Log.Warn("work was cut off, which goes on at the next start", "after", stopGrace)
	}
	// Runs that could end have ended; callers that still wait for a run are told to come back.
	cut(fault.New(fault.Unavailable, "The server is stopping. Try again."))
	err := <-stopped
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, server.Close(), s.Close(grace))
}

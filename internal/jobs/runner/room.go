package runner

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/budget"
)

const (
	// sentCost is the cost of a byte of a state while it is sent to an agent: it is held in
	// parts, as one text, and in the body of the request. Reads count the same cost.
	sentCost = 3
	// stateAllowance is how many bytes of this cost are not counted: runs on small states wait
	// for no other run.
	stateAllowance = 128 << 10
	// defaultStates is the budget for states of a runner without a configured budget.
	defaultStates = 96 << 20
)

// stateRoom is the memory that one attempt takes for the state of its thread, from the moment it
// reads the state to its own end.
type stateRoom struct {
	hold *budget.Hold
	// taken is how many bytes were taken for the state and the data that came with it.
	taken int64
}

// errNoStateRoom says that there is no room for the state of a thread now.
var errNoStateRoom = errors.New("there is no room for the state")

// claim claims a run when there is room for its state. It holds nothing while it waits, also
// not what it has read before: the state is read again then. The caller closes the room.
func (r *Runner) claim(ctx, slice context.Context, ref run.Ref, permits int) (*run.Attempt, *stateRoom, error) {
	for missed := int64(0); ; {
		room := &stateRoom{hold: budget.NewHold(r.States, stateAllowance, -1, errNoStateRoom)}
		room.hold.For(ref.Workspace)
		if err := room.hold.Credit(slice, missed); err != nil {
			return nil, room, err
		}
		attempt, err := r.Runs.Claim(budget.Holding(ctx, room.hold), ref, permits)
		if !errors.Is(err, errNoStateRoom) {
			return attempt, room, err
		}
		missed = room.hold.Missed()
		room.close()
	}
}

// fit waits until there is room for the attempt's state. There is room already unless the
// state was found in memory, and was not read. Meanwhile the attempt keeps its run.
func (s *stateRoom) fit(ctx, slice context.Context, attempt *run.Attempt, heartbeat time.Duration) error {
	s.hold.Endure()
	s.taken = s.hold.Detach()
	missing := int64(attempt.Memory())*sentCost - s.taken
	if missing <= 0 {
		return nil
	}
	if s.hold.Try(missing) {
		s.taken += s.hold.Detach()
		return nil
	}
	for {
		wait, stop := context.WithTimeout(slice, heartbeat)
		err := s.hold.Take(wait, missing)
		stop()
		if err == nil {
			s.taken += s.hold.Detach()
			return nil
		}
		if slice.Err() != nil {
			return context.Cause(slice)
		}
		if err := attempt.Flush(ctx); err != nil {
			return err
		}
	}
}

// sent gives back what sending the state took. The attempt keeps the state itself.
func (s *stateRoom) sent() {
	most := s.taken - s.taken/sentCost
	s.hold.Return(most)
	s.taken -= most
}

// close gives everything back.
func (s *stateRoom) close() { s.hold.Close() }

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
	// growStep is how many bytes of events an agent sends between two looks at how much its state
	// has grown.
	growStep = 1 << 20
	// defaultStates is the budget for states of a runner without a configured budget.
	defaultStates = 96 << 20
)

// stateRoom is the memory that one attempt takes for the state of its thread: all of it until the
// state is sent to the agent, and afterwards the part of the state above Config.StateAtRest, until
// the attempt ends.
type stateRoom struct {
	// hold is nil if the run goes on without room.
	hold *budget.Hold
	// beyond is set if the run has waited for room in vain: its state is not counted any more.
	beyond bool
	// taken is how many bytes were taken for the state and the data that came with it.
	taken int64
	// alone ends the turn of a run that goes on without room; nil for other runs.
	alone func()
}

// errNoStateRoom says that there is no room for the state of a thread now.
var errNoStateRoom = errors.New("there is no room for the state")

// claim claims a run when there is room for its state. It holds nothing while it waits, also
// not what it has read before: the state is read again then. After Config.StateWait the run goes on
// without room, because the runs that hold the room may wait for this run. The caller closes the
// room.
func (r *Runner) claim(ctx, slice context.Context, ref run.Ref, permits int) (*run.Attempt, *stateRoom, error) {
	wait, stop := context.WithTimeout(slice, r.StateWait)
	defer stop()
	for missed := int64(0); ; {
		room := &stateRoom{hold: budget.NewHold(r.States, stateAllowance, -1, errNoStateRoom)}
		room.hold.For(ref.Workspace)
		if err := room.hold.Credit(wait, missed); err != nil || (missed > 0 && wait.Err() != nil) {
			room.close()
			return r.claimAlone(ctx, slice, ref, permits)
		}
		attempt, err := r.Runs.Claim(budget.Holding(ctx, room.hold), ref, permits)
		if !errors.Is(err, errNoStateRoom) {
			return attempt, room, err
		}
		missed = room.hold.Missed()
		room.close()
	}
}

// claimAlone claims a run without room for its state. Such runs are claimed one after the other:
// the next one when the state of the one before was sent.
func (r *Runner) claimAlone(ctx, slice context.Context, ref run.Ref, permits int) (*run.Attempt, *stateRoom, error) {
	if slice.Err() != nil {
		return nil, &stateRoom{}, context.Cause(slice)
	}
	select {
	case r.alone <- struct{}{}:
	case <-slice.Done():
		return nil, &stateRoom{}, context.Cause(slice)
	}
	r.Log.WarnContext(ctx, "a run waited too long for room for its state and goes on without it", "workspace", ref.Workspace, "run", ref.Run)
	room := &stateRoom{alone: func() { <-r.alone }}
	attempt, err := r.Runs.Claim(ctx, ref, permits)
	return attempt, room, err
}

// fit waits until there is room for the attempt's state as it is sent, at most for
// Config.StateWait. There is room already unless the state was found in memory, and was not read.
func (r *Runner) fit(ctx, slice context.Context, room *stateRoom, attempt *run.Attempt) error {
	room.hold.Endure()
	room.taken = room.hold.Detach()
	return r.extend(ctx, slice, room, attempt, int64(attempt.Log.Values.Memory())*sentCost, nil)
}

// grow waits until there is room for the state of an attempt whose agent works. No more of the
// agent's answer is taken meanwhile. After Config.StateWait the run goes on without room, because
// the runs that hold the room may wait for this run: one such run at a time, until its attempt
// ends.
func (r *Runner) grow(ctx, slice context.Context, room *stateRoom, attempt *run.Attempt) error {
	if room.beyond {
		return nil
	}
	return r.extend(ctx, slice, room, attempt, int64(attempt.Log.Values.Memory())-r.StateAtRest, r.grown)
}

// extend waits until the attempt has room for a number of bytes in all. Meanwhile the attempt
// keeps its run. After Config.StateWait it waits for its turn to go on without room, too.
func (r *Runner) extend(ctx, slice context.Context, room *stateRoom, attempt *run.Attempt, bytes int64, turn chan struct{}) error {
	missing := bytes - room.taken
	if missing <= 0 || room.hold.Try(missing) {
		room.taken += room.hold.Detach()
		return nil
	}
	for until := time.Now().Add(r.StateWait); ; {
		pause := r.Heartbeat
		if left := time.Until(until); left > 0 {
			pause = min(pause, left)
		}
		wait, stop := context.WithTimeout(slice, pause)
		err := room.hold.Take(wait, missing)
		stop()
		switch {
		case err == nil:
			room.taken += room.hold.Detach()
			return nil
		case slice.Err() != nil:
			return context.Cause(slice)
		case !time.Now().Before(until) && room.goBeyond(turn):
			return nil
		}
		if err := attempt.Flush(ctx); err != nil {
			return err
		}
	}
}

// goBeyond reports whether the run may go on without room now: without a turn, or if the turn is
// free.
func (s *stateRoom) goBeyond(turn chan struct{}) bool {
	if turn != nil {
		select {
		case turn <- struct{}{}:
			s.alone = func() { <-turn }
		default:
			return false
		}
	}
	s.beyond = true
	return true
}

// sent gives back the bytes that reading and sending the state took, all but rest bytes.
func (s *stateRoom) sent(rest int64) {
	rest = min(max(rest, 0), s.taken)
	s.hold.Return(s.taken - rest)
	s.taken = rest
	s.endTurn()
}

// close gives everything back.
func (s *stateRoom) close() {
	s.hold.Close()
	s.endTurn()
}

func (s *stateRoom) endTurn() {
	if s.alone != nil {
		s.alone()
		s.alone = nil
	}
}

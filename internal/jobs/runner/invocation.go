package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// invoke calls the agent and writes its answer until the run or the slice is over.
func (r *Runner) invoke(ctx, slice context.Context, attempt *run.Attempt, room *stateRoom, endpoint compute.Endpoint) (goesOn bool, err error) {
	if err := r.fit(ctx, slice, room, attempt); err != nil {
		return r.cutShort(ctx, slice, attempt, err)
	}
	// Ending this context closes the connection: this tells the agent to stop.
	call, end := context.WithCancelCause(slice)
	stop := func() { end(nil) }
	defer stop()
	invocation := newInvocation(attempt)
	if r.ServerURL != nil {
		invocation.ServerURL = r.ServerURL(attempt.Run.Deployment)
	}
	stream, err := r.Graph.Invoke(call, endpoint, invocation)
	room.sent(int64(attempt.Log.Values.Memory()) - r.StateAtRest)
	if err != nil {
		return r.cutShort(ctx, slice, attempt, explained(slice, endpoint, err))
	}
	answer := &answer{attempt: attempt, grow: func() error { return r.grow(ctx, slice, room, attempt) }}
	ahead := newAhead(r.Budget, attempt.Run.Workspace, stepTime, func() { end(errSlowEvent) })
	defer ahead.close()
	events := r.receive(call, stream, ahead)
	err = r.pump(ctx, answer, events)
	stop()
	for range events.queue { // until the reader has released the stream
	}
	if errors.Is(context.Cause(call), errSlowEvent) {
		err = &graph.ProtocolError{Message: errSlowEvent.Error()}
	}
	if !errors.Is(err, errAnswered) {
		return r.cutShort(ctx, slice, attempt, explained(slice, endpoint, err))
	}
	last, cancel := lastWrite(ctx)
	defer cancel()
	return false, attempt.Finish(last, answer.outcome())
}

// lastPatience is how long an attempt's last write may take when its process is ending.
const lastPatience = 5 * time.Second

// lastWrite returns the context of an attempt's last write. This write must also succeed if
// this process is ending. The context keeps the deadline of the task, so that a write to a
// busy store ends before a function ends.
func lastWrite(ctx context.Context) (context.Context, context.CancelFunc) {
	kept, end := context.WithoutCancel(ctx), func() {}
	if deadline, ok := ctx.Deadline(); ok {
		kept, end = context.WithDeadline(kept, deadline)
	}
	last, cancel := context.WithCancel(kept)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastPatience, cancel) })
	return last, func() {
		stop()
		cancel()
		end()
	}
}

// cutShort handles the error that ended an attempt before the agent's answer was complete. The
// events that had arrived by then are kept, because the next attempt goes on from them.
func (r *Runner) cutShort(ctx, slice context.Context, attempt *run.Attempt, err error) (goesOn bool, _ error) {
	var refused *graph.RefusedError
	var broken *graph.ProtocolError
	var full *thread.TooLargeError
	var failed *failedError
	last, cancel := lastWrite(ctx)
	defer cancel()
	switch {
	case errors.Is(err, run.ErrFenced), errors.As(err, &full):
		return false, err
	case errors.As(err, &refused):
		return false, endRefused(last, attempt, refused)
	case errors.As(err, &broken):
		return false, finishFailed(last, attempt, run.FailureContractViolation, broken.Error())
	case errors.As(err, &failed):
		return false, finishFailed(last, attempt, failed.name, failed.message)
	}
	if errors.Is(context.Cause(slice), errTimedOut) {
		return false, attempt.Finish(last, run.Outcome{Status: run.Timeout, Failure: &run.Failure{
			Name: run.FailureTimedOut, Message: "The run took longer than its deployment allows.",
		}})
	}
	if errors.Is(slice.Err(), context.DeadlineExceeded) {
		return true, attempt.HandOver(last)
	}
	if ctx.Err() != nil {
		// The process is ending: the next process goes on, and this attempt did not fail.
		return false, errors.Join(ctx.Err(), attempt.HandOver(last))
	}
	if flushErr := attempt.Flush(last); flushErr != nil {
		return false, flushErr
	}
	if unavailable, ok := errors.AsType[*graph.UnavailableError](err); ok {
		return false, unavailableTask(unavailable)
	}
	return false, err
}

// newInvocation returns the invocation of the agent for an attempt, without the values.
func newInvocation(a *run.Attempt) graph.Invocation {
	invocation := graph.Invocation{
		Operation:       graph.OperationRun,
		Graph:           a.Run.Graph,
		ThreadID:        a.Run.Thread,
		RunID:           a.Run.Run,
		Attempt:         int(a.Run.Attempt),
		Input:           state.OrNull(a.Run.GraphInput().JSON()),
		Command:         state.OrNull(a.Run.Command),
		State:           graph.State{Values: a.Log.Values.JSON(), Checkpoint: a.Log.Checkpoints(), Pending: a.Pending},
		Config:          state.OrNull(a.Run.Config),
		Context:         state.OrNull(a.Run.Context),
		AssistantID:     a.Run.AssistantID,
		Metadata:        a.Run.Metadata,
		Tracer:          a.Run.Tracer,
		StreamMode:      agentModes(a.Run.StreamModes, a.Run.StreamSubgraphs),
		InterruptBefore: a.Run.InterruptBefore,
		InterruptAfter:  a.Run.InterruptAfter,
		StreamSubgraphs: a.Run.StreamSubgraphs,
		Durability:      durability(a.Run.Durability),
	}
	if a.Run.Caller != nil {
		invocation.Caller = *a.Run.Caller
	}
	return invocation
}

// durability translates the durability that a client wants into the durability of the agent. The
// state and the values that readers see are made from the agent's checkpoints, so the agent sends
// its checkpoints also if the client wants them at the run's end only.
func durability(wanted string) string {
	if wanted == "exit" {
		return "async"
	}
	return wanted
}

// agentModes translates the modes that readers want into the modes that the agent must send.
// Updates are always among them, because the state is made from them. Values are made from the
// state, so only the values of subgraphs are requested.
func agentModes(wanted []string, subgraphs bool) []string {
	modes := []string{graph.EventUpdates}
	for _, mode := range wanted {
		switch mode {
		case graph.EventValues:
			if !subgraphs {
				continue
			}
		case "messages-tuple":
			mode = graph.EventMessages
		}
		if !slices.Contains(modes, mode) { // updates are in the list already
			modes = append(modes, mode)
		}
	}
	return modes
}

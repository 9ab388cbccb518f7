package local

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// Delays between attempts to store an execution while the table does not take it.
const (
	firstSaveDelay = 100 * time.Millisecond
	maxSaveDelay   = 10 * time.Second
)

// saveIfNeeded stores the position before the execution acts again.
func (x *execution) saveIfNeeded() error {
	if !x.unsaved {
		return nil
	}
	return x.save()
}

// save stores the position.
func (x *execution) save() error {
	r := x.record
	r.position, r.Data = x.at, asl.Encode(x.data)
	if err := x.write(&r, workflow.Running); err != nil {
		return err
	}
	x.unsaved = false
	return nil
}

// write stores the execution, however long the table takes to accept it: an execution whose
// position is not stored must not act. Only the end of the engine's own context ends the
// attempts, because a stopped or timed out execution must still be able to end.
func (x *execution) write(r *record, status workflow.Status) error {
	if x.version == 0 && status != workflow.Running {
		return nil // no later process would go on with it
	}
	e := x.engine
	for delay := firstSaveDelay; ; delay = min(2*delay, maxSaveDelay) {
		err := e.replace(context.WithoutCancel(e.ctx), r, status, x.version)
		var changed *table.ConditionFailed
		switch {
		case err == nil:
			x.version++
			return nil
		case errors.As(err, &changed):
			return errSuperseded
		}
		e.log.Error("execution could not be stored, trying again", "machine", r.Machine, "name", r.Name, "error", err)
		if !clock.Sleep(e.ctx, delay) {
			return context.Cause(e.ctx)
		}
	}
}

// finish stores how the execution ended. After any other reason for which advance returned
// (the engine closes, the execution was stopped or taken over), the stored record stays as it
// is. This is also so when write gives up, for the same reasons.
func (x *execution) finish(err error) {
	var failure *asl.Error
	switch {
	case err == nil:
		x.succeed()
	case errors.Is(err, errTimedOut):
		x.fail(workflow.TimedOut, ExecutionTimedOut, &asl.Error{Name: asl.ErrorTimeout, Cause: "The execution took longer than the machine's TimeoutSeconds."})
	case errors.As(err, &failure):
		x.fail(workflow.Failed, ExecutionFailed, failure)
	case errors.Is(err, errAborted) && slices.Contains(x.engine.unstored, x.record.Machine):
		// It may have been stored after Stop found that it was not stored.
		r := x.record
		r.end(x.engine.now(), "", err.Error())
		_ = x.write(&r, workflow.Aborted)
	}
}

func (x *execution) succeed() {
	r := x.record
	r.end(x.engine.now(), "", "")
	r.Output = asl.Encode(x.data)
	if x.write(&r, workflow.Succeeded) == nil {
		x.report(Event{Type: ExecutionSucceeded, Data: r.Output})
	}
}

func (x *execution) fail(status workflow.Status, event EventType, failure *asl.Error) {
	r := x.record
	r.end(x.engine.now(), failure.Name, failure.Cause)
	if x.write(&r, status) != nil {
		return
	}
	x.engine.log.Warn("execution failed", "machine", r.Machine, "name", r.Name, "status", string(status), "error", failure.Name)
	x.report(Event{Type: event, Error: failure.Name, Cause: failure.Cause})
}

// end turns the record of a running execution into the record of an ended execution.
func (r *record) end(now time.Time, name, cause string) {
	r.position, r.Data, r.Resumed = position{}, nil, nil
	r.Error, r.Cause, r.Stopped = name, cause, now
}

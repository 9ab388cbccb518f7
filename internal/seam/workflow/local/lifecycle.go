package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// ErrClosed is returned by Start and Resume once Close has been called.
var ErrClosed = errors.New("workflow engine is closed")

// errAborted is the cause with which a stopped execution's context ends.
var errAborted = errors.New("execution was stopped")

// claim is one execution's place in this process. Only the holder of the claim may store the
// execution's start and run it.
type claim struct {
	key    table.Key
	ctx    context.Context
	cancel context.CancelCauseFunc
	// settled is closed when it is known whether the execution is stored. err says why it is
	// not.
	settled chan struct{}
	err     error
	// aborted is reported when the claim is given up, so that no event of the execution comes
	// after it. Guarded by the engine's mu.
	aborted *Event
}

// claim makes the claim of an execution, or returns the existing claim.
func (e *Engine) claim(key table.Key) (c *claim, mine bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing.Err() != nil {
		return nil, false, ErrClosed
	}
	if c, ok := e.claims[key]; ok {
		return c, false, nil
	}
	c = &claim{key: key, settled: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(e.ctx)
	e.claims[key] = c
	e.claimed.Add(1)
	return c, true, nil
}

// wait returns true when the execution is stored, false when the holder of the claim did not
// succeed.
func (c *claim) wait(ctx context.Context) (bool, error) {
	select {
	case <-c.settled:
		return c.err == nil, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// runsUnstored reports whether this process runs an execution that may not be stored.
func (e *Engine) runsUnstored(machine workflow.Machine, key table.Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.unstored, machine) && e.claims[key] != nil
}

// carryOn runs an execution whose claim is settled.
func (e *Engine) carryOn(c *claim, x *execution) {
	go guard.Func(e.log, "run an execution", func() {
		defer e.free(c)
		defer x.signalProgress()
		x.run(c.ctx)
	})()
}

// release gives up a claim without running the execution. The claim is removed first, so that
// a caller that waits for it can make a new claim.
func (e *Engine) release(c *claim, err error) {
	e.free(c)
	c.err = err
	close(c.settled)
}

func (e *Engine) free(c *claim) {
	c.cancel(nil)
	e.mu.Lock()
	delete(e.claims, c.key)
	aborted := c.aborted
	e.mu.Unlock()
	if aborted != nil {
		e.report(*aborted)
	}
	e.claimed.Done()
}

// abort ends the context of an execution that was stored as Aborted, if this process runs it,
// and makes sure that the event is reported.
func (e *Engine) abort(key table.Key, event Event) {
	e.mu.Lock()
	c := e.claims[key]
	if c != nil {
		c.aborted = &event
	}
	e.mu.Unlock()
	if c == nil {
		e.report(event)
		return
	}
	c.cancel(errAborted)
}

// Resume continues the executions that are stored as running and that this process does not
// run. Call it once at start-up. Executions that may have ended the previous servers are not
// continued like the rest; see suspects.go.
func (e *Engine) Resume(ctx context.Context) error {
	died, err := e.noteAlive(ctx)
	if err != nil {
		return fmt.Errorf("note that the server runs: %w", err)
	}
	var problems []error
	var suspects []suspect
	for item, err := range table.Items(ctx, e.table, keys.RunningExecutions()) {
		if err != nil {
			problems = append(problems, fmt.Errorf("list running executions: %w", err))
			break
		}
		err := guard.Run(e.log, "resume an execution", func() error {
			resumed, err := e.resume(ctx, item.Key, died)
			if resumed != nil {
				suspects = append(suspects, *resumed)
			}
			return err
		})
		if err != nil {
			problems = append(problems, fmt.Errorf("resume execution: %w", err))
		}
	}
	e.try(suspects)
	return errors.Join(problems...)
}

// resume reads the execution again under its claim: it may have ended since the list was read.
// An execution that may have ended the previous servers is returned, and not continued.
func (e *Engine) resume(ctx context.Context, key table.Key, died bool) (*suspect, error) {
	c, mine, err := e.claim(key)
	if err != nil || !mine {
		return nil, err
	}
	item, err := e.table.Get(ctx, key)
	if err != nil {
		e.release(c, err)
		return nil, err
	}
	x, err := e.revive(c, item)
	if x == nil {
		return nil, err
	}
	if x.resumeAfter(died) {
		return &suspect{c, x}, nil
	}
	e.carryOn(c, x)
	return nil, nil
}

// revive restores a stored execution and settles its claim. It gives the claim up and returns nil
// if the execution has ended or cannot be restored.
func (e *Engine) revive(c *claim, item *table.Item) (*execution, error) {
	if statusOf(item) != workflow.Running {
		e.release(c, nil)
		return nil, nil
	}
	x, err := e.restore(item)
	if err != nil {
		e.release(c, err)
		return nil, err
	}
	close(c.settled)
	return x, nil
}

// Close refuses new executions and lets no Task begin. It waits for the Tasks in progress
// until ctx ends, then cancels their contexts. Executions that are not over stay stored as
// running, for a later Resume. When Close has returned, the engine no longer uses the table. A
// function that ignores its context may still run, and its answer is lost.
func (e *Engine) Close(ctx context.Context) {
	e.mu.Lock()
	e.beginClose()
	e.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		e.claimed.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	e.cut(ErrClosed)
	<-idle
	e.noteEnd(ctx)
}

package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// Task is the input of the run machine: ids only.
type Task struct {
	Workspace  string `json:"workspace_id"`
	Deployment string `json:"deployment_id"`
	Thread     string `json:"thread_id"`
	Run        string `json:"run_id"`
}

// Ref returns the run that the task is about.
func (t Task) Ref() Ref {
	return Ref{Ref: thread.Ref{Workspace: t.Workspace, Deployment: t.Deployment, Thread: t.Thread}, Run: t.Run}
}

// Due returns when a run that is to be claimed may begin, and true if that time has not come. A
// run that waits for nothing may begin now. Only the id of a delayed run is ahead of the clock, so
// other runs cost no read.
func (s *Store) Due(ctx context.Context, ref Ref) (time.Time, bool, error) {
	now := s.Now()
	if !id.Time(ref.Run).After(now) {
		return now, false, nil
	}
	t, run, err := s.getWithThread(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return now, false, nil
	}
	if err != nil {
		return now, false, err
	}
	if run.Status == Pending && run.Run == t.Lock.Run && run.Due.After(now) {
		return run.Due, true, nil
	}
	return now, false, nil
}

// Elapsed returns how long ago a worker first claimed the run.
func (s *Store) Elapsed(run Run) time.Duration {
	if run.Started.IsZero() {
		return 0
	}
	return s.Now().Sub(run.Started)
}

// Dispatch starts the workflow that carries an active run to its end. It is idempotent. The
// run is stored already, so Dispatch starts the workflow even if the caller's context has
// ended.
func (s *Store) Dispatch(ctx context.Context, run Run) error {
	input := record.Encode(Task{Workspace: run.Workspace, Deployment: run.Deployment, Thread: run.Thread, Run: run.Run})
	if err := s.Workflow.Start(context.WithoutCancel(ctx), workflow.Run, execution(run), input); err != nil {
		return fmt.Errorf("start workflow of run %s: %w", run.Run, err)
	}
	return nil
}

// execution returns the name of a run's workflow execution. The name is the run's id. Later
// executions append their number, because a name can be used only once.
func execution(run Run) string {
	if run.Dispatches <= 1 {
		return run.Run
	}
	return run.Run + "-" + strconv.FormatInt(run.Dispatches, 10)
}

const (
	// rescuePage is how many runs of a shard are in memory at a time.
	rescuePage = 8
	// rescueLimit is how long the rescue of one run may take.
	rescueLimit = 5 * time.Second
)

// Rescue sends another worker to each run whose lease is over. The timer "reconcile" calls it. A
// lease is the time after which Rescue looks at a run. While a worker has the run, Claim and Flush
// extend the lease by Config.WorkLease (5 min in a stack). The lease of a run without a worker
// (created, handed over, ended by another process and not yet sealed) is Config.Lease. A worker
// keeps its run when the lease ends: only the next Claim takes the run. If Rescue finds a workflow
// at work, the run gets the lease of a run with a worker, because it may wait long for a worker. No
// clocks of two hosts are compared for correctness.
//
// If the workflow of a run was never started, because the process died before it could start it, or
// the engine has forgotten it with its process, Rescue starts it. If the workflow has ended without
// ending the run, Rescue starts another workflow. Rescue reads the shards in parallel, each with
// the oldest lease first. When ctx ends, Rescue completes the work it has begun and leaves the
// other runs to the next Rescue; this is no error.
func (s *Store) Rescue(ctx context.Context, dueBy time.Time) error {
	return table.Pass{Shards: keys.Leases.Until(dueBy), Page: rescuePage}.Serve(ctx, s.Table, func(ctx context.Context, item *table.Item) error {
		parts, err := keys.ParseRun(item.Key)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rescueLimit)
		defer cancel()
		return s.rescue(ctx, Task(parts).Ref())
	})
}

func (s *Store) rescue(ctx context.Context, ref Ref) error {
	t, run, err := s.getWithThread(ctx, ref)
	// A removed run comes with the error that it is not found.
	if run.Run != "" && run.Status.Final() {
		return s.cleanUp(ctx, t, run)
	}
	if fault.Is(err, fault.NotFound) {
		return nil // an index entry can be out of date
	}
	if err != nil {
		return err
	}
	if run.Run != t.Lock.Run {
		return nil
	}
	execution, err := s.Workflow.Describe(ctx, workflow.Run, execution(run))
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return fmt.Errorf("describe workflow of run %s: %w", run.Run, err)
	}
	next, lease := run, s.leaseEntry
	running := err == nil && execution.Status == workflow.Running
	if running {
		// The workflow itself sees to it that a worker comes, in hours if workers are scarce.
		lease = s.workEntry
	} else if err == nil {
		next.Dispatches++
	}
	change := record.Change(ref.Key(), s.Now(), table.Attrs{attrDispatches: next.Dispatches}, table.All(
		table.Equals(attrStatus, string(run.Status)), table.Equals(attrAttempt, run.Attempt), table.Equals(attrDispatches, run.Dispatches)))
	change.Index = lease(ref.Run, later(s.Now(), run.Due))
	renewed, err := record.Try(ctx, s.Table, change)
	if err != nil || !renewed || running {
		return err // a run that has changed needs no rescue
	}
	return s.Dispatch(ctx, next)
}

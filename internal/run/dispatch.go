package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/thread"
	"github.com/slipway-run/slipway/internal/workflow"
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

// Dispatch starts the workflow that carries an active run to its end. It is idempotent. As the run is there already, it is started also
// when whoever asked for it has gone.
func (s *Store) Dispatch(ctx context.Context, run Run) error {
	input := record.Encode(Task{Workspace: run.Workspace, Deployment: run.Deployment, Thread: run.Thread, Run: run.Run})
	if err := s.workflow.Start(context.WithoutCancel(ctx), workflow.Run, execution(run), input); err != nil {
		return fmt.Errorf("start workflow of run %s: %w", run.Run, err)
	}
	return nil
}

// execution is the name of a run's workflow execution: its id, for later ones followed by their number, as a name can be used once only.
func execution(run Run) string {
	if run.Dispatches <= 1 {
		return run.Run
	}
	return run.Run + "-" + strconv.FormatInt(run.Dispatches, 10)
}

// Rescue sends another worker to each run whose lease is over. A run whose workflow was never started, as the process died in between, gets its
// own; one whose workflow has ended without ending the run gets another.
func (s *Store) Rescue(ctx context.Context, now time.Time) error {
	var problems []error
	for _, query := range keys.Leases(now) {
		items, err := table.AllItems(ctx, s.table, query)
		if err != nil {
			return fmt.Errorf("query leases: %w", err)
		}
		for _, item := range items {
			parts, err := keys.ParseRun(item.Key)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			problems = append(problems, s.rescue(ctx, Task(parts).Ref(), now))
		}
	}
	return errors.Join(problems...)
}

func (s *Store) rescue(ctx context.Context, ref Ref, now time.Time) error {
	t, run, err := s.read(ctx, ref)
	if err != nil {
		return err
	}
	if run.Status.Final() || run.Run != t.Lock.Run {
		return nil
	}
	execution, err := s.workflow.Describe(ctx, workflow.Run, execution(run))
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		return fmt.Errorf("describe workflow of run %s: %w", run.Run, err)
	}
	next := run
	if err == nil && execution.Status != workflow.Running {
		next.Dispatches++
	}
	change := record.Change(ref.Key(), s.now(), table.Attrs{attrDispatches: next.Dispatches}, table.All(
		table.Equals(attrStatus, string(run.Status)), table.Equals(attrAttempt, run.Attempt), table.Equals(attrDispatches, run.Dispatches)))
	change.Index = s.leaseEntry(ref.Run, now)
	err = s.table.Transact(ctx, change)
	if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
		return nil // the run has moved on by itself
	}
	if err != nil {
		return fmt.Errorf("renew lease of run %s: %w", run.Run, err)
	}
	return s.Dispatch(ctx, next)
}

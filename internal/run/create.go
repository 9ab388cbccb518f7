package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/state"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/thread"
	"github.com/slipway-run/slipway/internal/workflow"
)

// Config is what a Store works with.
type Config struct {
	Table    table.Table
	Threads  *thread.Store
	Workflow workflow.Engine
	Now      clock.Clock
	// Log gets trouble that no request fails for; the default is slog's.
	Log *slog.Logger
	// Lease is how long a worker may be silent before another one is sent; default 30 s.
	Lease time.Duration
}

// Store creates, works on and reads runs.
type Store struct {
	table    table.Table
	threads  *thread.Store
	workflow workflow.Engine
	now      clock.Clock
	lease    time.Duration
	log      *slog.Logger
}

// NewStore returns a store.
func NewStore(c Config) *Store {
	if c.Lease == 0 {
		c.Lease = 30 * time.Second
	}
	return &Store{table: c.Table, threads: c.Threads, workflow: c.Workflow, now: c.Now, lease: c.Lease, log: cmp.Or(c.Log, slog.Default())}
}

// contention is how often a decision is made anew because another request changed the lock meanwhile. Each failure means that another request
// succeeded, so the bound is met only under a load that no thread has.
const contention = 1000

// Create creates a run on a thread according to its strategy, and starts its workflow if it is the active one now. A busy thread with Reject is
// a fault.Conflict, an unknown thread a fault.NotFound. Input that cannot be folded into a state is a fault.Invalid: once accepted, it must be.
func (s *Store) Create(ctx context.Context, ref thread.Ref, request Request) (Run, error) {
	if err := state.CheckInput(request.Input); err != nil {
		return Run{}, fault.New(fault.Invalid, "The input cannot be applied: %v.", err)
	}
	for range contention {
		t, err := s.threads.Get(ctx, ref)
		if err != nil {
			return Run{}, err
		}
		run, writes, err := s.plan(t, request)
		if err != nil {
			return Run{}, err
		}
		err = s.table.Transact(ctx, writes...)
		if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
			continue // another request changed the lock first: decide again
		}
		if err != nil {
			return Run{}, fmt.Errorf("create run: %w", err)
		}
		if !t.Lock.Busy || request.Strategy == Interrupt {
			if err := s.Dispatch(ctx, run); err != nil {
				// The run is there: to report a failure would make the client ask twice. Rescue starts what was not started.
				s.log.ErrorContext(ctx, "workflow was not started, reconcile will", "run", run.Run, "error", err)
			}
		}
		return run, nil
	}
	return Run{}, fault.New(fault.Unavailable, "Thread %s is too busy to take another run.", ref.Thread)
}

// plan decides what a new run does to the thread as it was read, and returns the transaction that does it.
func (s *Store) plan(t thread.Thread, request Request) (Run, []table.Write, error) {
	if t.Lock.Busy && request.Strategy == Reject {
		return Run{}, nil, thread.BusyFault(t.Ref)
	}
	now := s.after(t.Lock.Last)
	run := Run{
		Ref: Ref{Ref: t.Ref, Run: id.New(now)}, Request: request,
		Created: now, Updated: now, Status: Pending, Checkpoint: -1, Dispatches: 1,
	}
	active := !t.Lock.Busy || request.Strategy == Interrupt
	lock := table.Attrs{thread.AttrLast: run.Run}
	if active {
		lock[thread.AttrRun], lock[thread.AttrBusy], lock[thread.AttrStatus] = run.Run, true, string(thread.StatusBusy)
	}
	writes := []table.Write{s.put(run, active), nil}
	if t.Lock.Busy && active {
		lock[thread.AttrUnsealed] = true
		writes = append(writes, s.supersede(Ref{Ref: t.Ref, Run: t.Lock.Run}, now))
	}
	writes[1] = t.ChangeLock(now, lock)
	return run, writes, nil
}

// after returns the present time, moved behind the thread's newest run if need be: a run's id and time of creation follow those of the
// runs before it even when the clocks of two hosts differ.
func (s *Store) after(last string) time.Time {
	now := s.now()
	if last == "" {
		return now
	}
	if next := id.Time(last).Add(time.Microsecond); next.After(now) {
		return next
	}
	return now
}

func (s *Store) put(run Run, active bool) table.Write {
	item := table.Item{
		Key: run.Key(),
		Attrs: record.Attrs(kind, run.Created, table.Attrs{
			attrStatus: string(Pending), attrAttempt: int64(0), attrPosition: int64(0),
			attrCheckpoint: int64(-1), attrDispatches: run.Dispatches,
		}),
		Body: record.Encode(run.Request),
	}
	if active {
		item.Index = s.leaseEntry(run.Run, run.Created)
	}
	return table.Put{Item: item, If: table.Absent()}
}

// leaseEntry places a run where reconcile finds it when its lease is over.
func (s *Store) leaseEntry(run string, now time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.Lease(run, now.Add(s.lease))}
}

// noLease takes a run from where reconcile looks.
var noLease = map[table.Index]table.Key{table.ByDue: {}}

// supersede is the write that stops a run. From then on its worker is fenced off.
func (s *Store) supersede(ref Ref, now time.Time) table.Update {
	change := record.Change(ref.Key(), now, table.Attrs{attrStatus: string(Interrupted)}, table.In(attrStatus, Interrupted.sources()...))
	change.Index = noLease
	return change
}

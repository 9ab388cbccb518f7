package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// Config is what a Store works with.
type Config struct {
	Table    table.Table
	Threads  *thread.Store
	Workflow workflow.Engine
	Now      clock.Clock
	// Log gets trouble that no request fails for; the default is slog's.
	Log *slog.Logger
	// Webhooks tells the addresses that runs name of their end; without it none is told.
	Webhooks *webhook.Store
	// Lease is how long a worker may be silent before another one is sent; default 30 s.
	Lease time.Duration
	// Linger is how long the thread of a temporary run can be read after it has ended; default 2 min.
	Linger time.Duration
}

// Store creates, works on and reads runs.
type Store struct {
	table    table.Table
	threads  *thread.Store
	workflow workflow.Engine
	now      clock.Clock
	webhooks *webhook.Store
	lease    time.Duration
	linger   time.Duration
	log      *slog.Logger
	tail     *tail
}

// NewStore returns a store.
func NewStore(c Config) *Store {
	if c.Lease == 0 {
		c.Lease = 30 * time.Second
	}
	return &Store{
		table: c.Table, threads: c.Threads, workflow: c.Workflow, now: c.Now, webhooks: c.Webhooks, lease: c.Lease,
		linger: cmp.Or(c.Linger, 2*time.Minute), log: cmp.Or(c.Log, slog.Default()),
		tail: newTail(),
	}
}

// contention is how often a decision is made anew because another request changed the lock meanwhile. Each failure means that another request
// succeeded, so the bound is met only under a load that no thread has.
const contention = 1000

// Create creates a run on a thread according to its strategy, and starts its workflow if it is the active one now. A busy thread with Reject is
// a fault.Conflict, an unknown thread a fault.NotFound. Input that cannot be folded into a state is a fault.Invalid: once accepted, it must be.
func (s *Store) Create(ctx context.Context, ref thread.Ref, request Request) (Run, error) {
	t, err := s.threads.Get(ctx, ref)
	if err != nil {
		return Run{}, err
	}
	return s.CreateOn(ctx, t, request)
}

// CreateOn is Create for a thread that was just read, or made.
func (s *Store) CreateOn(ctx context.Context, t thread.Thread, request Request) (Run, error) {
	if err := state.CheckInput(request.Input); err != nil {
		return Run{}, fault.New(fault.Invalid, "The input cannot be applied: %v.", err)
	}
	if request.Fork != nil {
		number, err := s.threads.Find(ctx, t.Ref, request.Fork.ID)
		if err != nil {
			return Run{}, err
		}
		request.Fork.Number = number
	}
	for range contention {
		var err error
		if s.clearsFirst(t, request) {
			if t, _, err = s.seal(ctx, t); err != nil {
				return Run{}, err
			}
		}
		p, err := s.plan(ctx, t, request)
		if err != nil {
			return Run{}, err
		}
		err = s.table.Transact(ctx, p.writes...)
		if err == nil {
			s.begin(ctx, p)
			return p.run, nil
		}
		if !isChanged(err) {
			return Run{}, fmt.Errorf("create run: %w", err)
		}
		// Another request changed the lock first: decide again.
		if t, err = s.threads.Get(ctx, t.Ref); err != nil {
			return Run{}, err
		}
	}
	return Run{}, fault.New(fault.Unavailable, "Thread %s is too busy to take another run.", t.Thread)
}

// clearsFirst reports whether what earlier runs left behind must be cleared up before a new run is decided on: a rollback and a fork need to know what is
// there, and a run that goes before the active one must not go before those that this has overtaken.
func (s *Store) clearsFirst(t thread.Thread, request Request) bool {
	if t.Lock.Cut != "" && (request.Strategy == Rollback || request.Fork != nil) {
		return true
	}
	return t.Lock.Due.After(s.now()) && (t.Lock.Unsealed || t.Lock.Cut != "")
}

// begin starts the workflow of a run that is active now. The run is there: to report a failure would make the client ask twice. Rescue starts what was not
// started.
func (s *Store) begin(ctx context.Context, p plan) {
	if p.displaced != nil {
		s.stop(ctx, *p.displaced, "another run goes first")
	}
	if p.active {
		s.start(ctx, p.run)
	}
}

// start dispatches a run that is active now, in any case in the end.
func (s *Store) start(ctx context.Context, run Run) {
	if err := s.Dispatch(ctx, run); err != nil {
		s.log.ErrorContext(ctx, "workflow was not started, reconcile will", "run", run.Run, "error", err)
	}
}

// stop ends the workflow of a run that waits for its time in vain. One that is not stopped finds nothing to do when the time has come.
func (s *Store) stop(ctx context.Context, run Run, why string) {
	err := s.workflow.Stop(context.WithoutCancel(ctx), workflow.Run, execution(run), why)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		s.log.WarnContext(ctx, "workflow was not stopped", "run", run.Run, "error", err)
	}
}

// plan is what a new run does to its thread.
type plan struct {
	run Run
	// active says that the run has the lock.
	active bool
	// displaced is the run that had it and waits for its time, nil for none.
	displaced *Run
	writes    []table.Write
}

// plan decides what a new run does to the thread as it was read, and returns the transaction that does it.
func (s *Store) plan(ctx context.Context, t thread.Thread, request Request) (plan, error) {
	if t.Lock.Busy && request.Strategy == Reject {
		return plan{}, thread.BusyFault(t.Ref)
	}
	waiting, err := s.waiting(ctx, t)
	if err != nil {
		return plan{}, err
	}
	now := s.now()
	takes := t.Lock.Busy && request.Strategy.takesOver()
	made, err := s.draft(t, request, waiting != nil, takes)
	if err != nil {
		return plan{}, err
	}
	p := plan{run: made}
	set := table.Attrs{thread.AttrLast: max(t.Lock.Last, p.run.Run), thread.AttrTail: t.Lock.Tail}
	if p.run.Due.IsZero() {
		set[thread.AttrTail], set[thread.AttrTailAt] = p.run.Run, clock.Format(p.run.Created)
	}
	change := t.ChangeLock(now, set)
	switch {
	case takes:
		end, err := s.takeOver(t, p.run, set, now)
		if err != nil {
			return plan{}, err
		}
		p.writes = append(p.writes, end)
	case waiting != nil && p.run.Run < waiting.Run:
		p.displaced = waiting
		p.writes = append(p.writes, s.displace(*waiting, now))
	}
	if p.active = !t.Lock.Busy || takes || p.displaced != nil; p.active {
		t.Occupy(&change, p.run.Run, p.run.Due)
		t.Ask(&change, nil) // what the thread waited for is answered, or passed over
	}
	t.Belong(&change, p.run.AssistantID, p.run.Graph)
	p.writes = append(p.writes, change)
	p.writes = append(p.writes, s.put(p.run, p.active)...)
	return p, nil
}

// takeOver returns the write that ends the thread's active run for a new one, and sets in the lock what becomes of it and of those behind it.
func (s *Store) takeOver(t thread.Thread, by Run, set table.Attrs, now time.Time) (table.Write, error) {
	active := Ref{Ref: t.Ref, Run: t.Lock.Run}
	set[thread.AttrUnsealed], set[thread.AttrOvertaken] = true, t.Lock.Last
	if by.Strategy != Rollback {
		why := supersededBy(by.Run)
		set[thread.AttrOvertakenWhy] = string(why)
		return s.end(active, Interrupted, why, now), nil
	}
	if by.Fork != nil && by.Fork.Number > t.Lock.Checkpoint && !t.Lock.Unsealed {
		return nil, fault.New(fault.NotFound, "Checkpoint with ID %s not found: the rollback removes it.", by.Fork.ID)
	}
	set[thread.AttrCut], set[thread.AttrCutTo] = t.Lock.Run, t.Lock.Last
	return s.end(active, Removed, "", now), nil
}

// waiting returns the thread's active run if that waits for its time, nil if it does not. What the lock says of it ends with the time; the run itself tells
// whether a worker whose clock is ahead has taken it up.
func (s *Store) waiting(ctx context.Context, t thread.Thread) (*Run, error) {
	if !t.Lock.Busy || !t.Lock.Due.After(s.now()) {
		return nil, nil
	}
	run, err := s.get(ctx, Ref{Ref: t.Ref, Run: t.Lock.Run}, t.Lock)
	if fault.Is(err, fault.NotFound) {
		return nil, nil // it was rolled back meanwhile: the lock that was read is not the present one
	}
	if err != nil || run.Status != Pending {
		return nil, err
	}
	return &run, nil
}

// draft makes a run whose id is behind those of the runs that it follows: a delayed one waits behind what is created before its time has come, and one that
// takes over is behind all others.
func (s *Store) draft(t thread.Thread, request Request, waiting, takes bool) (made Run, err error) {
	last := max(t.Lock.Tail, t.Lock.Sealed, t.Lock.Overtaken, t.Lock.CutTo)
	if !waiting {
		last = max(last, t.Lock.Run)
	}
	if takes {
		last = max(last, t.Lock.Last)
	}
	order, due := s.after(last), time.Time{}
	created := later(s.now(), t.Lock.TailAt.Add(time.Microsecond))
	if request.After > 0 {
		created, order = created.Add(request.After), order.Add(request.After)
		due = created
	}
	if request.Metadata, err = record.Merge(t.Metadata, request.Metadata); err != nil {
		return made, err
	}
	return Run{
		Ref: Ref{Ref: t.Ref, Run: cmp.Or(request.ID, id.New(order))}, Request: request, Due: due,
		Created: created, Updated: created, Status: Pending, Checkpoint: -1, Before: -1, Mark: -1, Dispatches: 1,
	}, nil
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

func (s *Store) put(run Run, active bool) []table.Write {
	body, rest := run.store(run.Ref, run.Created)
	item := table.Item{
		Key: run.Key(),
		Attrs: record.Attrs(kind, run.Created, table.Attrs{
			attrStatus: string(Pending), attrAttempt: int64(0), attrHanded: int64(0), attrPosition: int64(0),
			attrCheckpoint: int64(-1), attrDispatches: run.Dispatches,
		}),
		Body: body,
	}
	if active {
		item.Index = s.leaseEntry(run.Run, later(s.now(), run.Due))
	}
	if !run.Due.IsZero() {
		item.Attrs[attrDue] = clock.Format(run.Due)
	}
	put := table.Put{Item: item, If: table.Absent()}
	if rest == nil {
		return []table.Write{put}
	}
	item.Attrs[attrDetached], item.Attrs[attrBulk] = true, int64(len(rest.Item.Body))
	return []table.Write{put, *rest}
}

// leaseEntry places a run where reconcile finds it when its lease is over.
func (s *Store) leaseEntry(run string, now time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.Lease(run, now.Add(s.lease))}
}

// noLease takes a run from where reconcile looks.
var noLease = map[table.Index]table.Key{table.ByDue: {}}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// end is the write that stops a run. From then on its worker is fenced off. It keeps its lease until what it leaves behind is cleared up, so that
// this is done in any case.
func (s *Store) end(ref Ref, status Status, why Reason, now time.Time) table.Update {
	change := record.Change(ref.Key(), now, table.Attrs{attrStatus: string(status)}, table.In(attrStatus, status.sources()...))
	if why != "" {
		change.Set[attrCancelReason] = string(why)
	}
	change.Index = s.leaseEntry(ref.Run, now)
	return change
}

// displace is the write that makes an active run that waits for its time one that waits behind another. It will need another workflow.
func (s *Store) displace(run Run, now time.Time) table.Update {
	change := record.Change(run.Key(), now, table.Attrs{attrDispatches: run.Dispatches + 1}, fence(run))
	change.Index = noLease
	return change
}

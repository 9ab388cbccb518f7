package run

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/turn"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// A run's turn is its creation time, or its due time if it is delayed; it is later if the run must
// follow a run with a later turn. Run ids sort by turn. The queue is the pending runs behind the
// active run.
//
// A delayed run (Request.After) on an idle thread becomes the active run, too: its workflow sleeps
// until the due time, and the thread is busy. A run that is enqueued meanwhile goes before the
// delayed run if its turn is earlier: if the delayed run was active, Create makes the new run the
// active run, and stops the workflow of the delayed run.

// Config is the configuration of a Store.
type Config struct {
	Table    table.Table
	Threads  *thread.Store
	Workflow workflow.Engine
	Now      clock.Clock
	// Log gets errors that do not make a request fail; the default is slog's.
	Log *slog.Logger
	// Webhooks sends the end of a run to the address that the run names. If it is nil, no
	// address is notified.
	Webhooks *webhook.Store
	// Observer is called when runs begin and end; nil if no part of the server counts runs.
	Observer Observer
	// QuestionsChanged is called, after the commit, when the questions of a thread of a deployment
	// have changed: a graph has paused, or a run answers the questions or passes over them. Nil if
	// no part of the server wants to know.
	QuestionsChanged func(workspace, deployment string)
	// Paced says that workers write seldom while no reader waits for a run's events
	// (Run.HasReader), so readers must say that they wait.
	Paced bool
	// Lease is how long a run may wait for its first worker, or for the next worker, before Rescue
	// checks the run; default 30 s.
	Lease time.Duration
	// WorkLease is how long a worker may go without renewing its lease before Rescue checks its
	// run. If Rescue has seen the run's workflow at work, it leaves the run alone for this time.
	// The default is Lease. A worker renews its lease after a third of this time. WorkLease can be
	// long where each write costs money and the workflow engine notices that a worker has died.
	WorkLease time.Duration
	// MaxBody is how large the state of a thread may become, in bytes; default table.MaxBody.
	MaxBody int
}

// Store creates, works on and reads runs.
type Store struct {
	Config

	recentEvents *eventCache
	// sealing are the turns of the sealers of each thread.
	sealing *turn.Turns[thread.Ref]
}

// NewStore returns a store.
func NewStore(c Config) *Store {
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Table = c.Threads.Counting(c.Table)
	c.Log = cmp.Or(c.Log, slog.Default())
	c.WorkLease, c.MaxBody = cmp.Or(c.WorkLease, c.Lease), cmp.Or(c.MaxBody, table.MaxBody)
	return &Store{Config: c, recentEvents: newEventCache(), sealing: turn.New[thread.Ref](1)}
}

// Create creates a run on a thread according to the run's strategy. It starts the run's
// workflow if the run is the active run now. A busy thread with Reject is a fault.Conflict, an
// unknown thread a fault.NotFound.
func (s *Store) Create(ctx context.Context, ref thread.Ref, request Request) (Run, error) {
	t, err := s.Threads.Get(ctx, ref)
	if err != nil {
		return Run{}, err
	}
	return s.CreateOn(ctx, t, request)
}

// CreateOn is Create for a thread that was just read or created. It stores a thread that is not
// stored yet.
func (s *Store) CreateOn(ctx context.Context, t thread.Thread, request Request) (Run, error) {
	if request.Fork != nil {
		number, err := s.Threads.Find(ctx, t.Ref, request.Fork.ID)
		if err != nil {
			return Run{}, err
		}
		fork := *request.Fork // the caller keeps its request as it is
		fork.Number = number
		request.Fork = &fork
	}
	if err := s.Threads.CheckRoom(ctx, t.Workspace, request.size()); err != nil {
		return Run{}, err
	}
	place := s.Threads.ReserveRun(t)
	return decideOn(ctx, s, t, func(ctx context.Context, t thread.Thread) (Run, record.Outbox, error) {
		if s.mustSealFirst(t, request) {
			var err error
			if t, _, err = s.seal(ctx, t); err != nil {
				return Run{}, record.Outbox{}, err
			}
		}
		return s.plan(ctx, t, request, place)
	})
}

// decideOn is record.DecideValue for a decision on a thread that was just read. The first try uses
// t. Each later try reads the thread again, if the thread is stored.
func decideOn[T any](
	ctx context.Context, s *Store, t thread.Thread, decide func(ctx context.Context, t thread.Thread) (T, record.Outbox, error),
) (T, error) {
	first := true
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (T, record.Outbox, error) {
		if first || t.Unstored != nil {
			first = false
			return decide(ctx, t)
		}
		current, err := s.Threads.Get(ctx, t.Ref)
		if err != nil {
			var zero T
			return zero, record.Outbox{}, err
		}
		return decide(ctx, current)
	})
}

// mustSealFirst reports whether the thread must be sealed before the new run is planned. There are
// three cases:
//
//   - an earlier rollback is not complete, and the new run rolls back, too, or is a fork;
//   - the new run would replace the reason in the lock, which superseded runs still need: it says
//     whether they leave their input (Lock.NeedsReason);
//   - the new run may go before a delayed run, and must not go before the superseded runs, too.
func (s *Store) mustSealFirst(t thread.Thread, request Request) bool {
	if t.Lock.RemoveFrom != "" && (request.Strategy == Rollback || request.Fork != nil) {
		return true
	}
	if request.Strategy == Interrupt && t.Lock.Busy && t.Lock.NeedsReason() {
		return true
	}
	return t.Lock.Due.After(s.Now()) && t.Lock.NeedsSeal()
}

// startWorkflow dispatches a run that is active now. A failure is only logged, because the run
// exists and the client must not send the request twice: Rescue dispatches the run later.
func (s *Store) startWorkflow(ctx context.Context, run Run) {
	if err := s.Dispatch(ctx, run); err != nil {
		s.Log.ErrorContext(ctx, "workflow was not started: reconcile starts it later", "run", run.Run, "error", err)
	}
}

// stopWorkflow cancels the workflow of a delayed run that no longer needs it. If the workflow is
// not cancelled, it finds nothing to do.
func (s *Store) stopWorkflow(ctx context.Context, run Run, why string) {
	err := s.Workflow.Stop(ctx, workflow.Run, execution(run), why)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		s.Log.WarnContext(ctx, "workflow was not stopped", "run", run.Run, "error", err)
	}
}

// plan decides how a new run changes the thread that was read.
func (s *Store) plan(ctx context.Context, t thread.Thread, request Request, place *quota.Reservation) (run Run, o record.Outbox, err error) {
	if err := t.Usable(); err != nil {
		return run, o, err
	}
	if t.Lock.Busy && request.Strategy == Reject {
		return run, o, thread.BusyFault(t.Ref)
	}
	if err := checkAnswer(t, request); err != nil {
		return run, o, err
	}
	delayed, err := s.delayedActive(ctx, t)
	if err != nil {
		return run, o, err
	}
	supersedes := t.Lock.Busy && request.Strategy.supersedes()
	if run, err = s.newRun(t, request, delayed != nil, supersedes); err != nil {
		return run, o, err
	}
	p, err := s.planLock(t, run, delayed, supersedes)
	if err != nil {
		return run, o, err
	}
	o, err = s.planWrites(ctx, t, run, p, place, request.Notes)
	return run, o, err
}

// lockPlan says how a new run changes the lock and the active run.
type lockPlan struct {
	// endActive holds the write that ends or displaces the active run, if the plan has such a
	// write, and the calls that follow the commit.
	endActive record.Outbox
	change    table.Update
	// active says that the new run becomes the active run.
	active bool
}

// planLock decides whether a new run becomes the active run, and whether the run that is
// active now goes on, ends or is displaced.
func (s *Store) planLock(t thread.Thread, run Run, delayed *Run, supersedes bool) (p lockPlan, err error) {
	now := s.Now()
	p.change, p.active = t.ChangeLock(now), !t.Lock.Busy || supersedes
	t.MarkNewest(&p.change, run.Run, run.Created, !run.Due.IsZero())
	switch {
	case supersedes:
		end, err := s.supersede(t, &p.change, run, now)
		if err != nil {
			return p, err
		}
		p.endActive.Add(end)
		if delayed != nil {
			p.endActive.Then(func(ctx context.Context) { s.stopWorkflow(ctx, *delayed, "another run superseded it") })
		}
	case delayed != nil && run.Run < delayed.Run:
		p.active = true
		p.endActive.Add(s.displace(*delayed, now))
		p.endActive.Then(func(ctx context.Context) { s.stopWorkflow(ctx, *delayed, "another run goes first") })
	}
	if p.active {
		t.SetActive(&p.change, run.Run, run.Due)
		// The new run answers or passes over the questions.
		p.endActive.Join(s.notifyQuestions(t, nil))
		p.endActive.Then(func(ctx context.Context) { s.startWorkflow(ctx, run) })
	}
	if supersedes {
		p.endActive.Then(func(ctx context.Context) { s.sealIfNeeded(ctx, t.Ref, &run) })
	}
	if !t.Lock.Busy {
		t.SetAssistant(&p.change, run.AssistantID, run.Graph, run.Config)
	}
	return p, nil
}

// planWrites returns the writes that create the run under a plan. The writes of the quota come
// last, so that another reason to refuse the run comes first.
func (s *Store) planWrites(
	ctx context.Context, t thread.Thread, run Run, p lockPlan, place *quota.Reservation, notes []record.Note[Run],
) (o record.Outbox, err error) {
	var counted record.Outbox
	if !t.Lock.Busy {
		if err := t.CountRun(ctx, &counted, &p.change, place, run.Temporary); err != nil {
			return o, err
		}
	}
	o.Join(p.endActive)
	o.Add(t.Write(p.change))
	o.Add(s.putRun(run, p.active)...)
	err = record.AddNotes(ctx, &o, run, notes...)
	o.Join(counted)
	return o, err
}

// supersede returns the write that ends the thread's active run for a new run. It adds to the
// change of the lock how the active run and the queued runs end, and that the thread is to be
// sealed.
func (s *Store) supersede(t thread.Thread, change *table.Update, next Run, now time.Time) (table.Write, error) {
	active := Ref{Ref: t.Ref, Run: t.Lock.Run}
	if next.Strategy != Rollback {
		why := supersededBy(next.Run)
		t.MarkSuperseded(change, string(why))
		return s.end(active, Interrupted, why, now), nil
	}
	if next.Fork != nil && next.Fork.Number > t.Lock.Checkpoint && !t.Lock.Unsealed {
		return nil, fault.New(fault.NotFound, "Checkpoint with ID %s not found: the rollback removes it.", next.Fork.ID)
	}
	t.MarkSuperseded(change, "")
	t.MarkRemoved(change, t.Lock.Run, t.Lock.Last)
	return s.end(active, Removed, "", now), nil
}

// delayedActive returns the thread's active run if the run is delayed and no worker has claimed it,
// otherwise nil. The lock says until when the run is delayed. The run itself says whether a worker
// with a fast clock has claimed it already, or has got it a permit.
func (s *Store) delayedActive(ctx context.Context, t thread.Thread) (*Run, error) {
	if !t.Lock.Busy || !t.Lock.Due.After(s.Now()) {
		return nil, nil
	}
	run, err := s.getUnderLock(ctx, Ref{Ref: t.Ref, Run: t.Lock.Run}, t.Lock)
	if fault.Is(err, fault.NotFound) {
		return nil, nil // it was rolled back meanwhile: the lock that was read is out of date
	}
	if err != nil || run.Status != Pending || run.Permit != 0 {
		return nil, err
	}
	return &run, nil
}

// newRun makes a run whose id follows the runs that it waits for, and whose creation time follows
// the newest run that was not delayed, even if the clocks of two hosts differ. The creation time of
// a delayed run is its due time. A run that supersedes others follows all other runs.
func (s *Store) newRun(t thread.Thread, request Request, delayed, supersedes bool) (run Run, err error) {
	last := predecessor(t.Lock, delayed)
	if supersedes {
		last = max(last, t.Lock.Last)
	}
	order, due := later(s.Now(), id.Time(last).Add(time.Microsecond)), time.Time{}
	created := later(s.Now(), t.Lock.LastImmediateAt.Add(time.Microsecond))
	if request.After > 0 {
		created, order = created.Add(request.After), order.Add(request.After)
		due = created
	}
	if request.Metadata, err = record.Merge(t.Metadata, request.Metadata); err != nil {
		return run, err
	}
	request.Notes = nil
	return Run{
		Ref: Ref{Ref: t.Ref, Run: cmp.Or(request.ID, id.New(order))}, Request: request, Due: due, Answers: answers(t, request),
		Created: created, Updated: created, Status: Pending, HasReader: s.Paced && request.Streamed,
		Progress: Progress{Dispatches: 1, CheckpointBefore: -1, Checkpoint: -1, AgentCheckpoint: -1},
	}, nil
}

// predecessor returns the newest run that precedes every run that is created later: the newest run
// that is not delayed, and the runs that were sealed, superseded or removed. The active run
// precedes them too, unless it still waits for its due time.
func predecessor(lock thread.Lock, delayed bool) string {
	return max(lasting(lock, delayed), lock.RemoveTo)
}

// lasting is predecessor without the runs that are being removed. Once these runs are gone, a new
// run may go before a removed run that was delayed.
func lasting(lock thread.Lock, delayed bool) string {
	last := max(lock.LastImmediate, lock.SealedUpTo, lock.SupersededUpTo)
	if !delayed {
		last = max(last, lock.Run)
	}
	return last
}

func (s *Store) putRun(run Run, active bool) []table.Write {
	body, bulk := run.store(run.Ref, run.Created)
	item := table.Item{
		Key: run.Key(),
		Attrs: record.Attrs(kind, run.Created, table.Attrs{
			attrStatus: string(run.Status), attrAttempt: int64(0), attrLastHandover: int64(0), attrPosition: int64(0),
			attrCheckpoint: int64(-1), attrDispatches: run.Dispatches,
		}),
		Body: body,
	}
	if active {
		item.Index = s.leaseEntry(run.Run, later(s.Now(), run.Due))
	}
	if !run.Due.IsZero() {
		item.Attrs[attrDue] = clock.Format(run.Due)
	}
	if run.HasReader {
		item.Attrs[attrHasReader] = int64(1)
	}
	if len(run.Answers) > 0 {
		item.Attrs[attrAnswers] = string(record.Encode(run.Answers))
	}
	if run.Refusal != nil {
		item.Attrs[attrFailure], item.Attrs[attrRefusal] = string(record.Encode(run.Failure)), string(record.Encode(run.Refusal))
	}
	put := table.Put{Item: item, If: table.Absent()}
	if bulk == nil {
		return []table.Write{put}
	}
	item.Attrs[attrDetached], item.Attrs[attrBulk] = true, int64(len(bulk.Item.Body))
	return []table.Write{put, *bulk}
}

// leaseEntry returns the index entry under which reconcile finds a run when the run's lease is
// over.
func (s *Store) leaseEntry(run string, now time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.Leases.At(run, now.Add(s.Lease))}
}

// workEntry is leaseEntry for a run that has a worker, or whose workflow is known to call a worker.
func (s *Store) workEntry(run string, now time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.Leases.At(run, now.Add(s.WorkLease))}
}

// noLease returns the change of the index that removes a run from reconcile's list.
func noLease() map[table.Index]table.Key { return map[table.Index]table.Key{table.ByDue: {}} }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// end is the write that stops a run. From then on the run's worker is fenced off. The run gets a
// lease until it is sealed or erased, so that Rescue calls Seal if no other process does.
func (s *Store) end(ref Ref, status Status, why Reason, now time.Time) table.Update {
	change := record.Change(ref.Key(), now, table.Attrs{attrStatus: string(status)}, table.In(attrStatus, status.sources()...))
	if why != "" {
		change.Set[attrCancelReason] = string(why)
	}
	change.Index = s.leaseEntry(ref.Run, now)
	return change
}

// displace is the write that makes a delayed active run a queued run behind another run. The
// delayed run will need another workflow. A run that becomes due meanwhile may get a permit, which
// changes its dispatches: it stays active, because the other run could wait for its permit forever.
func (s *Store) displace(run Run, now time.Time) table.Update {
	asRead := table.All(fence(run), table.Equals(attrDispatches, run.Dispatches))
	change := record.Change(run.Key(), now, table.Attrs{attrDispatches: run.Dispatches + 1}, asRead)
	change.Index = noLease()
	return change
}

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// A deployment may bound its working runs. Each working run holds a concurrency permit. The run
// holds the permit, not its worker. A run takes it with its first claim; a waiting run gets it from
// the run that releases it, before the first claim. Finish releases the permit. For an interrupted
// run, Seal releases it. For a removed run, the transaction that deletes the run releases it. For a
// run that was deleted with its thread, its worker or its next worker releases it.
//
// Claim seals the thread before it looks for a permit. A run without a free permit waits in the
// order of ids, and its worker and its workflow end. The release of a permit gives it to the first
// waiting run and starts a new workflow for it. No process polls.
//
// To take a permit costs one read and one write, and so does its release. A row of items holds 64
// permits and takes some 250 runs a second, because a partition takes 1,000 write units a second. A
// deployment with more permits has up to 32 rows, and its threads are spread over them: the order
// of waiting runs holds within a row.

// ErrWaitsForPermit is returned by Claim for a run that has to wait for a permit. Its worker ends.
// Another worker is started when the run has the permit.
var ErrWaitsForPermit = errors.New("the run waits for a permit")

// waitLeases is how many leases a run waits before a worker checks it, in case the process
// that released a permit died before it gave the permit to a waiting run.
const waitLeases = 10

const (
	permitKind     = "seat"
	permitWaitKind = "seat_wait"
	// attrHolder and attrHolderThread name the run that has a permit, or waits for a permit.
	// attrRowPermits is how many permits the run's row had when the run began to wait.
	attrHolder       = "run"
	attrHolderThread = "thread"
	attrRowPermits   = "seats"
)

// row is a part of a deployment's permits.
type row struct {
	workspace, deployment string
	number                int
}

// rowOf returns the row of a thread's runs, and the number of the deployment's permits in this
// row.
func rowOf(ref thread.Ref, permits int) (row, int) {
	rows := min((permits+keys.RowPermits-1)/keys.RowPermits, keys.PermitRows)
	number := keys.PermitFor(ref.Thread, rows)
	size := permits / rows
	if number < permits%rows {
		size++
	}
	return row{ref.Workspace, ref.Deployment, number}, min(size, keys.RowPermits)
}

// rowAt returns the row of a permit that a run has.
func rowAt(run Run) row {
	return row{run.Workspace, run.Deployment, int(run.Permit-1) / keys.RowPermits}
}

// permit returns the number under which a run stores its permit of the row; 0 means no permit.
func (r row) permit(number int) int64 { return int64(r.number*keys.RowPermits + number + 1) }

// permitKey is the key of a run's permit.
func permitKey(run Run) table.Key {
	return keys.Permit(run.Workspace, run.Deployment, rowAt(run).number, int(run.Permit-1)%keys.RowPermits)
}

func putPermit(run Run, now time.Time) table.Put {
	return record.New(permitKey(run), permitKind, now, table.Attrs{attrHolder: run.Run, attrHolderThread: run.Thread}, nil)
}

// releasePermit gives the run's permit to the first waiting run. It does nothing for a run without
// a permit.
func (s *Store) releasePermit(run Run) (o record.Outbox) {
	if run.Permit != 0 {
		o.Add(table.Delete{Key: permitKey(run)})
		o.Then(func(ctx context.Context) { s.grantOrLog(ctx, rowAt(run)) })
	}
	return o
}

// occupancy holds the permits of a row that are taken, and the first waiting run, or nil.
type occupancy struct {
	taken map[table.Key]Ref
	first *Ref
	// size is how many permits the row had when the first waiting run began to wait.
	size int
}

// readRow reads the taken permits of a row and its first waiting run.
func (s *Store) readRow(ctx context.Context, r row) (occupancy, error) {
	query := keys.Permits(r.workspace, r.deployment, r.number)
	query.Limit = keys.RowPermits + 1
	page, err := s.Table.Query(ctx, query)
	if err != nil {
		return occupancy{}, fmt.Errorf("query permits: %w", err)
	}
	o := occupancy{taken: map[table.Key]Ref{}}
	for _, item := range page.Items {
		holder := Ref{Ref: thread.Ref{Workspace: r.workspace, Deployment: r.deployment, Thread: item.Text(attrHolderThread)}, Run: item.Text(attrHolder)}
		if record.Check(item, permitKind) == nil {
			o.taken[item.Key] = holder
			continue
		}
		if err := record.Check(item, permitWaitKind); err != nil {
			return occupancy{}, err
		}
		o.first, o.size = &holder, int(item.Int(attrRowPermits))
		break
	}
	return o, nil
}

// choose gives the run a free permit, if the row has a free permit. Runs that look at the same time
// mostly choose different permits.
func (o occupancy) choose(run *Run, r row, size int) bool {
	if len(o.taken) >= size {
		return false
	}
	for number := keys.PermitFor(run.Run, size); ; number = (number + 1) % size {
		run.Permit = r.permit(number)
		if _, taken := o.taken[permitKey(*run)]; !taken {
			return true
		}
	}
}

// takePermit takes a permit for the run with the claim, or returns ErrWaitsForPermit. It returns
// ErrFenced if the run was changed meanwhile.
func (a *Attempt) takePermit(ctx context.Context, permits int) error {
	if permits == 0 || a.Run.Permit != 0 || a.Run.Attempt > 0 {
		return nil
	}
	r, size := rowOf(a.Run.Ref.Ref, permits)
	seen, err := a.store.readRow(ctx, r)
	if err != nil {
		return err
	}
	// grantNextPermit changes the dispatches when it gives the run a permit, so the claim compares
	// them beside the fence.
	a.fence = table.All(a.fence, table.Equals(attrDispatches, a.Run.Dispatches))
	if seen.first == nil && seen.choose(&a.Run, r, size) {
		return a.addWrite(putPermit(a.Run, a.store.Now()))
	}
	// The run has waited long. The runs that held the permits may have been deleted.
	if seen.first != nil && *seen.first == a.Run.Ref {
		for permit, holder := range seen.taken {
			if _, err := a.store.free(ctx, permit, holder); err != nil {
				return err
			}
		}
	}
	return a.waitForPermit(ctx, r, size)
}

// waitForPermit has the run wait for a permit of the row. A run that ends first releases its permit
// and then looks for waiting runs. A waiting run first registers and then looks for a free permit.
// So at least one of them sees the other.
func (a *Attempt) waitForPermit(ctx context.Context, r row, size int) error {
	s, run := a.store, a.Run
	now := s.Now()
	wait := table.Put{Item: table.Item{
		Key:   keys.PermitWait(r.workspace, r.deployment, r.number, run.Run),
		Attrs: record.Attrs(permitWaitKind, now, table.Attrs{attrHolder: run.Run, attrHolderThread: run.Thread, attrRowPermits: int64(size)}),
	}}
	renewed := record.Change(run.Key(), now, nil, a.fence)
	renewed.Index = s.leaseEntry(run.Run, now.Add((waitLeases-1)*s.Lease))
	o := record.Write(renewed, wait)
	o.Then(func(ctx context.Context) { s.grantOrLog(ctx, r) })
	err := record.Commit(ctx, s.Table, o)
	switch {
	case errors.Is(err, record.ErrLost):
		return ErrFenced
	case err != nil:
		return fmt.Errorf("wait for a permit: %w", err)
	}
	return ErrWaitsForPermit
}

// grantOrLog calls grantPermits after a request has succeeded. An error is only logged: the first
// waiting run tries again after waitLeases. The threads of other runs do not count as memory of the
// request.
func (s *Store) grantOrLog(ctx context.Context, r row) {
	if err := s.grantPermits(budget.Holding(ctx, nil), r); err != nil {
		s.Log.ErrorContext(ctx, "permit was not given on, a run that waits will see to it", "deployment", r.deployment, "error", err)
	}
}

// grantPermits gives the free permits of a row to its waiting runs, the oldest first, and starts
// them.
func (s *Store) grantPermits(ctx context.Context, r row) (err error) {
	for more := true; more && err == nil; {
		more, err = record.DecideValue(ctx, s.Table, func(ctx context.Context) (bool, record.Outbox, error) { return s.grantNextPermit(ctx, r) })
	}
	return err
}

// grantNextPermit gives a permit to the first waiting run, or drops a waiting run that no longer
// needs a permit. more is false if no run waits or no permit is free.
func (s *Store) grantNextPermit(ctx context.Context, r row) (more bool, o record.Outbox, err error) {
	seen, err := s.readRow(ctx, r)
	if err != nil || seen.first == nil {
		return false, o, err
	}
	run, write, err := s.firstWaiting(ctx, seen)
	if err != nil {
		return false, o, err
	}
	o.Add(table.Delete{Key: keys.PermitWait(r.workspace, r.deployment, r.number, seen.first.Run), If: table.Present()})
	if write != nil {
		if !seen.choose(run, r, seen.size) {
			return false, record.Outbox{}, nil
		}
		write.Set[attrPermit] = run.Permit
		o.Add(putPermit(*run, s.Now()), *write)
		o.Then(func(ctx context.Context) { s.startWorkflow(ctx, *run) })
	}
	return true, o, nil
}

// firstWaiting returns the first waiting run, and the write that prepares the start of its next
// workflow. Both are nil if the run no longer needs a permit.
func (s *Store) firstWaiting(ctx context.Context, seen occupancy) (*Run, *table.Update, error) {
	t, run, err := s.getWithThread(ctx, *seen.first)
	if fault.Is(err, fault.NotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if run.Status != Pending || run.Run != t.Lock.Run || run.Permit != 0 {
		return nil, nil, nil
	}
	now := s.Now()
	change := record.Change(run.Key(), now, table.Attrs{attrDispatches: run.Dispatches + 1},
		table.All(table.Equals(attrStatus, string(Pending)), table.Equals(attrDispatches, run.Dispatches)))
	change.Index = s.leaseEntry(run.Run, now)
	run.Dispatches++
	return &run, &change, nil
}

// free releases the permit of a run that no longer exists, and reports whether it did. Such a run
// was deleted with its thread and did not release its permit.
func (s *Store) free(ctx context.Context, permit table.Key, holder Ref) (bool, error) {
	_, err := s.Table.Get(ctx, holder.Key())
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, table.ErrNotFound) {
		return false, fmt.Errorf("get run that has a permit: %w", err)
	}
	return record.Try(ctx, s.Table, table.Delete{Key: permit, If: table.Equals(attrHolder, holder.Run)})
}

// FreePermitOfDeletedRun frees the permit of a run that was deleted with its thread. It does
// nothing if the run still exists.
func (a *Attempt) FreePermitOfDeletedRun(ctx context.Context) error {
	if a.Run.Permit == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	freed, err := a.store.free(ctx, permitKey(a.Run), a.Run.Ref)
	if freed {
		a.store.grantOrLog(ctx, rowAt(a.Run))
	}
	return err
}

// freeDeleted frees the permit of a run that was deleted with its thread while the run had no
// worker. permits is the number of the deployment's permits.
func (s *Store) freeDeleted(ctx context.Context, ref Ref, permits int) error {
	if permits == 0 {
		return nil
	}
	r, _ := rowOf(ref.Ref, permits)
	seen, err := s.readRow(ctx, r)
	if err != nil {
		return err
	}
	for permit, holder := range seen.taken {
		if holder != ref {
			continue
		}
		if freed, err := s.free(ctx, permit, ref); err != nil || !freed {
			return err
		}
		s.grantOrLog(ctx, r)
	}
	return nil
}

// PermitEraser erases the permits of a deleted deployment.
type PermitEraser struct{ Table table.Table }

// Erase removes the permits of a deployment, and the entries of the runs that wait for a permit.
func (e PermitEraser) Erase(ctx context.Context, workspace, deployment string) error {
	for number := range keys.PermitRows {
		if err := table.Erase(ctx, e.Table, keys.Permits(workspace, deployment, number), nil); err != nil {
			return fmt.Errorf("erase permits: %w", err)
		}
	}
	return nil
}

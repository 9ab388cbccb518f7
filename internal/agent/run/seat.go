package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// ErrWaits is returned by Claim for a run that has to wait for a seat. Its worker ends; another one
// is sent when it has the seat.
var ErrWaits = errors.New("the run waits for a seat")

// waitLeases is how many leases a run waits before a worker looks after it, in case who left a seat
// died before he gave it away.
const waitLeases = 10

const (
	seatKind     = "seat"
	seatWaitKind = "seat_wait"
	// attrHolder and attrHolderThread name the run that has a seat, or waits for one; attrRowSeats
	// is how many seats its row had when it began to wait.
	attrHolder       = "run"
	attrHolderThread = "thread"
	attrRowSeats     = "seats"
)

// row is a part of a deployment's seats.
type row struct {
	workspace, deployment string
	number                int
}

// rowOf returns the row of a thread's runs, and how many of the deployment's seats are in it.
func rowOf(ref thread.Ref, seats int) (row, int) {
	rows := min((seats+keys.RowSeats-1)/keys.RowSeats, keys.SeatRows)
	number := keys.SeatFor(ref.Thread, rows)
	size := seats / rows
	if number < seats%rows {
		size++
	}
	return row{ref.Workspace, ref.Deployment, number}, min(size, keys.RowSeats)
}

// rowAt returns the row of a seat that a run has.
func rowAt(run Run) row {
	return row{run.Workspace, run.Deployment, int(run.Seat-1) / keys.RowSeats}
}

// seat is what a run notes of the seat with a number in the row: 0 is none.
func (r row) seat(number int) int64 { return int64(r.number*keys.RowSeats + number + 1) }

// seatKey is the key of a run's seat.
func seatKey(run Run) table.Key {
	return keys.Seat(run.Workspace, run.Deployment, rowAt(run).number, int(run.Seat-1)%keys.RowSeats)
}

func putSeat(run Run, now time.Time) table.Put {
	return table.Put{
		Item: table.Item{Key: seatKey(run), Attrs: record.Attrs(seatKind, now, table.Attrs{attrHolder: run.Run, attrHolderThread: run.Thread})},
		If:   table.Absent(),
	}
}

// leave gives up the seat of a run, and gives it to a run that waits for one. A run without a seat
// leaves nothing.
func (s *Store) leave(run Run) (o record.Outbox) {
	if run.Seat != 0 {
		o.Add(table.Delete{Key: seatKey(run)})
		o.Then(func(ctx context.Context) { s.vacated(ctx, run) })
	}
	return o
}

// occupancy is who sits in a row, and who is the first to wait for a seat, nil for nobody.
type occupancy struct {
	taken map[table.Key]Ref
	first *Ref
	// size is how many seats the row had for the first who waits.
	size int
}

// look reads a row: at most its seats, and the first who waits.
func (s *Store) look(ctx context.Context, r row) (occupancy, error) {
	query := keys.Seats(r.workspace, r.deployment, r.number)
	query.Limit = keys.RowSeats + 1
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return occupancy{}, fmt.Errorf("query seats: %w", err)
	}
	o := occupancy{taken: map[table.Key]Ref{}}
	for _, item := range page.Items {
		holder := Ref{Ref: thread.Ref{Workspace: r.workspace, Deployment: r.deployment, Thread: item.Text(attrHolderThread)}, Run: item.Text(attrHolder)}
		if record.Check(item, seatKind) == nil {
			o.taken[item.Key] = holder
			continue
		}
		if err := record.Check(item, seatWaitKind); err != nil {
			return occupancy{}, err
		}
		o.first, o.size = &holder, int(item.Int(attrRowSeats))
		break
	}
	return o, nil
}

// choose gives a run a seat that is free, if the row has one. Runs that look at the same time
// choose different ones, mostly.
func (o occupancy) choose(run *Run, r row, size int) bool {
	if len(o.taken) >= size {
		return false
	}
	for number := keys.SeatFor(run.Run, size); ; number = (number + 1) % size {
		run.Seat = r.seat(number)
		if _, taken := o.taken[seatKey(*run)]; !taken {
			return true
		}
	}
}

// sit takes a seat for the run with the claim, or ErrWaits. ErrFenced says that the run was changed
// meanwhile.
func (a *Attempt) sit(ctx context.Context, seats int) error {
	if seats == 0 || a.Run.Seat != 0 || a.Run.Attempt > 0 {
		return nil
	}
	r, size := rowOf(a.Run.Ref.Ref, seats)
	seen, err := a.store.look(ctx, r)
	if err != nil {
		return err
	}
	a.fence = table.All(a.fence, table.Equals(attrDispatches, a.Run.Dispatches)) // which a seat that was given to it changes
	if seen.first == nil && seen.choose(&a.Run, r, size) {
		return a.keep(putSeat(a.Run, a.store.now()))
	}
	if seen.first != nil && *seen.first == a.Run.Ref { // it waits since long: those before it may have left without a word
		if err := a.store.evict(ctx, seen); err != nil {
			return err
		}
	}
	return a.await(ctx, r, size)
}

// await has the run wait for a seat of the row. Who leaves looks for those that wait after that is
// known, and who waits looks for a seat after it is known to wait: so one of the two sees the
// other.
func (a *Attempt) await(ctx context.Context, r row, size int) error {
	s, run := a.store, a.Run
	now := s.now()
	wait := table.Put{Item: table.Item{
		Key:   keys.SeatWait(r.workspace, r.deployment, r.number, run.Run),
		Attrs: record.Attrs(seatWaitKind, now, table.Attrs{attrHolder: run.Run, attrHolderThread: run.Thread, attrRowSeats: int64(size)}),
	}}
	rest := record.Change(run.Key(), now, nil, a.fence)
	rest.Index = s.leaseEntry(run.Run, now.Add((waitLeases-1)*s.lease))
	waits, err := record.Try(ctx, s.table, rest, wait)
	if err != nil {
		return fmt.Errorf("wait for a seat: %w", err)
	}
	if !waits {
		return ErrFenced
	}
	s.giveOn(ctx, r)
	return ErrWaits
}

// vacated gives the seat that a run has left to who waits for it.
func (s *Store) vacated(ctx context.Context, run Run) {
	if run.Seat != 0 {
		s.giveOn(ctx, rowAt(run))
	}
}

// giveOn calls fill after a request has succeeded. An error is only logged: the first waiting run
// tries again after waitLeases.
func (s *Store) giveOn(ctx context.Context, r row) {
	if err := s.fill(context.WithoutCancel(ctx), r); err != nil {
		s.log.ErrorContext(ctx, "seat was not given on, a run that waits will see to it", "deployment", r.deployment, "error", err)
	}
}

// fill gives the free seats of a row to the runs that wait for one, the oldest first, and starts
// them.
func (s *Store) fill(ctx context.Context, r row) (err error) {
	for more := true; more && err == nil; {
		more, err = record.DecideValue(ctx, s.table, func(ctx context.Context) (bool, record.Outbox, error) { return s.fillNext(ctx, r) })
	}
	return err
}

// fillNext gives a seat to the first run that waits, or drops a run that needs none any more. There
// is more to do unless no run waits or no seat is free.
func (s *Store) fillNext(ctx context.Context, r row) (more bool, o record.Outbox, err error) {
	seen, err := s.look(ctx, r)
	if err != nil || seen.first == nil {
		return false, o, err
	}
	run, write, err := s.first(ctx, seen)
	if err != nil {
		return false, o, err
	}
	o.Add(table.Delete{Key: keys.SeatWait(r.workspace, r.deployment, r.number, seen.first.Run), If: table.Present()})
	if write != nil {
		if !seen.choose(run, r, seen.size) {
			return false, record.Outbox{}, nil
		}
		write.Set[attrSeat] = run.Seat
		o.Add(putSeat(*run, s.now()), *write)
		o.Then(func(ctx context.Context) { s.start(ctx, *run) })
	}
	return true, o, nil
}

// first returns the first run that waits for a seat, and the write with which it is sent another
// worker; none when it needs no seat any more.
func (s *Store) first(ctx context.Context, seen occupancy) (*Run, *table.Update, error) {
	t, run, err := s.read(ctx, *seen.first)
	if fault.Is(err, fault.NotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if run.Status != Pending || run.Run != t.Lock.Run || run.Seat != 0 {
		return nil, nil, nil
	}
	now := s.now()
	change := record.Change(run.Key(), now, table.Attrs{attrDispatches: run.Dispatches + 1},
		table.All(table.Equals(attrStatus, string(Pending)), table.Equals(attrDispatches, run.Dispatches)))
	change.Index = s.leaseEntry(run.Run, now)
	run.Dispatches++
	return &run, &change, nil
}

// evict frees the seats of a row whose runs are gone: they went with their threads, and with nobody
// to see to it.
func (s *Store) evict(ctx context.Context, seen occupancy) error {
	for seat, holder := range seen.taken {
		if _, err := s.free(ctx, seat, holder); err != nil {
			return err
		}
	}
	return nil
}

// free takes a seat from a run if that is gone, and reports whether it was.
func (s *Store) free(ctx context.Context, seat table.Key, holder Ref) (bool, error) {
	_, err := s.table.Get(ctx, holder.Key())
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, table.ErrNotFound) {
		return false, fmt.Errorf("get run that has a seat: %w", err)
	}
	return record.Try(ctx, s.table, table.Delete{Key: seat, If: table.Equals(attrHolder, holder.Run)})
}

// Abandon gives up the seat of a run that was taken from this worker with its thread, which was
// deleted. A run that is still there sees to that itself.
func (a *Attempt) Abandon(ctx context.Context) error {
	if a.Run.Seat == 0 {
		return nil
	}
	freed, err := a.store.free(context.WithoutCancel(ctx), seatKey(a.Run), a.Run.Ref)
	if freed {
		a.store.vacated(ctx, a.Run)
	}
	return err
}

// Seats are what the deployments' runs sit on, for who clears up after a deployment.
type Seats struct{ Table table.Table }

// Erase removes the seats of a deployment, and who waits for them.
func (s Seats) Erase(ctx context.Context, workspace, deployment string) error {
	for number := range keys.SeatRows {
		if err := table.Erase(ctx, s.Table, keys.Seats(workspace, deployment, number), nil); err != nil {
			return fmt.Errorf("erase seats: %w", err)
		}
	}
	return nil
}

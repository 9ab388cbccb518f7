package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// A client may want its run to end with its connection. A function of AWS does not notice that the
// connection has been lost, but its answers end after a known time, and a client that is there
// requests the answer again. So the client of such a run is expected back by a time, which each of
// its requests moves, and a timer cancels the run when that time has passed.

const (
	clientKind = "run-client"
	// missPage is how many clients of a shard are in memory at a time, missLimit how many of them a
	// pass looks for.
	missPage  = 20
	missLimit = 500
	// missAgain is after which time a run is cancelled again if the first attempt failed.
	missAgain = time.Minute
	// missNote is how long the note of a failed attempt may take.
	missNote = 2 * time.Second
	// expectKept is how long after its time an expectation leaves, even if nothing can serve it.
	expectKept = 24 * time.Hour
)

// errCameBack means that the client has come back while its run was going to be cancelled.
var errCameBack = errors.New("the client has come back")

// Expect has a timer cancel the run if no later call of Expect comes within a time, and no call of
// Dismiss.
func (s *Store) Expect(ctx context.Context, ref Ref, within time.Duration) error {
	now := s.Now()
	due := now.Add(within)
	put := table.Put{Item: table.Item{
		Key: ref.clientKey(), Attrs: record.Attrs(clientKind, now, nil), Index: dueClient(ref, due), Expires: due.Add(expectKept),
	}}
	if err := record.CommitInOrder(ctx, s.Table, record.Write(put)); err != nil {
		return fmt.Errorf("expect the client of run %s: %w", ref.Run, err)
	}
	return nil
}

// Dismiss has no client of the run be expected any more, because the run has ended. Without it, the
// timer would look for the client of each run.
func (s *Store) Dismiss(ctx context.Context, ref Ref) error {
	if err := record.CommitInOrder(ctx, s.Table, record.Write(table.Delete{Key: ref.clientKey()})); err != nil {
		return fmt.Errorf("dismiss the client of run %s: %w", ref.Run, err)
	}
	return nil
}

func (r Ref) clientKey() table.Key { return keys.RunClient(r.Workspace, r.Deployment, r.Thread, r.Run) }

func dueClient(ref Ref, due time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.DueClients.At(ref.Run, due)}
}

// CancelMissed cancels the runs whose clients were expected by a time and have not come, a bounded
// number in one pass. A run that has ended meanwhile stays as it is. When ctx ends, the other
// runs are left to the next pass, which is no error.
func (s *Store) CancelMissed(ctx context.Context, dueBy time.Time) error {
	return table.Pass{Shards: keys.DueClients.Until(dueBy), Page: missPage, Limit: missLimit}.Serve(ctx, s.Table, func(ctx context.Context, noted *table.Item) error {
		parts, err := keys.ParseRunClient(noted.Key)
		if err != nil {
			return err
		}
		item, err := record.Get(ctx, s.Table, "client of a run", noted.Key, nil)
		if err != nil || item == nil {
			return err
		}
		if item.Index[table.ByDue] != noted.Index[table.ByDue] {
			return nil // the client has come back, and the index is behind
		}
		return s.miss(ctx, Task(parts).Ref(), item)
	})
}

// miss cancels a run whose client has not come back, unless it comes back meanwhile. If this fails,
// a timer tries it again later, so that the run does not take the place of other runs in each pass.
// A cancel that has begun is completed even if the pass ends.
func (s *Store) miss(ctx context.Context, ref Ref, item *table.Item) error {
	ctx = context.WithoutCancel(ctx)
	expected := table.Equals(record.Created, item.Text(record.Created))
	remove := table.Delete{Key: item.Key, If: expected}
	failed := s.cancelMissed(ctx, ref, remove)
	var after table.Write = table.Update{Key: item.Key, Index: dueClient(ref, s.Now().Add(missAgain)), If: expected}
	switch {
	case failed == nil, errors.Is(failed, errCameBack):
		return nil
	case fault.Is(failed, fault.NotFound): // it has ended, or it was deleted
		failed, after = nil, remove
	}
	ctx, cancel := context.WithTimeout(ctx, missNote)
	defer cancel()
	err := record.CommitInOrder(ctx, s.Table, record.Write(after))
	if errors.Is(err, record.ErrLost) {
		err = nil // the client has come back, or its thread was deleted
	}
	return errors.Join(failed, err)
}

// cancelMissed cancels a run, and removes the expectation of its client by the given write.
func (s *Store) cancelMissed(ctx context.Context, ref Ref, remove table.Delete) error {
	ctx, cancel := context.WithTimeout(ctx, rescueLimit)
	defer cancel()
	var also record.Outbox
	also.AddOr(remove, record.Always(errCameBack))
	return s.cancel(ctx, ref, cancellation{action: ActionInterrupt, why: byDisconnect, also: also}, Pending, Running)
}

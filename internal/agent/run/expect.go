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

// A client may want its run to end with its connection. A function of AWS is not told that the
// connection has been lost, but its answers end after a known time, and a client that is there
// takes the answer up again. So the client of such a run is expected back by a time, which each of
// its requests moves, and a timer cancels the run when that time has passed.

const (
	clientKind = "run-client"
	// missPage is how many clients of a shard are in memory at a time, missLimit how many of them a
	// pass looks for.
	missPage  = 20
	missLimit = 500
	// missAgain is after which time a run is cancelled again if the first attempt failed.
	missAgain = time.Minute
)

// Expect has a timer cancel the run if no later call of Expect comes within a time.
func (s *Store) Expect(ctx context.Context, ref Ref, within time.Duration) error {
	now := s.now()
	put := table.Put{Item: table.Item{
		Key: keys.RunClient(ref.Workspace, ref.Deployment, ref.Thread, ref.Run), Attrs: record.Attrs(clientKind, now, nil), Index: dueClient(ref, now.Add(within)),
	}}
	if err := record.CommitInOrder(ctx, s.table, record.Write(put)); err != nil {
		return fmt.Errorf("expect the client of run %s: %w", ref.Run, err)
	}
	return nil
}

func dueClient(ref Ref, due time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.DueClient(ref.Run, due)}
}

// CancelMissed cancels the runs whose clients were expected by a time and have not come, a bounded
// number in one pass. A run that has ended meanwhile stays as it is. When ctx ends, the rest is
// left to the next pass, which is no error.
func (s *Store) CancelMissed(ctx context.Context, dueBy time.Time) error {
	return table.Pass{Shards: keys.DueClients(dueBy), Page: missPage, Limit: missLimit}.Serve(ctx, s.table, func(ctx context.Context, noted *table.Item) error {
		parts, err := keys.ParseRunClient(noted.Key)
		if err != nil {
			return err
		}
		item, err := s.table.Get(ctx, noted.Key)
		if errors.Is(err, table.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("get the client of a run: %w", err)
		}
		if item.Index[table.ByDue] != noted.Index[table.ByDue] {
			return nil // the client has come back, and the index is behind
		}
		return s.miss(ctx, Task(parts).Ref(), item)
	})
}

// miss cancels a run whose client has not come back. If this fails, a timer tries it again later,
// so that the run does not take the place of others in each pass.
func (s *Store) miss(ctx context.Context, ref Ref, item *table.Item) error {
	unchanged := table.Equals(record.Created, item.Text(record.Created))
	failed := s.CancelOnDisconnect(ctx, ref)
	var after table.Write = table.Delete{Key: item.Key, If: unchanged}
	if fault.Is(failed, fault.NotFound) {
		failed = nil // it has ended, or it was deleted
	}
	if failed != nil {
		after = table.Update{Key: item.Key, Index: dueClient(ref, s.now().Add(missAgain)), If: unchanged}
	}
	_, err := record.Try(ctx, s.table, after)
	return errors.Join(failed, err)
}

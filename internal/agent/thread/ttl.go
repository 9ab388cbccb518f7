package thread

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

// Strategy says how a thread ends whose time is over.
type Strategy string

const (
	// StrategyDelete deletes the thread.
	StrategyDelete Strategy = "delete"
	// StrategyKeepLatest keeps the thread's newest state and no history.
	StrategyKeepLatest Strategy = "keep_latest"
)

// TTL is how long a thread lives after it last changed.
type TTL struct {
	Strategy Strategy `json:"strategy"`
	Minutes  float64  `json:"minutes"`
}

// Duration returns the time as a time.Duration.
func (t TTL) Duration() time.Duration { return time.Duration(t.Minutes * float64(time.Minute)) }

const ttlKind = "thread-ttl"

// attrPruned is the number of the checkpoint up to which a timer has removed the history. It is
// absent before that.
const attrPruned = "pruned"

// putTTL is the write that sets a thread's time to live, and the time at which a timer checks
// the thread. Changes of the thread do not move this time: the timer itself checks whether the
// thread has changed.
func (s *Store) putTTL(ref Ref, ttl TTL, now, due time.Time) table.Put {
	item := record.Item(keys.ThreadTTL(ref.Workspace, ref.Deployment, ref.Thread), ttlKind, now, nil, record.Encode(ttl))
	item.Index = map[table.Index]table.Key{table.ByDue: keys.DueThreads.At(ref.Thread, due)}
	return table.Put{Item: item}
}

// replaceTTL is the write that replaces the time to live that a thread has; nil removes it.
func (s *Store) replaceTTL(ref Ref, ttl *TTL, now time.Time) table.Write {
	if ttl == nil {
		return table.Delete{Key: keys.ThreadTTL(ref.Workspace, ref.Deployment, ref.Thread), If: table.Present()}
	}
	put := s.putTTL(ref, *ttl, now, now.Add(ttl.Duration()))
	put.If = table.Present()
	return put
}

// DeleteUnused is the write that makes a timer delete a thread that is not used for a time.
func (s *Store) DeleteUnused(ref Ref, wait time.Duration) table.Write {
	now := s.now()
	return s.putTTL(ref, TTL{Strategy: StrategyDelete, Minutes: wait.Minutes()}, now, now.Add(wait))
}

// TTL returns a thread's time to live, nil if the thread is kept for ever.
func (s *Store) TTL(ctx context.Context, ref Ref) (*TTL, error) {
	return record.One(ctx, s.table, "time to live", keys.ThreadTTL(ref.Workspace, ref.Deployment, ref.Thread), nil, decodeTTL)
}

func decodeTTL(item *table.Item) (*TTL, error) {
	var ttl TTL
	r := record.Read(item, ttlKind)
	r.Decode(&ttl)
	return &ttl, r.Err()
}

const (
	// sweepPage is how many threads of a shard a pass reads at a time.
	sweepPage = 20
	// sweepLimit is how many threads of a shard a pass checks.
	sweepLimit = 500
	// sweepAgain is after which time a thread is checked again that was busy when its time was
	// over, or that could not be deleted or pruned.
	sweepAgain = time.Minute
)

// Sealer puts the leftovers of superseded runs into the state of a thread.
type Sealer func(context.Context, Ref) (Thread, error)

// Sweep deletes or prunes the threads whose time is over, a bounded number in one pass. It
// also goes on with deletions whose process died. It has seal complete a thread first. When ctx
// ends, it leaves the rest to the next pass; this is no error.
func (s *Store) Sweep(ctx context.Context, dueBy time.Time, seal Sealer) error {
	return table.Pass{Shards: keys.DueThreads.Until(dueBy), Page: sweepPage, Limit: sweepLimit}.Serve(ctx, s.table, func(ctx context.Context, noted *table.Item) error {
		return s.sweep(ctx, noted, seal)
	})
}

// sweep carries out a thread's time to live. If it cannot, for example because the repository's own
// encryption does not answer, a timer tries again later: the thread must not take the place of
// others in each pass.
func (s *Store) sweep(ctx context.Context, noted *table.Item, seal Sealer) error {
	parts, err := keys.ParseThread(noted.Key)
	if err != nil {
		return err
	}
	err = s.carryOut(ctx, Ref(parts), noted, seal)
	if err == nil || ctx.Err() != nil {
		return err
	}
	item, getErr := s.table.Get(table.WithoutContents(ctx), noted.Key)
	if errors.Is(getErr, table.ErrNotFound) {
		return err
	}
	if getErr == nil {
		getErr = s.moveTTL(ctx, item, Ref(parts), s.now().Add(sweepAgain))
	}
	return errors.Join(err, getErr)
}

func (s *Store) carryOut(ctx context.Context, ref Ref, item *table.Item, seal Sealer) error {
	items, err := s.table.GetBatch(ctx, ref.Key(), item.Key)
	if err != nil {
		return fmt.Errorf("get thread: %w", err)
	}
	stored, item := items[0], items[1]
	switch {
	case stored == nil || isGrave(stored):
		// The index is not up to date, or a deletion or a copy left items.
		return s.erasePartition(ctx, ref.Key())
	case item == nil:
		return nil // its time to live was removed
	}
	ttl, err := decodeTTL(item)
	if err != nil {
		return err
	}
	t, err := decode(ref, stored)
	if err != nil {
		return err
	}
	return s.expire(ctx, t, *ttl, item, seal)
}

// expire carries out a thread's time to live if the thread's time is over.
func (s *Store) expire(ctx context.Context, t Thread, ttl TTL, item *table.Item, seal Sealer) error {
	now := s.now()
	switch due := t.Updated.Add(ttl.Duration()); {
	case due.After(now):
		return s.moveTTL(ctx, item, t.Ref, due)
	case t.Lock.Busy:
		return s.moveTTL(ctx, item, t.Ref, now.Add(sweepAgain))
	case t.Lock.Unsealed:
		sealed, err := seal(ctx, t.Ref)
		if err != nil {
			return err
		}
		return s.moveTTL(ctx, item, t.Ref, sealed.Updated.Add(ttl.Duration()))
	case ttl.Strategy == StrategyKeepLatest:
		return s.keepLatest(ctx, t, item, now.Add(max(ttl.Duration(), sweepAgain)))
	}
	err := s.DeleteAsRead(ctx, t)
	if fault.Is(err, fault.Conflict) { // a request has used it meanwhile, or deleted it
		return s.moveTTL(ctx, item, t.Ref, now.Add(sweepAgain))
	}
	return err
}

// keepLatest prunes a thread whose time is over, and makes a timer check it again later. A pruning
// does not count as a change of the thread, so an idle thread is due again and again: a thread
// without a new checkpoint since the last time is not even read.
func (s *Store) keepLatest(ctx context.Context, t Thread, item *table.Item, due time.Time) error {
	r := record.Read(item, ttlKind)
	if r.IntOr(attrPruned, -1) == t.Lock.Checkpoint {
		return s.moveTTL(ctx, item, t.Ref, due)
	}
	err := s.Prune(ctx, t)
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		return s.moveTTL(ctx, item, t.Ref, due)
	case err != nil:
		return err
	}
	return s.changeTTL(ctx, item, t.Ref, due, table.Attrs{attrPruned: t.Lock.Checkpoint})
}

// moveTTL makes a timer check a thread again later, unless another request has changed its
// time to live meanwhile.
func (s *Store) moveTTL(ctx context.Context, item *table.Item, ref Ref, due time.Time) error {
	return s.changeTTL(ctx, item, ref, due, nil)
}

// changeTTL is moveTTL with attributes that it sets.
func (s *Store) changeTTL(ctx context.Context, item *table.Item, ref Ref, due time.Time, set table.Attrs) error {
	change := table.Update{
		Key: item.Key, Set: set, Index: map[table.Index]table.Key{table.ByDue: keys.DueThreads.At(ref.Thread, due)},
		If: table.Equals(record.Created, item.Text(record.Created)),
	}
	_, err := record.Try(ctx, s.table, change)
	return err
}

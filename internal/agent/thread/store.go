package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Store reads and writes threads and their checkpoints.
type Store struct {
	table  table.Table
	now    clock.Clock
	states stateCache
	pool   *quota.Pool
	// most is how many threads a search that cannot use the order of the list may read.
	most int
}

// NewStore returns a store over a table, with limits on the number of a workspace's threads, and on
// the number of its runs at a time.
func NewStore(t table.Table, now clock.Clock, limits quota.Limits, log *slog.Logger) *Store {
	pool := quota.NewPool(t, now, limits, log)
	return &Store{table: counting{t, pool}, now: now, states: newStateCache(), pool: pool, most: maxLooked}
}

// Create makes a thread with a time to live; nil means for ever. An empty ref.Thread gets a new
// id. If the thread exists already, Create returns a fault.Conflict, or the existing thread if
// keep is set. If a thread of the same id is being deleted, Create waits for the deletion.
func (s *Store) Create(ctx context.Context, ref Ref, metadata json.RawMessage, ttl *TTL, keep bool) (Thread, error) {
	now := s.now()
	if ref.Thread == "" {
		ref.Thread = id.New(now)
	}
	item, err := newItem(ref, metadata, now)
	if err != nil {
		return Thread{}, err
	}
	place := s.reserveThread(ref)
	standing, err := s.putNew(ctx, ref, func(ctx context.Context, refuse func(*table.Item) error) (o record.Outbox, err error) {
		var taken record.Outbox
		if err := place.Take(ctx, &taken); err != nil {
			return o, err
		}
		item.Attrs[attrPart] = int64(place.Part())
		// The thread comes first: a thread that exists needs no place.
		o.AddOr(table.Put{Item: item, If: table.Absent()}, refuse)
		if ttl != nil {
			o.Add(s.putTTL(ref, *ttl, now, now.Add(ttl.Duration())))
		}
		o.Join(taken)
		return o, nil
	})
	switch {
	case err != nil:
		return Thread{}, err
	case standing == nil:
		return decode(ref, &item)
	case keep:
		return decode(ref, standing)
	default:
		return Thread{}, fault.New(fault.Conflict, "Thread with ID %s already exists.", ref.Thread)
	}
}

// NewTemporary returns the thread of a temporary run, which is stored with the run: so no thread
// stays if the run is not created. The thread is removed with the run; after the run's end it is
// not usable any more. Such threads are not counted, because the quota of runs bounds their number.
func (s *Store) NewTemporary(ref Ref, metadata json.RawMessage) (Thread, error) {
	item, err := newItem(ref, metadata, s.now())
	if err != nil {
		return Thread{}, err
	}
	item.Attrs[attrTemporary] = true
	t, err := decode(ref, &item)
	t.Unstored = &item
	return t, err
}

// newItem returns the item of a new thread.
func newItem(ref Ref, metadata json.RawMessage, now time.Time) (table.Item, error) {
	metadata = state.OrEmpty(metadata)
	own := table.Attrs{attrStatus: string(StatusIdle), attrEpoch: int64(0), attrCheckpoint: int64(-1)}
	item := record.Item(ref.Key(), kind, now, own, record.Encode(body{Metadata: metadata}))
	item.Index = map[table.Index]table.Key{table.ByList: keys.ThreadListEntry(ref.Workspace, ref.Deployment, ref.Thread, now)}
	return item, checkMetadata(metadata)
}

// graveWait is how long the creation of a thread may wait for the deletion of a thread with
// the same id.
const graveWait = 5 * time.Second

// putNew writes a new thread, or returns the thread that has its id already. It waits while an
// earlier thread of that id is being deleted. outbox returns the writes of one try, with a refusal
// by the thread that stands there.
func (s *Store) putNew(
	ctx context.Context, ref Ref, outbox func(ctx context.Context, refuse func(*table.Item) error) (record.Outbox, error),
) (standing *table.Item, err error) {
	errStands, errGrave := errors.New("the id is taken"), errors.New("the id is being deleted")
	refuse := func(item *table.Item) error {
		if standing = item; isGrave(item) {
			return errGrave
		}
		return errStands
	}
	var gone table.Watcher
	up := time.After(graveWait)
	for {
		// If Decide lost a race for the place, its next decision takes another place.
		err := record.Decide(ctx, s.table, func(ctx context.Context) (record.Outbox, error) { return outbox(ctx, refuse) })
		switch {
		case err == nil:
			return nil, nil
		case errors.Is(err, errStands):
			return standing, nil
		case !errors.Is(err, errGrave):
			return nil, err
		}
		if gone == nil { // the tombstone may be gone by now
			gone = s.table.Watch(ref.Key())
			defer gone.Stop()
			continue
		}
		select {
		case <-gone.C():
		case <-up:
			return nil, fault.New(fault.Unavailable, "Thread with ID %s is being deleted. Try again.", ref.Thread)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// maxMetadata is how many bytes the metadata of a thread may hold: each run carries them.
const maxMetadata = 256 << 10

func checkMetadata(metadata json.RawMessage) error {
	if len(metadata) <= maxMetadata {
		return nil
	}
	return fault.Shape(fault.Detail{
		Loc: []any{"body", "metadata"}, Type: "value_error",
		Msg: fmt.Sprintf("Value error, metadata holds %d bytes: the limit is %d", len(metadata), maxMetadata),
	})
}

// Get returns a thread. It returns a fault.NotFound for an unknown thread.
func (s *Store) Get(ctx context.Context, ref Ref) (Thread, error) {
	return record.One(ctx, s.table, "thread", ref.Key(), NotFound(ref), func(item *table.Item) (Thread, error) {
		if isGrave(item) {
			return Thread{}, NotFound(ref)
		}
		return decode(ref, item)
	})
}

// NotFound returns the fault of a thread that does not exist.
func NotFound(ref Ref) error {
	return fault.New(fault.NotFound, "Thread with ID %s not found.", ref.Thread)
}

// eraseMargin is the time before the deadline of its caller after which Erase begins no other
// thread: a thread with many long runs takes seconds.
const eraseMargin = 15 * time.Second

// Erase removes up to a page of a deployment's threads with everything in their partitions, and
// reports whether more may be left. A page ends early when the time of the caller runs out, but
// never before its first thread.
func (s *Store) Erase(ctx context.Context, workspace, deployment string) (more bool, err error) {
	begun := false
	for _, query := range keys.ThreadLists(workspace, deployment) {
		query.Limit = 20
		page, err := s.table.Query(ctx, query)
		if err != nil {
			return false, fmt.Errorf("list threads: %w", err)
		}
		for _, item := range page.Items {
			if begun && clock.EndsWithin(ctx, eraseMargin) {
				return true, nil
			}
			begun = true
			parts, err := keys.ParseThread(item.Key)
			if err != nil {
				return false, err
			}
			err = s.Delete(ctx, Ref(parts))
			if fault.Is(err, fault.NotFound) { // it is a tombstone, or the list is not up to date
				err = s.erasePartition(ctx, item.Key)
			}
			if err != nil {
				return false, err
			}
		}
		more = more || page.Cursor != ""
	}
	return more, nil
}

// erasePartition removes all items in a thread's partition. The thread's own item, which lists
// find, and the item by which a timer finds the thread are removed last. If another process has
// completed the erasure, and the thread was created again, erasePartition leaves the new thread as
// it is.
func (s *Store) erasePartition(ctx context.Context, threadKey table.Key) error {
	var last []table.Write
	query := table.Query{PK: threadKey.PK, Limit: table.MaxWrites}
	for items, err := range table.Pages(table.WithoutContents(ctx), s.table, query) {
		if err != nil {
			return fmt.Errorf("query thread partition to erase: %w", err)
		}
		if lives, err := s.lives(ctx, threadKey, items); err != nil || lives {
			return err
		}
		var gone []table.Key
		for _, item := range items {
			if item.Key == threadKey || item.Text(record.Kind) == ttlKind {
				last = append(last, table.Delete{Key: item.Key, If: table.Equals(record.Created, item.Text(record.Created))})
			} else {
				gone = append(gone, item.Key)
			}
		}
		if len(gone) == 0 {
			continue
		}
		if err := s.table.Delete(ctx, gone...); err != nil {
			return fmt.Errorf("erase thread partition: %w", err)
		}
	}
	if len(last) == 0 {
		return nil
	}
	if _, err := record.Try(ctx, s.table, last...); err != nil {
		return fmt.Errorf("erase thread: %w", err)
	}
	return nil
}

// lives reports whether there is a thread that is not deleted. If its item is not in the page that
// was read, lives reads the item after the page: so the page has no item of a thread that is
// created later.
func (s *Store) lives(ctx context.Context, threadKey table.Key, page []*table.Item) (bool, error) {
	if i := slices.IndexFunc(page, func(item *table.Item) bool { return item.Key == threadKey }); i >= 0 {
		return !isGrave(page[i]), nil
	}
	item, err := s.table.Get(table.WithoutContents(ctx), threadKey)
	if errors.Is(err, table.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get thread to erase: %w", err)
	}
	return !isGrave(item), nil
}

package thread

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Filter says which threads a search returns. A search reads only entries of the list, which
// hold all data that the search needs.
type Filter struct {
	// IDs are the ids of the only threads to look at, nil for all threads.
	IDs      []string
	Metadata match.Filter
	// Status is "" for all threads.
	Status Status
}

// Sort is the member by which a search orders threads.
type Sort string

const (
	// SortCreated is the order of the list itself: a search reads only its page, and the
	// threads that the filter refuses before the page is full.
	SortCreated Sort = "created_at"
	// All other orders read the whole list.

	// SortID orders by id.
	SortID Sort = "thread_id"
	// SortStatus orders by status.
	SortStatus Sort = "status"
	// SortUpdated orders by the last change of a thread.
	SortUpdated Sort = "updated_at"
	// SortStateUpdated orders by the last change of a thread's state; threads without a state are
	// the oldest.
	SortStateUpdated Sort = "state_updated_at"
)

const (
	// maxSorted is how far a search may reach into an order that is not the list's own,
	// because the search holds all threads before the page in memory.
	maxSorted = 10_000
	// maxLooked is how many threads such a search may read.
	maxLooked = 100_000
)

// Search says which page of threads is returned, and in which order.
type Search struct {
	Filter
	SortBy    Sort
	Ascending bool
	record.Window
}

// Found is one page of threads.
type Found struct {
	Threads []Thread
	// More says that there are other threads behind the page.
	More bool
	// Total is the number of all threads that match, 0 if the search does not know the number.
	Total int
}

// orders compare threads by a member.
var orders = map[Sort]func(a, b Thread) int{
	SortCreated:      func(a, b Thread) int { return a.Created.Compare(b.Created) },
	SortID:           func(a, b Thread) int { return cmp.Compare(a.Thread, b.Thread) },
	SortStatus:       func(a, b Thread) int { return cmp.Compare(a.Status, b.Status) },
	SortUpdated:      func(a, b Thread) int { return a.Updated.Compare(b.Updated) },
	SortStateUpdated: func(a, b Thread) int { return a.StateUpdated.Compare(b.StateUpdated) },
}

// Search returns a page of a deployment's threads. It returns fewer threads than the caller
// asked for if their metadata is large, but at least one. matches may be nil. It is called
// last, for the threads that pass the filter.
func (s *Store) Search(ctx context.Context, workspace, deployment string, search Search, matches func(Thread) (bool, error)) (Found, error) {
	order := orders[search.SortBy]
	if order == nil {
		return Found{}, fmt.Errorf("search threads: there is no order by %q", search.SortBy)
	}
	compare := record.Directed(func(a, b Thread) int { return cmp.Or(order(a, b), cmp.Compare(a.Thread, b.Thread)) }, search.Ascending)
	if search.SortBy == SortCreated && search.IDs == nil {
		return s.listed(ctx, workspace, deployment, search, compare, matches)
	}
	if search.IDs == nil && search.Offset+search.Limit >= maxSorted {
		return Found{}, fault.New(fault.Invalid, "offset and limit reach beyond %d threads, which only sort_by created_at can.", maxSorted-1)
	}
	search.Room = record.PageRoom
	found, all, err := record.Sorted(ctx, s.table, record.Sorting[Thread]{
		Items: s.candidates(ctx, workspace, deployment, search), Decode: search.decode, Accept: matches, Compare: compare,
		Slim: func(t *Thread) { t.Metadata, t.Interrupts, t.IdleView.Interrupts = nil, nil, nil }, Window: search.Window,
	})
	return Found{Threads: found, More: all > search.Offset+len(found), Total: all}, err
}

// listed searches in the order of the list. It keeps no threads before the page, and needs
// only one thread behind the page.
func (s *Store) listed(
	ctx context.Context, workspace, deployment string, search Search, compare func(a, b Thread) int, matches func(Thread) (bool, error),
) (found Found, err error) {
	var shards []*shard
	for _, query := range keys.ThreadLists(workspace, deployment) {
		query.Reverse, query.Bytes = !search.Ascending, shardBytes
		query.Limit = min(search.Offset+search.Limit+1, shardPage)
		shards = append(shards, &shard{query: query})
	}
	skip, room := search.Offset, record.PageRoom
	for {
		next, err := s.nextOf(ctx, shards, search.Filter, compare)
		if err != nil || next == nil {
			found.Total = search.Offset - skip + len(found.Threads)
			return found, err
		}
		if matches != nil {
			if ok, err := matches(*next); err != nil {
				return found, err
			} else if !ok {
				continue
			}
		}
		if skip > 0 {
			skip--
			continue
		}
		if room -= len(next.Metadata); len(found.Threads) == search.Limit || (room < 0 && len(found.Threads) > 0) {
			found.More = true
			if rest, all := loaded(shards); all && matches == nil {
				found.Total = search.Offset + len(found.Threads) + 1 + rest
			}
			return found, nil
		}
		found.Threads = append(found.Threads, *next)
	}
}

// candidates returns the threads that a search names, or all threads of the list.
func (s *Store) candidates(ctx context.Context, workspace, deployment string, search Search) iter.Seq2[*table.Item, error] {
	if search.IDs != nil {
		return s.named(ctx, workspace, deployment, search.IDs)
	}
	return func(yield func(*table.Item, error) bool) {
		looked := 0
		for item, err := range table.Items(ctx, s.table, keys.ThreadLists(workspace, deployment)...) {
			if looked++; err == nil && looked > s.most {
				err = fault.New(fault.Invalid, "There are more than %d threads, which sort_by %s would look at: sort_by created_at does not, nor does a search by ids.", s.most, search.SortBy)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// namedAtOnce is how many of the threads that a search names are read at a time.
const namedAtOnce = 32

func (s *Store) named(ctx context.Context, workspace, deployment string, ids []string) iter.Seq2[*table.Item, error] {
	ids = slices.Sorted(slices.Values(ids))
	return func(yield func(*table.Item, error) bool) {
		for some := range slices.Chunk(slices.Compact(ids), namedAtOnce) {
			look := make([]table.Key, len(some))
			for i, thread := range some {
				look[i] = keys.Thread(workspace, deployment, thread)
			}
			items, err := s.table.GetBatch(ctx, look...)
			if err != nil {
				yield(nil, fmt.Errorf("get threads: %w", err))
				return
			}
			for _, item := range items {
				if item != nil && !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Matching returns those of the threads that are there and whose metadata match the filter.
func (s *Store) Matching(ctx context.Context, workspace, deployment string, ids []string, metadata match.Filter) (map[string]bool, error) {
	matching, filter := map[string]bool{}, Filter{Metadata: metadata}
	for item, err := range s.named(ctx, workspace, deployment, ids) {
		if err != nil {
			return nil, err
		}
		t, ok, err := filter.decode(item)
		if err != nil {
			return nil, err
		}
		if ok {
			matching[t.Thread] = true
		}
	}
	return matching, nil
}

// Count returns how many of a deployment's threads pass the filter. It reads the whole list,
// and decodes the entries only if the filter needs their contents.
func (s *Store) Count(ctx context.Context, workspace, deployment string, filter Filter, matches func(Thread) (bool, error)) (int, error) {
	count, all := 0, matches == nil && filter.Status == "" && filter.Metadata.Empty()
	for item, err := range table.Items(ctx, s.table, keys.ThreadLists(workspace, deployment)...) {
		if err != nil {
			return 0, err
		}
		if all {
			if !isGrave(item) && !isUsed(item) {
				count++
			}
			continue
		}
		t, ok, err := filter.decode(item)
		if ok && err == nil && matches != nil {
			ok, err = matches(t)
		}
		if err != nil {
			return 0, err
		}
		if ok {
			count++
		}
	}
	return count, nil
}

// shardPage is how many entries of a shard of the list are in memory at a time, shardBytes how
// many bytes they may hold.
const (
	shardPage  = 100
	shardBytes = 1 << 20
)

// shard says how far a shard of the list was read.
type shard struct {
	query  table.Query
	loaded []Thread
	ended  bool
}

// loaded returns how many threads were read and not yet taken, and whether these are all
// remaining threads.
func loaded(shards []*shard) (count int, all bool) {
	for _, sh := range shards {
		if !sh.ended {
			return 0, false
		}
		count += len(sh.loaded)
	}
	return count, true
}

// nextOf returns the next thread of all shards, which is the least thread by compare; nil
// after the last thread.
func (s *Store) nextOf(ctx context.Context, shards []*shard, filter Filter, compare func(a, b Thread) int) (*Thread, error) {
	var from *shard
	for _, sh := range shards {
		if err := s.load(ctx, sh, filter); err != nil {
			return nil, err
		}
		if len(sh.loaded) > 0 && (from == nil || compare(sh.loaded[0], from.loaded[0]) < 0) {
			from = sh
		}
	}
	if from == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	next := from.loaded[0]
	from.loaded = from.loaded[1:]
	return &next, nil
}

// load reads until the shard has a thread that passes the filter. It does not use table.Pages,
// which does not say whether a page is the last: loaded has to know that without another read.
func (s *Store) load(ctx context.Context, sh *shard, filter Filter) error {
	for len(sh.loaded) == 0 && !sh.ended {
		page, err := s.table.Query(ctx, sh.query)
		if err != nil {
			return fmt.Errorf("query threads: %w", err)
		}
		for _, item := range page.Items {
			t, ok, err := filter.decode(item)
			if err != nil {
				return err
			}
			if ok {
				sh.loaded = append(sh.loaded, t)
			}
		}
		sh.query.Cursor, sh.ended = page.Cursor, page.Cursor == ""
	}
	return nil
}

func (f Filter) decode(item *table.Item) (Thread, bool, error) {
	if isGrave(item) || isUsed(item) {
		return Thread{}, false, nil
	}
	parts, err := keys.ParseThread(item.Key)
	if err != nil {
		return Thread{}, false, err
	}
	t, err := decode(Ref(parts), item)
	if err != nil || (f.Status != "" && t.Status != f.Status) {
		return t, false, err
	}
	ok, err := f.Metadata.Matches(t.Metadata)
	return t, ok, err
}

// isGrave reports whether an item stands for a thread that is being deleted.
func isGrave(item *table.Item) bool { return item.Text(record.Kind) == graveKind }

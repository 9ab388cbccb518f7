package thread

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/match"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
)

// Filter says which threads are wanted. A search reads entries of the list only, which hold all that it asks about.
type Filter struct {
	// IDs are those of the only threads to look at, nil for all.
	IDs      []string
	Metadata match.Filter
	// Status is "" for all.
	Status Status
}

// Sort is the member by which a search orders threads.
type Sort string

const (
	// SortCreated is the order of the list itself: a search reads no more than its page, and what the filter refuses on the way there.
	SortCreated Sort = "created_at"
	// All other orders read the whole list, and hold no more than the page and what is before it.

	// SortID orders by id.
	SortID Sort = "thread_id"
	// SortStatus orders by status.
	SortStatus Sort = "status"
	// SortUpdated orders by the last change of a thread.
	SortUpdated Sort = "updated_at"
	// SortStateUpdated orders by the last change of a thread's state; threads without a state are the oldest.
	SortStateUpdated Sort = "state_updated_at"
)

// maxSorted is how far into an order that is not the list's own a search may look, as it holds what is before the page.
const maxSorted = 10_000

// Search says which page of threads is wanted, in which order.
type Search struct {
	Filter
	SortBy    Sort
	Ascending bool
	table.Window
}

// Found is one page of threads.
type Found struct {
	Threads []Thread
	// More says that there are others behind the page.
	More bool
}

// orders compare threads by a member.
var orders = map[Sort]func(a, b Thread) int{
	SortCreated: func(a, b Thread) int { return a.Created.Compare(b.Created) },
	SortID:      func(a, b Thread) int { return cmp.Compare(a.Thread, b.Thread) },
	SortStatus:  func(a, b Thread) int { return cmp.Compare(a.Status, b.Status) },
	SortUpdated: func(a, b Thread) int { return a.Updated.Compare(b.Updated) },
	SortStateUpdated: func(a, b Thread) int {
		return a.StateUpdated.Compare(b.StateUpdated)
	},
}

// Search returns a page of a deployment's threads. matches, which may be nil, is asked last about what passes the filter.
func (s *Store) Search(ctx context.Context, workspace, deployment string, search Search, matches func(Thread) (bool, error)) (Found, error) {
	order := orders[search.SortBy]
	if order == nil {
		return Found{}, fmt.Errorf("search threads: there is no order by %q", search.SortBy)
	}
	compare := func(a, b Thread) int {
		result := cmp.Or(order(a, b), cmp.Compare(a.Thread, b.Thread))
		if search.Ascending {
			return result
		}
		return -result
	}
	wanted := search.Offset + search.Limit + 1 // one more tells whether there are more
	if search.SortBy != SortCreated && search.IDs == nil && wanted > maxSorted {
		return Found{}, fault.New(fault.Invalid, "offset and limit reach beyond %d threads, which only sort_by created_at can.", maxSorted-1)
	}
	var best []Thread
	skip := 0
	take := func(t Thread) (done bool, err error) {
		if matches != nil {
			if ok, err := matches(t); err != nil || !ok {
				return false, err
			}
		}
		if search.SortBy == SortCreated && search.IDs == nil {
			// They come in order: nobody needs those before the page.
			if skip < search.Offset {
				skip++
				return false, nil
			}
			best = append(best, t)
			return len(best) > search.Limit, nil
		}
		at, _ := slices.BinarySearchFunc(best, t, compare)
		if at < wanted {
			if len(best) == wanted {
				best = best[:wanted-1]
			}
			best = slices.Insert(best, at, t)
		}
		return false, nil
	}
	if err := s.each(ctx, workspace, deployment, search, compare, take); err != nil {
		return Found{}, err
	}
	best = best[min(search.Offset-skip, len(best)):]
	return Found{Threads: best[:min(search.Limit, len(best))], More: len(best) > search.Limit}, nil
}

// Count returns how many of a deployment's threads pass the filter. It reads the whole list.
func (s *Store) Count(ctx context.Context, workspace, deployment string, filter Filter, matches func(Thread) (bool, error)) (int, error) {
	count := 0
	take := func(t Thread) (bool, error) {
		ok := true
		var err error
		if matches != nil {
			ok, err = matches(t)
		}
		if ok {
			count++
		}
		return false, err
	}
	search := Search{Filter: filter, SortBy: SortID}
	return count, s.each(ctx, workspace, deployment, search, orders[SortID], take)
}

// each hands the threads that pass the filter to take until that is done, in the order of compare where that is the list's own.
func (s *Store) each(
	ctx context.Context, workspace, deployment string, search Search, compare func(a, b Thread) int, take func(Thread) (done bool, err error),
) error {
	if search.IDs != nil {
		return s.eachOf(ctx, workspace, deployment, search.Filter, take)
	}
	var shards []*shard
	for _, query := range keys.ThreadLists(workspace, deployment) {
		query.Reverse = !search.Ascending
		if search.SortBy == SortCreated {
			query.Limit = min(search.Offset+search.Limit+1, shardPage)
		}
		shards = append(shards, &shard{query: query})
	}
	if search.SortBy != SortCreated {
		compare = nil
	}
	for {
		next, err := s.nextOf(ctx, shards, search.Filter, compare)
		if err != nil || next == nil {
			return err
		}
		if done, err := take(*next); err != nil || done {
			return err
		}
	}
}

// shardPage is how many entries of a shard of the list are in memory at a time.
const shardPage = 100

// shard is how far a shard of the list was read.
type shard struct {
	query  table.Query
	loaded []Thread
	ended  bool
}

// nextOf returns the next thread of all shards: the least one by compare, or any when that is nil; nil behind the last.
func (s *Store) nextOf(ctx context.Context, shards []*shard, filter Filter, compare func(a, b Thread) int) (*Thread, error) {
	var from *shard
	for _, sh := range shards {
		if err := s.load(ctx, sh, filter); err != nil {
			return nil, err
		}
		if len(sh.loaded) > 0 && (from == nil || compare(sh.loaded[0], from.loaded[0]) < 0) {
			from = sh
			if compare == nil {
				break
			}
		}
	}
	if from == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	next := from.loaded[0]
	from.loaded = from.loaded[1:]
	return &next, nil
}

// load reads on until the shard has a thread that passes the filter.
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
	if isGrave(item) {
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

// eachOf looks at some threads alone.
func (s *Store) eachOf(ctx context.Context, workspace, deployment string, filter Filter, take func(Thread) (done bool, err error)) error {
	ids := slices.Clone(filter.IDs)
	slices.Sort(ids)
	for some := range slices.Chunk(slices.Compact(ids), table.MaxWrites) {
		look := make([]table.Key, len(some))
		for i, thread := range some {
			look[i] = keys.Thread(workspace, deployment, thread)
		}
		items, err := s.table.GetBatch(ctx, look...)
		if err != nil {
			return fmt.Errorf("get threads: %w", err)
		}
		for _, item := range items {
			if item == nil {
				continue
			}
			t, ok, err := filter.decode(item)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if done, err := take(t); err != nil || done {
				return err
			}
		}
	}
	return nil
}

// isGrave tells that an item stands for a thread that is being deleted.
func isGrave(item *table.Item) bool { return item.Text(record.Kind) == graveKind }

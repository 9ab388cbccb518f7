package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// maxSorted is how many items of its order a search may reach, because it holds the items
// before the page in memory.
const maxSorted = 10_000

// Wanted says which items a search returns.
type Wanted struct {
	// Below is the namespace of the items, or the beginning of it. It may be empty.
	Below  []string
	Filter Filter
	// Near has the vector of a query. The items whose vectors are most similar come first;
	// then the items without vectors in this space. Without a vector no item is ranked.
	Near Vectors
	record.Window
	// Refresh renews the time to live of the items that are returned.
	Refresh bool
}

// Check returns a fault.Invalid if Search would refuse the search. A caller whose query costs
// something checks first.
func (w Wanted) Check() error {
	if len(w.Below) > 0 {
		if err := CheckNamespace(w.Below); err != nil {
			return err
		}
	}
	if w.Offset+w.Limit > maxSorted {
		return fault.New(fault.Invalid, "offset and limit reach beyond %d items. Search each namespace by itself, or with a filter.", maxSorted)
	}
	return nil
}

// Search returns a page of the wanted items, and the number of all such items. It returns
// fewer items than the caller asked for if they are large, but at least one. Items that are
// not ranked, or have the same rank, are ordered by the time when they were put, newest first;
// items that were put at the same moment are ordered by namespace and key. Search reads all
// items below the namespace, and their vectors if there is a query. A process that holds vectors
// reads only the items of the page, if there is no filter. If the vectors are more than a query
// may be compared with, the error is a fault.Invalid.
func (s *Store) Search(ctx context.Context, owner Owner, wanted Wanted) (found []Item, total int, err error) {
	if err := wanted.Check(); err != nil {
		return nil, 0, err
	}
	below, filter, window := wanted.Below, wanted.Filter, wanted.Window
	window.Room = record.PageRoom
	near := s.ranker(wanted.Near)
	if len(below) > 0 {
		near.unit = s.held.get(keys.StoreItemsBelow(owner.Workspace, owner.Deployment, below), wanted.Near)
	}
	if near.unit != nil && len(filter.members) == 0 {
		found, total, err = s.nearest(ctx, near, window)
	} else {
		found, total, err = s.sorted(ctx, owner, below, near, filter, window)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("search items: %w", err)
	}
	if wanted.Refresh {
		err = s.refresh(ctx, owner, found...)
	}
	return found, total, err
}

// sorted returns a page of the items that the filter accepts, and reads all items for it.
func (s *Store) sorted(ctx context.Context, owner Owner, below []string, near *ranker, filter Filter, window record.Window) ([]Item, int, error) {
	// Pointers, because the order is made by insertion.
	sorted, total, err := record.Sorted(ctx, s.table, record.Sorting[*Item]{
		Items: s.below(ctx, owner, below, near),
		Read:  near.read,
		Decode: func(stored *table.Item) (*Item, bool, error) {
			item, err := decode(stored)
			if err != nil {
				return nil, false, err
			}
			if score, ranked := near.scores[stored.Key]; ranked && near.ranks(stored) {
				item.Score = &score
			}
			ok, err := filter.Matches(item.Value)
			return &item, ok, err
		},
		Slim:    func(item **Item) { (*item).Value = nil },
		Compare: nearest,
		Window:  window,
	})
	if err != nil {
		return nil, 0, err
	}
	found := make([]Item, len(sorted))
	for i, item := range sorted {
		found[i] = *item
	}
	return found, total, nil
}

// nearest is the order of a search, as compareHits is for rows.
func nearest(a, b *Item) int {
	rank := cmp.Compare(b.rank(), a.rank())
	return cmp.Or(rank, b.Updated.Compare(a.Updated), slices.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Key, b.Key))
}

func (i *Item) rank() float64 {
	if i.Score == nil {
		return unranked
	}
	return *i.Score
}

// below returns the items below a namespace. When it yields an item, near has the scores of the
// item's page. Below all namespaces, it reads one partition after the other.
func (s *Store) below(ctx context.Context, owner Owner, namespace []string, near *ranker) iter.Seq2[*table.Item, error] {
	return func(yield func(*table.Item, error) bool) {
		if len(namespace) > 0 {
			query, complete := keys.StoreItemsBelow(owner.Workspace, owner.Deployment, namespace), false
			if near.unit == nil {
				near.making = s.held.begin(query, near.near)
				defer func() { s.held.end(near.making, complete) }()
			}
			complete = s.scored(ctx, query, near, yield)
			return
		}
		for label := ""; ; {
			var err error
			if label, err = s.nextLabel(ctx, owner, label); err != nil {
				yield(nil, err)
			}
			if err != nil || label == "" || !s.scored(ctx, keys.StoreItemsBelow(owner.Workspace, owner.Deployment, []string{label}), near, yield) {
				return
			}
		}
	}
}

// scored yields the items of a query, after near has the scores of their page. It reports
// whether it has yielded all of them.
func (s *Store) scored(ctx context.Context, query table.Query, near *ranker, yield func(*table.Item, error) bool) bool {
	for items, err := range table.Pages(ctx, s.table, query) {
		if err == nil {
			err = near.page(ctx, items)
		}
		if err != nil {
			yield(nil, err)
			return false
		}
		for _, item := range items {
			if !yield(item, nil) {
				return false
			}
		}
	}
	return true
}

// nextLabel returns the first label of the namespaces that follow the namespaces of another
// label, "" if no namespaces follow.
func (s *Store) nextLabel(ctx context.Context, owner Owner, after string) (string, error) {
	item, err := record.First(ctx, s.table, "namespaces", keys.StoreNamespacesAfter(owner.Workspace, owner.Deployment, after))
	if err != nil || item == nil {
		return "", err
	}
	path, err := keys.ParseStorePath(item.Index[table.ByList].SK)
	if err != nil {
		return "", err
	}
	return path[0], nil
}

// Namespaces says which namespaces are returned. In Prefix and Suffix the label "*" stands for
// any label.
type Namespaces struct {
	Prefix, Suffix []string
	// MaxDepth cuts namespaces to this number of labels; 0 does not cut them.
	MaxDepth int
	record.Window
}

// looksAtOnce is how many namespaces whose items may expire are checked in parallel.
const looksAtOnce = 16

// Namespaces lists the namespaces that have items, by name, each once. It removes namespaces
// whose items have all expired, as far as it looks at them.
func (s *Store) Namespaces(ctx context.Context, owner Owner, wanted Namespaces) ([][]string, error) {
	query := keys.StoreNamespaces(owner.Workspace, owner.Deployment, wanted.fixed())
	if len(query.Prefix) > table.MaxKey {
		return nil, fault.New(fault.Invalid, "prefix is longer than a namespace can be.")
	}
	l := listing{found: [][]string{}, skip: wanted.Offset}
	for items, err := range table.Pages(ctx, s.table, query) {
		if err != nil {
			return nil, fmt.Errorf("query namespaces: %w", err)
		}
		markers, err := wanted.of(items)
		if err != nil {
			return nil, err
		}
		for len(markers) > 0 {
			var some []marked
			some, markers = l.next(markers)
			live, err := s.live(ctx, owner, some)
			if err != nil {
				return nil, err
			}
			for _, shown := range live {
				if l.add(shown); len(l.found) == wanted.Limit {
					return l.found, nil
				}
			}
		}
	}
	return l.found, nil
}

// listing is a list of namespaces that is being made. Namespaces that are shown alike lie together.
type listing struct {
	found [][]string
	// last is the namespace that was listed or skipped last, skip how many are still to be skipped.
	last []string
	skip int
}

// next returns the next markers to look at, and the markers behind them. It passes over
// namespaces that equal the namespace before them, and namespaces before the page. The latter
// had items when the client read the pages before: the client misses no namespace if they have
// expired since.
func (l *listing) next(markers []marked) (some, rest []marked) {
	for i, m := range markers {
		switch {
		case slices.Equal(m.shown, l.last):
		case l.skip > 0:
			l.last, l.skip = m.shown, l.skip-1
		default:
			if some = append(some, m); len(some) == looksAtOnce {
				return some, markers[i+1:]
			}
		}
	}
	return some, nil
}

// add adds a namespace unless it was also added last.
func (l *listing) add(shown []string) {
	if !slices.Equal(shown, l.last) {
		l.found, l.last = append(l.found, shown), shown
	}
}

// fixed returns the labels with which all wanted namespaces begin.
func (n Namespaces) fixed() []string {
	if at := slices.Index(n.Prefix, "*"); at >= 0 {
		return n.Prefix[:at]
	}
	return n.Prefix
}

// marked is a namespace with the data of its marker.
type marked struct {
	// shown is the namespace as it is listed: its beginning, if the list has a depth.
	namespace, shown []string
	// fades says that its items may have expired.
	fades bool
}

// of returns the wanted namespaces among the markers.
func (n Namespaces) of(markers []*table.Item) (namespaces []marked, err error) {
	for _, item := range markers {
		namespace, err := keys.ParseStorePath(item.Index[table.ByList].SK)
		if err != nil {
			return nil, err
		}
		if !n.match(namespace) {
			continue
		}
		shown := namespace
		if n.MaxDepth > 0 {
			shown = shown[:min(len(shown), n.MaxDepth)]
		}
		namespaces = append(namespaces, marked{namespace, shown, item.Bool(attrFades)})
	}
	return namespaces, nil
}

// live returns the namespaces that have items, as they are shown, and removes the others. It checks
// only the namespaces whose items may expire: in another namespace the deletion of the last item
// also removes the marker.
func (s *Store) live(ctx context.Context, owner Owner, namespaces []marked) (live [][]string, err error) {
	empty := make([]bool, len(namespaces))
	looks, ctx := errgroup.WithContext(ctx)
	for i, n := range namespaces {
		if !n.fades {
			continue
		}
		looks.Go(guard.ErrFunc(nil, "look into a namespace", func() (err error) {
			if empty[i], err = s.isEmpty(ctx, owner, n.namespace); err == nil && empty[i] {
				err = s.tidy(ctx, owner, n.namespace)
			}
			return err
		}))
	}
	if err := looks.Wait(); err != nil {
		return nil, err
	}
	for i, n := range namespaces {
		if !empty[i] {
			live = append(live, n.shown)
		}
	}
	return live, nil
}

func (n Namespaces) match(namespace []string) bool {
	like := func(label, pattern string) bool { return pattern == "*" || pattern == label }
	return len(namespace) >= max(len(n.Prefix), len(n.Suffix)) &&
		slices.EqualFunc(namespace[:len(n.Prefix)], n.Prefix, like) &&
		slices.EqualFunc(namespace[len(namespace)-len(n.Suffix):], n.Suffix, like)
}

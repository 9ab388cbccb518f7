package record

import (
	"context"
	"iter"
	"slices"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Sorting is a search with an order that no index has.
type Sorting[T any] struct {
	// Items are the items to look at.
	Items iter.Seq2[*table.Item, error]
	// Decode reads an item and reports whether it matches.
	Decode func(*table.Item) (value T, match bool, err error)
	// Accept is called once for each match. A nil Accept accepts everything.
	Accept func(T) (bool, error)
	// Slim drops from a value everything that Compare does not need.
	Slim    func(*T)
	Compare func(a, b T) int
	// Read reads items again, nil for items that no longer exist. Without it, the table reads
	// them.
	Read func(ctx context.Context, keys ...table.Key) ([]*table.Item, error)
	Window
}

// Directed returns an order, or its reverse unless ascending is true.
func Directed[T any](order func(a, b T) int, ascending bool) func(a, b T) int {
	if ascending {
		return order
	}
	return func(a, b T) int { return order(b, a) }
}

// ReadAtOnce is how many items of a page are read at a time, because each may be large.
const ReadAtOnce = 16

// ranked is a match with its place in the order.
type ranked[T any] struct {
	value T
	key   table.Key
	size  int
}

// ranking is the page and the matches before it. Once it holds more bytes than a page may, its
// values are slim.
type ranking[T any] struct {
	Sorting[T]

	best []ranked[T]
	size int
	slim bool
}

// Sorted returns the window of the matches in their order, and how many matches there are.
// Where it could not hold the page and the matches before it, it reads the page again. An item
// that was changed meanwhile is then returned in its present state, unless it no longer
// matches.
func Sorted[T any](ctx context.Context, t table.Table, s Sorting[T]) (page []T, matches int, err error) {
	r := ranking[T]{Sorting: s}
	for item, err := range s.Items {
		if err != nil {
			return nil, 0, err
		}
		value, ok, err := s.Decode(item)
		if ok && err == nil && s.Accept != nil {
			ok, err = s.Accept(value)
		}
		if err != nil {
			return nil, 0, err
		}
		if ok {
			matches++
			r.add(ranked[T]{value, item.Key, len(item.Body)})
		}
	}
	window := r.best[min(s.Offset, len(r.best)):]
	if r.slim {
		if s.Read == nil {
			s.Read = t.GetBatch
		}
		page, err = s.whole(ctx, window)
		return page, matches, err
	}
	page = make([]T, len(window))
	for i, match := range window {
		page[i] = match.value
	}
	return page, matches, nil
}

func (r *ranking[T]) add(match ranked[T]) {
	at, _ := slices.BinarySearchFunc(r.best, match, func(a, b ranked[T]) int { return r.Compare(a.value, b.value) })
	last := r.Offset + r.Limit - 1
	if at > last {
		return
	}
	if len(r.best) > last {
		r.size -= r.best[last].size
		r.best = r.best[:last]
	}
	if r.slim {
		r.Slim(&match.value)
	}
	r.best, r.size = slices.Insert(r.best, at, match), r.size+match.size
	if !r.slim && r.Room > 0 && r.size > r.Room {
		r.slim = true
		for i := range r.best {
			r.Slim(&r.best[i].value)
		}
	}
}

// whole reads the items of a page.
func (s Sorting[T]) whole(ctx context.Context, of []ranked[T]) ([]T, error) {
	page, size := []T{}, 0
	for some := range slices.Chunk(of, ReadAtOnce) {
		look := make([]table.Key, len(some))
		for i, r := range some {
			look[i] = r.key
		}
		items, err := s.Read(ctx, look...)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if item == nil {
				continue
			}
			value, ok, err := s.Decode(item)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			if size += len(item.Body); s.full(len(page), size) {
				return page, nil
			}
			page = append(page, value)
		}
	}
	return page, nil
}

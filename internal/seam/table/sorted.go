package table

import (
	"context"
	"slices"
)

// Sorting is a search in an order that no index has.
type Sorting[T any] struct {
	// Each hands over the items to look at.
	Each func(ctx context.Context, take func(*Item) error) error
	// Decode reads an item and says whether it matches.
	Decode func(*Item) (value T, match bool, err error)
	// Accept is asked once of what matches; nil accepts everything.
	Accept func(T) (bool, error)
	// Slim drops from a value all that Compare does not need.
	Slim    func(*T)
	Compare func(a, b T) int
	// Read reads items again, nil for those that are not there any more; without it the table does.
	Read func(ctx context.Context, keys ...Key) ([]*Item, error)
	Window
}

// sortedAtOnce is how many items of a page are read at a time, as each may be large.
const sortedAtOnce = 16

// ranked is a match in its order.
type ranked[T any] struct {
	value T
	key   Key
	size  int
}

// ranking is the page and what is before it. Once it holds more than a page may, its values are
// slim.
type ranking[T any] struct {
	Sorting[T]

	best []ranked[T]
	size int
	slim bool
}

// Sorted returns the window of the matches in their order, and how many there are. Where it could
// not hold the page with what is before it, it reads the page again: what was changed meanwhile is
// there as it is now, unless it does not match any more.
func Sorted[T any](ctx context.Context, t Table, s Sorting[T]) (page []T, matches int, err error) {
	r := ranking[T]{Sorting: s}
	err = s.Each(ctx, func(item *Item) error {
		value, ok, err := s.Decode(item)
		if ok && err == nil && s.Accept != nil {
			ok, err = s.Accept(value)
		}
		if ok && err == nil {
			matches++
			r.add(ranked[T]{value, item.Key, len(item.Body)})
		}
		return err
	})
	if err != nil {
		return nil, 0, err
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
	for i, one := range window {
		page[i] = one.value
	}
	return page, matches, nil
}

func (r *ranking[T]) add(one ranked[T]) {
	at, _ := slices.BinarySearchFunc(r.best, one, func(a, b ranked[T]) int { return r.Compare(a.value, b.value) })
	last := r.Offset + r.Limit - 1
	if at > last {
		return
	}
	if len(r.best) > last {
		r.size -= r.best[last].size
		r.best = r.best[:last]
	}
	if r.slim {
		r.Slim(&one.value)
	}
	r.best, r.size = slices.Insert(r.best, at, one), r.size+one.size
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
	for some := range slices.Chunk(of, sortedAtOnce) {
		look := make([]Key, len(some))
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

// eachBytes is how much of what Each reads is in memory at a time.
const eachBytes = 4 << 20

// Each hands all items that queries find to take, page by page. Errors of take end it and are
// returned as they are.
func Each(ctx context.Context, t Table, take func(*Item) error, queries ...Query) error {
	for _, query := range queries {
		query.Bytes = eachBytes
		for {
			page, err := t.Query(ctx, query)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				if err := take(item); err != nil {
					return err
				}
			}
			if query.Cursor = page.Cursor; page.Cursor == "" {
				break
			}
		}
	}
	return nil
}

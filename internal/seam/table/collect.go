package table

import "context"

// PageRoom is how many bytes the bodies of a client's page may hold. The process keeps the
// whole page in memory.
const PageRoom = 8 << 20

// Window is the part of a list that a client asks for.
type Window struct {
	// Offset is how many matches are left out. Limit is how many are returned at most.
	Offset, Limit int
	// Room is how many bytes the bodies of the returned items may hold. Where the bodies are
	// large, fewer items are returned, but at least one. 0 is no bound.
	Room int
}

// full reports whether the window has no room for one more item, with which the bodies hold
// size.
func (w Window) full(found, size int) bool { return w.Room > 0 && found > 0 && size > w.Room }

// Collect pages through a query and returns the window of its matches. decode reads an item
// and reports whether it matches.
func Collect[T any](ctx context.Context, t Table, query Query, window Window, decode func(*Item) (value T, match bool, err error)) ([]T, error) {
	found, skip, size := []T{}, window.Offset, 0
	query.Limit, query.Bytes = min(window.Offset+window.Limit, MaxLimit), window.Room
	for item, err := range Items(ctx, t, query) {
		if err != nil {
			return nil, err
		}
		value, match, err := decode(item)
		if err != nil {
			return nil, err
		}
		if !match {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if size += len(item.Body); window.full(len(found), size) {
			break
		}
		if found = append(found, value); len(found) == window.Limit {
			break
		}
	}
	return found, nil
}

package assistant

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Search says which assistants are returned, and in which order.
type Search struct {
	// Graph is the exact name of the graph, Name a part of the assistant's name in upper or lower
	// case, "" for all.
	// Metadata is contained in the assistant's metadata.
	Graph, Name string
	Metadata    match.Filter
	// SortBy is a field of the interface: assistant_id, graph_id, name, created_at or updated_at;
	// created_at by default.
	SortBy string
	// Ascending: oldest or smallest first.
	Ascending     bool
	Limit, Offset int
}

// orders compare assistants by a field, and texts without regard to case, as Name is searched.
var orders = map[string]func(a, b Assistant) int{
	"assistant_id": func(a, b Assistant) int { return cmp.Compare(a.Assistant, b.Assistant) },
	"graph_id":     func(a, b Assistant) int { return compareFolded(a.Graph, b.Graph) },
	"name":         func(a, b Assistant) int { return compareFolded(a.Name, b.Name) },
	"created_at":   func(a, b Assistant) int { return a.Created.Compare(b.Created) },
	"updated_at":   func(a, b Assistant) int { return a.Updated.Compare(b.Updated) },
}

func compareFolded(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }

// Search returns a page of the assistants of a deployment, including its default assistants,
// and the number of all that match. It returns fewer than the caller asked for if they are
// large, but at least one. It reads all assistants of the deployment, whose number is at most
// Most.
func (s *Store) Search(ctx context.Context, owner Owner, search Search) (found []Assistant, total int, err error) {
	order := orders[cmp.Or(search.SortBy, "created_at")]
	return record.Sorted(ctx, s.table, record.Sorting[Assistant]{
		Items: s.all(ctx, owner),
		Read:  func(ctx context.Context, keys ...table.Key) ([]*table.Item, error) { return s.read(ctx, owner, keys) },
		Decode: func(item *table.Item) (Assistant, bool, error) {
			a, err := decode(owner.ref(keys.AssistantID(item.Key)), kind, item)
			if err != nil {
				return a, false, err
			}
			ok, err := search.match(a)
			return a, ok, err
		},
		Slim:    func(a *Assistant) { a.Config, a.Context, a.Metadata = nil, nil, nil },
		Compare: record.Directed(func(a, b Assistant) int { return cmp.Or(order(a, b), cmp.Compare(a.Assistant, b.Assistant)) }, search.Ascending),
		Window:  search.window(),
	})
}

func (w Search) window() record.Window {
	return record.Window{Limit: w.Limit, Offset: w.Offset, NoCursor: true, Room: record.PageRoom}
}

// all returns the assistants of a deployment, and its default assistants as if they were
// stored.
func (s *Store) all(ctx context.Context, owner Owner) iter.Seq2[*table.Item, error] {
	return func(yield func(*table.Item, error) bool) {
		stored := map[string]bool{}
		for item, err := range table.Items(ctx, s.table, keys.Assistants(owner.Workspace, owner.Deployment)) {
			if !yield(item, err) || err != nil {
				return
			}
			stored[keys.AssistantID(item.Key)] = true
		}
		for _, graph := range owner.Graphs {
			if !stored[DefaultID(graph)] && !yield(owner.item(graph), nil) {
				return
			}
		}
	}
}

// read reads assistants, including default assistants.
func (s *Store) read(ctx context.Context, owner Owner, of []table.Key) ([]*table.Item, error) {
	items, err := s.table.GetBatch(ctx, of...)
	if err != nil {
		return nil, fmt.Errorf("get assistants: %w", err)
	}
	for i, key := range of {
		standing, ok := owner.byDefault(keys.AssistantID(key))
		if items[i] == nil && ok {
			items[i] = owner.item(standing.Graph)
		}
	}
	return items, nil
}

// item returns the default assistant of a graph as it would be stored.
func (o Owner) item(graph string) *table.Item {
	put := o.standing(graph).put(o.Created, table.Absent())
	return &put.Item
}

func (w Search) match(a Assistant) (bool, error) {
	if (w.Graph != "" && a.Graph != w.Graph) || !strings.Contains(strings.ToLower(a.Name), strings.ToLower(w.Name)) {
		return false, nil
	}
	return w.Metadata.Matches(a.Metadata)
}

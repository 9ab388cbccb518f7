package assistant

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/match"
)

// Search says which assistants are wanted, and in which order.
type Search struct {
	// Graph and Name are exact and part of the name, "" for all; Metadata is contained in theirs.
	Graph, Name string
	Metadata    match.Filter
	// SortBy is a field of the interface: assistant_id, graph_id, name, created_at or updated_at; created_at by default.
	SortBy string
	// Ascending: oldest or smallest first.
	Ascending     bool
	Limit, Offset int
}

// orders compare assistants by a field.
var orders = map[string]func(a, b Assistant) int{
	"assistant_id": func(a, b Assistant) int { return cmp.Compare(a.Assistant, b.Assistant) },
	"graph_id":     func(a, b Assistant) int { return cmp.Compare(a.Graph, b.Graph) },
	"name":         func(a, b Assistant) int { return cmp.Compare(a.Name, b.Name) },
	"created_at":   func(a, b Assistant) int { return a.Created.Compare(b.Created) },
	"updated_at":   func(a, b Assistant) int { return a.Updated.Compare(b.Updated) },
}

// Search returns a page of the assistants of a deployment, its default ones among them, and how many there are in all. It reads all assistants of the
// deployment, of which there are Most.
func (s *Store) Search(ctx context.Context, owner Owner, search Search) (found []Assistant, total int, err error) {
	all, err := s.all(ctx, owner)
	if err != nil {
		return nil, 0, err
	}
	order := orders[cmp.Or(search.SortBy, "created_at")]
	if order == nil {
		return nil, 0, fmt.Errorf("search assistants: there is no order by %q", search.SortBy)
	}
	all, err = matching(search, all)
	slices.SortStableFunc(all, func(a, b Assistant) int {
		if search.Ascending {
			return cmp.Or(order(a, b), cmp.Compare(a.Assistant, b.Assistant))
		}
		return cmp.Or(order(b, a), cmp.Compare(b.Assistant, a.Assistant))
	})
	return cut(search, all), len(all), err
}

func (s *Store) all(ctx context.Context, owner Owner) ([]Assistant, error) {
	var all []Assistant
	stored := map[string]bool{}
	query := keys.Assistants(owner.Workspace, owner.Deployment)
	for {
		items, err := s.table.Query(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("query assistants: %w", err)
		}
		for _, item := range items.Items {
			a, err := decode(owner.ref(keys.AssistantID(item.Key)), item)
			if err != nil {
				return nil, err
			}
			stored[a.Assistant] = true
			all = append(all, a)
		}
		if query.Cursor = items.Cursor; items.Cursor == "" {
			break
		}
	}
	for _, graph := range owner.Graphs {
		if !stored[DefaultID(graph)] {
			all = append(all, Default(owner.Workspace, owner.Deployment, graph, owner.Created))
		}
	}
	return all, nil
}

// page is the part of a list in its own order that a search wants.
func page(search Search, all []Assistant) ([]Assistant, error) {
	all, err := matching(search, all)
	return cut(search, all), err
}

func matching(search Search, all []Assistant) (found []Assistant, err error) {
	for _, a := range all {
		if search.Graph != "" && a.Graph != search.Graph || !containsFold(a.Name, search.Name) {
			continue
		}
		ok, err := search.Metadata.Matches(a.Metadata)
		if err != nil {
			return nil, fmt.Errorf("match assistant %s: %w", a.Assistant, err)
		}
		if ok {
			found = append(found, a)
		}
	}
	return found, nil
}

func cut(search Search, all []Assistant) []Assistant {
	from := min(search.Offset, len(all))
	return all[from:min(from+search.Limit, len(all))]
}

// containsFold reports whether a name has the part, in whatever case.
func containsFold(name, part string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

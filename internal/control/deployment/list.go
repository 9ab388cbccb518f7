package deployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Window is how a client asks for a part of a list, Page is the answer.
type (
	Window      = record.Window
	Page[T any] = record.Page[T]
)

// mostMisses is the largest number of items rejected by the filter that one request reads.
// There is no index by the members of a filter: lists of a workspace are short, and an index
// would cost each write of a deployment another write. A request that meets more such items
// gets a short page, whose cursor continues the list.
const mostMisses = 5000

// Filter says which deployments to list. Zero members do not filter.
type Filter struct {
	// Name is the whole name, NameContains a part of it; NameContains ignores case.
	Name           string
	NameContains   string
	Statuses       []Status
	ImageVersion   string
	DeploymentType string
	// IDs, when not nil, are the deployments to choose from.
	IDs []string
	// Remote, if true, asks for the deployments that a listener runs, if false, for the other
	// deployments.
	Remote *bool
	// Tagged asks for deployments that have one of some tags, Agent for deployments of some
	// agent of a registry. Deployments have neither tags nor such agents.
	Tagged, Agent bool
}

func (f Filter) match(d *Deployment) bool {
	c := &d.SourceConfig
	return d.Status != AwaitingDelete && !f.Tagged && !f.Agent && (f.Name == "" || f.Name == d.Name) &&
		strings.Contains(strings.ToLower(d.Name), strings.ToLower(f.NameContains)) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, d.Status)) &&
		(f.ImageVersion == "" || f.ImageVersion == d.ImageVersion) &&
		(f.DeploymentType == "" || c.DeploymentType != nil && *c.DeploymentType == f.DeploymentType) &&
		(f.Remote == nil || *f.Remote == d.Remote())
}

// Search returns a page of the deployments of a workspace that a filter lets through, newest first.
func (s *Store) Search(ctx context.Context, workspace string, filter Filter, window Window) (Page[Deployment], error) {
	query := keys.DeploymentList(workspace)
	query.Reverse = true
	source := s.queried(query)
	if filter.IDs != nil {
		source = s.named(workspace, filter.IDs)
	}
	found, err := collect(ctx, source, query, window, func(item *table.Item) (Deployment, bool, error) {
		d, err := decode(Ref{Workspace: workspace, Deployment: keys.DeploymentID(item.Key)}, item)
		return d, err == nil && filter.match(&d), err
	})
	if err != nil {
		return Page[Deployment]{}, fmt.Errorf("list deployments: %w", err)
	}
	return found, nil
}

// RevisionFilter says which revisions to list. Zero members do not filter.
type RevisionFilter struct {
	Statuses []revision.Status
	Remote   *bool
}

// SearchRevisions returns a page of the revisions of a deployment that a filter lets through,
// newest first.
func (s *Store) SearchRevisions(ctx context.Context, ref Ref, filter RevisionFilter, window Window) (Page[revision.Revision], error) {
	d, err := s.Get(ctx, ref)
	if err != nil {
		return Page[revision.Revision]{}, err
	}
	query := keys.Revisions(ref.Workspace, ref.Deployment)
	query.Reverse = true
	source := s.queried(query)
	if filter.Remote != nil && *filter.Remote != d.Remote() {
		source = none
	}
	found, err := collect(ctx, source, query, window, func(item *table.Item) (revision.Revision, bool, error) {
		r, err := revision.Decode(ref.Revision(keys.RevisionID(item.Key)), item, d.Slot)
		return r, err == nil && (len(filter.Statuses) == 0 || slices.Contains(filter.Statuses, r.Status)), err
	})
	if err != nil {
		return Page[revision.Revision]{}, fmt.Errorf("list revisions: %w", err)
	}
	return found, nil
}

// source returns pages of items, of about a size, after a cursor.
type source func(ctx context.Context, cursor string, size int) (table.Page, error)

func none(context.Context, string, int) (table.Page, error) { return table.Page{}, nil }

func (s *Store) queried(query table.Query) source {
	return func(ctx context.Context, cursor string, size int) (table.Page, error) {
		query.Cursor, query.Limit = cursor, size
		return s.table.Query(ctx, query)
	}
}

// named is a source that reads deployments by their ids, in the order of the list and with its
// cursors.
func (s *Store) named(workspace string, ids []string) source {
	return func(ctx context.Context, cursor string, _ int) (table.Page, error) {
		query := keys.DeploymentList(workspace)
		query.Reverse, query.Cursor = true, cursor
		after, err := query.Place()
		if err != nil {
			return table.Page{}, err
		}
		sorted := slices.Compact(slices.SortedFunc(slices.Values(ids), func(a, b string) int { return cmp.Compare(b, a) }))
		var page table.Page
		for chunk := range slices.Chunk(sorted, table.MaxWrites) {
			var wanted []table.Key
			for _, id := range chunk {
				if after == nil || id < after.Sort {
					wanted = append(wanted, keys.Deployment(workspace, id))
				}
			}
			if len(wanted) == 0 {
				continue
			}
			items, err := s.table.GetBatch(ctx, wanted...)
			if err != nil {
				return table.Page{}, err
			}
			page.Items = append(page.Items, slices.DeleteFunc(items, func(item *table.Item) bool { return item == nil || item.Bool(attrForced) })...)
		}
		return page, nil
	}
}

// collect reads a window of the matching items. It continues at the item where it stopped, so
// that it reads nothing twice, and no more than it needs.
func collect[T any](ctx context.Context, from source, query table.Query, window Window, decode func(*table.Item) (T, bool, error)) (Page[T], error) {
	query.Cursor = window.Cursor
	if _, err := query.Place(); err != nil {
		return Page[T]{}, fault.Cursor()
	}
	skip, misses, found := window.Offset, 0, Page[T]{Items: make([]T, 0, window.Limit)}
	if window.Cursor != "" {
		skip = 0
	}
	size := min(skip+window.Limit, table.MaxLimit)
	for cursor := window.Cursor; ; size = min(size*4, table.MaxLimit) {
		page, err := from(ctx, cursor, size)
		if err != nil {
			return Page[T]{}, err
		}
		for i, item := range page.Items {
			value, match, err := decode(item)
			switch {
			case err != nil:
				return Page[T]{}, err
			case !match:
				misses++
			case skip > 0:
				skip--
			default:
				found.Items = append(found.Items, value)
			}
			if len(found.Items) < window.Limit && misses < mostMisses {
				continue
			}
			if i < len(page.Items)-1 || page.Cursor != "" {
				found.Cursor = query.CursorAfter(placeOf(item, query.Index))
			}
			return found, nil
		}
		if cursor = page.Cursor; cursor == "" {
			return found, nil
		}
	}
}

func placeOf(item *table.Item, index table.Index) table.Place {
	if index == "" {
		return table.Place{Sort: item.Key.SK, Key: item.Key}
	}
	return table.Place{Sort: item.Index[index].SK, Key: item.Key}
}

// FreeCount returns how many deployments of the free type a workspace has.
func (s *Store) FreeCount(ctx context.Context, workspace string) (int, error) {
	items, err := table.AllItems(ctx, s.table, keys.FreeDeployments(workspace))
	if err != nil {
		return 0, fmt.Errorf("count deployments: %w", err)
	}
	return len(items), nil
}

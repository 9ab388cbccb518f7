package deployment

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Filter says which deployments to list. Zero members do not filter.
type Filter struct {
	// Name is the whole name, NameContains a part of it; NameContains ignores case.
	Name         string
	NameContains string
	// Statuses let a deleted deployment through only if AwaitingDelete is one of them.
	Statuses       []Status
	ImageVersion   string
	DeploymentType string
	// IDs, when not nil, are the deployments to choose from.
	IDs []string
	// Remote asks for the deployments that a listener runs, or, if false, for the others.
	Remote *bool
	// Tagged asks for deployments that have one of some tags, Agent for deployments of some
	// agent of a registry. Deployments have neither tags nor such agents.
	Tagged, Agent bool
}

func (f Filter) match(d *Deployment) bool {
	if f.hides(d) {
		return false
	}
	c := &d.SourceConfig
	return (f.Name == "" || f.Name == d.Name) &&
		strings.Contains(strings.ToLower(d.Name), strings.ToLower(f.NameContains)) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, d.Status)) &&
		(f.ImageVersion == "" || f.ImageVersion == d.ImageVersion) &&
		(f.DeploymentType == "" || c.DeploymentType != nil && *c.DeploymentType == f.DeploymentType) &&
		(f.Remote == nil || *f.Remote == d.Remote())
}

// hides reports whether the filter leaves a deployment out, whatever its source is.
func (f Filter) hides(d *Deployment) bool {
	return f.Tagged || f.Agent || d.Forced || d.Status == AwaitingDelete && !f.deleted()
}

// deleted reports whether the filter lets deleted deployments through.
func (f Filter) deleted() bool { return slices.Contains(f.Statuses, AwaitingDelete) }

// Search returns a page of the deployments of a workspace that a filter lets through, newest first.
func (s *Store) Search(ctx context.Context, workspace string, filter Filter, window record.Window) (record.Page[Deployment], error) {
	query := keys.DeploymentList(workspace)
	query.Reverse = true
	matching := func(item *table.Item) (Deployment, bool, error) {
		d, err := decode(Ref{Workspace: workspace, Deployment: keys.DeploymentID(item.Key)}, item)
		return d, err == nil && filter.match(&d), err
	}
	switch {
	case filter.IDs != nil:
		return record.ListFrom(ctx, s.named(workspace, filter.IDs), "deployments", query, window, matching)
	case filter.deleted() && len(filter.Statuses) > 1:
		return record.ListFrom(ctx, s.withDeleted(workspace), "deployments", query, window, matching)
	case filter.deleted():
		query = keys.DeletedDeployments(workspace)
		query.Reverse = true
	}
	return record.List(ctx, s.table, "deployments", query, window, matching)
}

// RevisionFilter says which revisions to list. Zero members do not filter.
type RevisionFilter struct {
	Statuses []revision.Status
	Remote   *bool
}

// SearchRevisions returns a page of the revisions of a deployment that a filter lets through,
// newest first.
func (s *Store) SearchRevisions(ctx context.Context, ref Ref, filter RevisionFilter, window record.Window) (record.Page[revision.Revision], error) {
	d, err := s.Get(ctx, ref)
	if err != nil {
		return record.Page[revision.Revision]{}, err
	}
	if filter.Remote != nil && *filter.Remote != d.Remote() {
		return record.Page[revision.Revision]{Items: []revision.Revision{}}, nil
	}
	query := keys.Revisions(ref.Workspace, ref.Deployment)
	query.Reverse = true
	return record.List(ctx, s.table, "revisions", query, window, func(item *table.Item) (revision.Revision, bool, error) {
		r, err := revision.Decode(ref.Revision(keys.RevisionID(item.Key)), item, d.Slot)
		return r, err == nil && (len(filter.Statuses) == 0 || slices.Contains(filter.Statuses, r.Status)), err
	})
}

// named is a source that reads deployments by their ids, in the order of the list.
func (s *Store) named(workspace string, ids []string) record.Source {
	return func(ctx context.Context, query table.Query) iter.Seq2[*table.Item, error] {
		return func(yield func(*table.Item, error) bool) {
			after, err := query.Position()
			if err != nil {
				yield(nil, err)
				return
			}
			sorted := slices.Compact(slices.SortedFunc(slices.Values(ids), func(a, b string) int { return cmp.Compare(b, a) }))
			if after != nil {
				sorted = slices.DeleteFunc(sorted, func(id string) bool { return id >= after.Sort })
			}
			for chunk := range slices.Chunk(sorted, table.MaxWrites) {
				wanted := make([]table.Key, len(chunk))
				for i, id := range chunk {
					wanted[i] = keys.Deployment(workspace, id)
				}
				items, err := s.table.GetBatch(ctx, wanted...)
				if err != nil {
					yield(nil, err)
					return
				}
				for _, item := range items {
					if item != nil && !item.Bool(attrForced) && !yield(item, nil) {
						return
					}
				}
			}
		}
	}
}

// withDeleted is a source that reads the list of a workspace and its deleted deployments in one
// order, newest first.
func (s *Store) withDeleted(workspace string) record.Source {
	return func(ctx context.Context, query table.Query) iter.Seq2[*table.Item, error] {
		return func(yield func(*table.Item, error) bool) {
			after, err := query.Position()
			if err != nil {
				yield(nil, err)
				return
			}
			deleted := keys.DeletedDeployments(workspace)
			deleted.Reverse, deleted.Limit, deleted.Bytes = query.Reverse, query.Limit, query.Bytes
			if after != nil {
				deleted.Cursor = deleted.CursorAfter(*after)
			}
			next, stop := iter.Pull2(table.Growing(ctx, s.table, deleted))
			defer stop()
			gone, err, more := next()
			for item, failed := range table.Growing(ctx, s.table, query) {
				for ; more && failed == nil && (err != nil || newer(gone, item)); gone, err, more = next() {
					if !yield(gone, err) {
						return
					}
				}
				if !yield(item, failed) {
					return
				}
			}
			for ; more; gone, err, more = next() {
				if !yield(gone, err) {
					return
				}
			}
		}
	}
}

// newer reports whether a deployment was created after another deployment.
func newer(one, other *table.Item) bool {
	return keys.DeploymentID(one.Key) > keys.DeploymentID(other.Key)
}

// FreeCount returns how many deployments of the free type a workspace has.
func (s *Store) FreeCount(ctx context.Context, workspace string) (int, error) {
	items, err := table.AllItems(ctx, s.table, keys.FreeDeployments(workspace))
	if err != nil {
		return 0, fmt.Errorf("count deployments: %w", err)
	}
	return len(items), nil
}

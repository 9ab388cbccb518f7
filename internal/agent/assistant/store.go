package assistant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Owner is the deployment that assistants belong to.
type Owner struct {
	Workspace, Deployment string
	// Graphs are the graphs that the deployment serves; Created is when the deployment was
	// created.
	Graphs []string
	// Descriptions are the descriptions of its graphs in the repository.
	Descriptions map[string]string
	Created      time.Time
}

// Store reads and writes assistants.
type Store struct {
	table table.Table
	now   clock.Clock
}

// NewStore returns a store over a table.
func NewStore(t table.Table, now clock.Clock) *Store { return &Store{table: t, now: now} }

func (o Owner) ref(assistant string) Ref { return Ref{o.Workspace, o.Deployment, assistant} }

// standing returns the default assistant of a graph.
func (o Owner) standing(graph string) Assistant {
	a := Default(o.Workspace, o.Deployment, graph, o.Created)
	a.Description = optional.Of(o.Descriptions[graph])
	return a
}

// byDefault returns the default assistant with the id.
func (o Owner) byDefault(assistant string) (Assistant, bool) {
	for _, graph := range o.Graphs {
		if DefaultID(graph) == assistant {
			return o.standing(graph), true
		}
	}
	return Assistant{}, false
}

// firstVersion returns the write of the first version of a default assistant that has no other
// version: it is stored with the first change. Earlier releases stored the assistant without it if
// the change made the first version the current one.
func (o Owner) firstVersion(a Assistant) []table.Write {
	if _, standing := o.byDefault(a.Assistant); !standing || a.newest > 1 {
		return nil
	}
	return []table.Write{a.putVersion(a.Created)}
}

// checkGraph returns an error if the deployment does not serve the graph.
func (o Owner) checkGraph(graph string) error {
	if slices.Contains(o.Graphs, graph) {
		return nil
	}
	return fault.New(fault.NotFound, "Graph %q not found. The deployment's graphs are: %q.", graph, o.Graphs)
}

// Create makes an assistant with version 1; its id may be "". It returns a fault.Conflict if the
// assistant exists already.
func (s *Store) Create(ctx context.Context, owner Owner, assistant string, content Content) (Assistant, error) {
	if err := owner.checkGraph(content.Graph); err != nil {
		return Assistant{}, err
	}
	if err := content.check(); err != nil {
		return Assistant{}, err
	}
	now := s.now()
	if assistant == "" {
		assistant = id.New(now)
	}
	created := Assistant{Ref: owner.ref(assistant), Content: content, Version: 1, Created: now, Updated: now, newest: 1, change: 1, stored: true}
	exists := fault.New(fault.Conflict, "Assistant with ID %s already exists.", assistant)
	if _, standing := owner.byDefault(assistant); standing {
		return Assistant{}, exists
	}
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Assistant, record.Outbox, error) {
		var o record.Outbox
		stored, counted, err := count(owner.Workspace, owner.Deployment).Change(ctx, s.table, now, 1)
		if err == nil && stored >= Most {
			err = fault.New(fault.Conflict, "A deployment has at most %d assistants. Delete one first.", Most)
		}
		o.AddOr(created.put(now, table.Absent()), record.Always(exists))
		o.Add(created.putVersion(now), counted)
		return created, o, err
	})
}

// Most is how many assistants a deployment may have in addition to the default ones, because
// searches read them all. Requests at the same moment may create some more.
const Most = 1000

// MostVersions is how many versions an assistant may have, because the versions stay as long
// as the assistant exists.
const MostVersions = 1000

func count(workspace, deployment string) record.Count {
	return record.Count{Key: keys.AssistantCount(workspace, deployment)}
}

// Get returns an assistant by its id. It returns a fault.NotFound for an unknown id.
func (s *Store) Get(ctx context.Context, owner Owner, assistant string) (Assistant, error) {
	ref := owner.ref(assistant)
	item, err := s.table.Get(ctx, keys.Assistant(ref.Workspace, ref.Deployment, assistant))
	if err == nil {
		return decode(ref, kind, item)
	}
	if !errors.Is(err, table.ErrNotFound) {
		return Assistant{}, fmt.Errorf("get assistant: %w", err)
	}
	if standing, ok := owner.byDefault(assistant); ok {
		return standing, nil
	}
	return Assistant{}, NotFound(assistant)
}

// Named returns the assistant that a run names: by its id, or by the graph's name for the
// default assistant of a graph. It returns a fault.NotFound for an unknown name.
func (s *Store) Named(ctx context.Context, owner Owner, name string) (Assistant, error) {
	if slices.Contains(owner.Graphs, name) {
		return s.Get(ctx, owner, DefaultID(name))
	}
	if !id.Valid(name) {
		return Assistant{}, fault.New(fault.NotFound, "Assistant %s not found. The deployment's graphs are: %q.", name, owner.Graphs)
	}
	return s.Get(ctx, owner, name)
}

// Patch is a change of an assistant; nil members stay unchanged. Metadata is merged,
// everything else is replaced.
type Patch struct {
	Graph, Name, Description  *string
	Config, Context, Metadata json.RawMessage
}

func (p Patch) apply(c Content) (Content, error) {
	c.Graph = optional.Or(p.Graph, c.Graph)
	c.Name = optional.Or(p.Name, c.Name)
	c.Description = cmp.Or(p.Description, c.Description)
	if p.Config != nil {
		c.Config = p.Config
	}
	if p.Context != nil {
		c.Context = p.Context
	}
	var err error
	if c.Metadata, err = record.Merge(c.Metadata, p.Metadata); err != nil {
		return c, err
	}
	return c, c.check()
}

// Update makes a new version, which is the current version from then on.
func (s *Store) Update(ctx context.Context, owner Owner, assistant string, patch Patch) (Assistant, error) {
	if patch.Graph != nil {
		if err := owner.checkGraph(*patch.Graph); err != nil {
			return Assistant{}, err
		}
	}
	return s.change(ctx, owner, assistant, func(a Assistant, now time.Time) (Assistant, []table.Write, error) {
		if a.newest >= MostVersions {
			return a, nil, fault.New(fault.Conflict, "An assistant has at most %d versions. Create another one.", MostVersions)
		}
		writes := owner.firstVersion(a)
		content, err := patch.apply(a.Content)
		if err != nil {
			return a, nil, err
		}
		a.Content, a.newest = content, a.newest+1
		a.Version = a.newest
		return a, append(writes, a.putVersion(now)), nil
	})
}

// SetLatest makes a version the current version, with its whole content.
func (s *Store) SetLatest(ctx context.Context, owner Owner, assistant string, version int64) (Assistant, error) {
	return s.change(ctx, owner, assistant, func(a Assistant, _ time.Time) (Assistant, []table.Write, error) {
		if version == a.Version {
			return a, owner.firstVersion(a), nil
		}
		absent := fault.New(fault.NotFound, "Assistant %s has no version %d.", assistant, version)
		if version > a.newest { // a deleted assistant with the same id may have left it
			return a, nil, absent
		}
		item, err := record.Get(ctx, s.table, "version of assistant", keys.AssistantVersion(a.Workspace, a.Deployment, a.Assistant, version), absent)
		if err != nil {
			return a, nil, err
		}
		chosen, err := decode(a.Ref, versionKind, item)
		a.Content, a.Version = chosen.Content, version
		return a, nil, err
	})
}

// change changes an assistant as decide returns it.
func (s *Store) change(ctx context.Context, owner Owner, assistant string, decide func(Assistant, time.Time) (Assistant, []table.Write, error)) (Assistant, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Assistant, record.Outbox, error) {
		stored, err := s.Get(ctx, owner, assistant)
		if err != nil {
			return Assistant{}, record.Outbox{}, err
		}
		now := s.now()
		next, writes, err := decide(stored, now)
		next.Updated = now
		return next, record.Write(append(writes, next.replace(now))...), err
	})
}

// replace is the write that stores a changed assistant, under the condition that the stored
// assistant is still as it was read.
func (a Assistant) replace(now time.Time) table.Put {
	condition := table.Absent()
	if a.stored {
		condition = table.Equals(record.Version, a.change)
	}
	put := a.put(a.Created, condition)
	put.Item.Attrs[record.Version] = a.change + 1
	put.Item.Attrs[record.Updated] = clock.Format(now)
	return put
}

// Versions returns the versions of an assistant that match, newest first. It returns fewer
// than the caller asked for if they are large, but at least one.
func (s *Store) Versions(ctx context.Context, owner Owner, assistant string, search Search) ([]Assistant, error) {
	current, err := s.Get(ctx, owner, assistant)
	if err != nil {
		return nil, err
	}
	if owner.firstVersion(current) != nil {
		if ok, err := search.match(current); err != nil || !ok || search.Offset > 0 {
			return nil, err
		}
		return []Assistant{current}, nil
	}
	query := keys.AssistantVersions(owner.Workspace, owner.Deployment, assistant)
	versions, err := record.List(ctx, s.table, "versions of assistant", query, search.window(), func(item *table.Item) (Assistant, bool, error) {
		number, err := keys.AssistantVersionNumber(item.Key)
		if err != nil || number > current.newest {
			// A deleted assistant with the same id may have left it.
			return Assistant{}, false, err
		}
		version, err := decode(current.Ref, versionKind, item)
		if err != nil {
			return version, false, err
		}
		version.Version = number
		ok, err := search.match(version)
		return version, ok, err
	})
	return versions.Items, err
}

// Delete removes an assistant with its versions. A default assistant returns to its original
// content.
func (s *Store) Delete(ctx context.Context, owner Owner, assistant string) error {
	deleted, err := s.Get(ctx, owner, assistant)
	if err != nil {
		return err
	}
	_, standing := owner.byDefault(assistant)
	if standing && !deleted.stored {
		return fault.New(fault.Conflict, "Assistant %s is the default assistant of graph %q and cannot be deleted.", assistant, deleted.Graph)
	}
	// The assistant is removed first: from then on no request finds its versions. They go even if
	// the caller does not wait for that, because the deletion cannot be repeated.
	began := s.now()
	err = record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		o.AddOr(table.Delete{Key: keys.Assistant(owner.Workspace, owner.Deployment, assistant), If: table.Present()}, record.Always(NotFound(assistant)))
		if standing { // default assistants are not counted
			return o, nil
		}
		_, counted, err := count(owner.Workspace, owner.Deployment).Change(ctx, s.table, began, -1)
		o.Add(counted)
		return o, err
	})
	if err != nil {
		return err
	}
	return table.Erase(context.WithoutCancel(ctx), s.table, keys.AssistantVersions(owner.Workspace, owner.Deployment, assistant), func(item *table.Item) bool {
		r := record.Read(item, versionKind)
		return !r.Created().After(began) // later versions are of a new assistant with the same id
	})
}

// Erase removes all assistants of a deployment.
func (s *Store) Erase(ctx context.Context, workspace, deployment string) error {
	return table.Erase(ctx, s.table, keys.AssistantPartition(workspace, deployment), nil)
}

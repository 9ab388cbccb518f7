// Package workspace holds the tenants. Everything that Slipway stores belongs to one
// workspace, whose id clients send as X-Tenant-Id. It also defines permissions in a workspace:
// its members, and the roles that members, keys and tokens have.
package workspace

import (
	"context"
	"regexp"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Workspace is a tenant.
type Workspace struct {
	ID string `json:"-"`
	// Name is unique among workspaces.
	Name    string    `json:"name"`
	Created time.Time `json:"-"`
}

const (
	kind     = "workspace"
	kindName = "workspace_name"
	// attrWorkspace is the workspace that has the name.
	attrWorkspace = "workspace"
)

// Store reads and writes workspaces.
type Store struct {
	table table.Table
	now   clock.Clock
}

// NewStore returns a store over a table.
func NewStore(t table.Table, now clock.Clock) *Store { return &Store{table: t, now: now} }

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func checkName(name string) error {
	if !validName.MatchString(name) || id.Valid(name) {
		return fault.New(fault.Invalid,
			"%q is not a workspace's name: 1 to 63 letters, digits, -, _ and ., beginning with a letter or digit, and not an id.", name)
	}
	return nil
}

// Create makes a workspace. A name that is taken is a fault.Conflict.
func (s *Store) Create(ctx context.Context, name string) (Workspace, error) {
	if err := checkName(name); err != nil {
		return Workspace{}, err
	}
	now := s.now()
	w := Workspace{ID: id.New(now), Name: name, Created: now}
	var o record.Outbox
	o.AddOr(reserve(w, now), taken(name))
	o.Add(
		record.New(keys.Workspace(w.ID), kind, now, nil, record.Encode(w)),
		audit.New(ctx, audit.CreateWorkspace, w.ID, name).Write(w.ID, now),
	)
	if err := record.Commit(ctx, s.table, o); err != nil {
		return Workspace{}, err
	}
	return w, nil
}

// reserve is the write that gives a workspace its name.
func reserve(w Workspace, now time.Time) table.Write {
	own := table.Attrs{attrWorkspace: w.ID, record.Created: clock.Format(w.Created)}
	return record.New(keys.WorkspaceName(w.Name), kindName, now, own, nil)
}

// taken refuses a name that another workspace has.
func taken(name string) func(*table.Item) error {
	return record.Always(fault.New(fault.Conflict, "There is a workspace named %s already.", name))
}

// Get returns a workspace; an unknown workspace is a fault.NotFound.
func (s *Store) Get(ctx context.Context, workspaceID string) (Workspace, error) {
	return record.One(ctx, s.table, "workspace", keys.Workspace(workspaceID), NotFound(workspaceID), record.In(workspaceID, decode))
}

func (s *Store) get(ctx context.Context, workspaceID string) (*table.Item, error) {
	return record.Get(ctx, s.table, "workspace", keys.Workspace(workspaceID), NotFound(workspaceID))
}

func decode(workspaceID string, item *table.Item) (Workspace, error) {
	w := Workspace{ID: workspaceID}
	r := record.Read(item, kind)
	r.Decode(&w)
	w.Created = r.Created()
	return w, r.Err()
}

// NotFound is the fault of an unknown workspace.
func NotFound(workspaceID string) error {
	return fault.New(fault.NotFound, "Workspace ID %s not found.", workspaceID)
}

// Find returns the workspace with an id or a name; an unknown workspace is a fault.NotFound.
func (s *Store) Find(ctx context.Context, idOrName string) (Workspace, error) {
	if id.Valid(idOrName) {
		return s.Get(ctx, idOrName)
	}
	if checkName(idOrName) != nil {
		return Workspace{}, NotFound(idOrName)
	}
	item, err := record.Get(ctx, s.table, "workspace by name", keys.WorkspaceName(idOrName), fault.New(fault.NotFound, "There is no workspace named %s.", idOrName))
	if err != nil {
		return Workspace{}, err
	}
	return s.Get(ctx, item.Text(attrWorkspace))
}

// List returns all workspaces, by name.
func (s *Store) List(ctx context.Context) ([]Workspace, error) {
	return record.All(ctx, s.table, "workspaces", keys.WorkspaceNames(), func(item *table.Item) (Workspace, error) {
		r := record.Read(item, kindName)
		w := Workspace{ID: item.Text(attrWorkspace), Name: item.Key.SK, Created: r.Created()}
		return w, r.Err()
	})
}

// Rename gives a workspace another name.
func (s *Store) Rename(ctx context.Context, workspaceID, name string) (Workspace, error) {
	if err := checkName(name); err != nil {
		return Workspace{}, err
	}
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Workspace, record.Outbox, error) {
		var o record.Outbox
		item, err := s.get(ctx, workspaceID)
		if err != nil {
			return Workspace{}, o, err
		}
		before, err := decode(workspaceID, item)
		if err != nil || before.Name == name {
			return before, o, err
		}
		w, now := Workspace{ID: workspaceID, Name: name, Created: before.Created}, s.now()
		o.AddOr(reserve(w, now), taken(name))
		o.Add(
			table.Delete{Key: keys.WorkspaceName(before.Name), If: table.Equals(attrWorkspace, w.ID)},
			body(item, w, now),
			audit.New(ctx, audit.RenameWorkspace, w.ID, before.Name+" -> "+name).Write(w.ID, now),
		)
		return w, o, nil
	})
}

// body replaces a workspace's body, unless it has changed since it was read.
func body(item *table.Item, w Workspace, now time.Time) table.Write {
	change := record.Change(item.Key, now, nil, table.Equals(record.Version, item.Int(record.Version)))
	change.Body = record.Encode(w)
	return change
}

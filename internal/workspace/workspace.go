// Package workspace holds the tenants. Everything that Slipway stores belongs to one workspace, whose id clients send as X-Tenant-Id.
package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
)

// Workspace is a tenant.
type Workspace struct {
	ID   string `json:"-"`
	Name string `json:"name"`
}

const kind = "workspace"

// Store reads and writes workspaces.
type Store struct {
	table table.Table
	now   clock.Clock
}

// NewStore returns a store over a table.
func NewStore(t table.Table, now clock.Clock) *Store { return &Store{table: t, now: now} }

// Create makes a workspace.
func (s *Store) Create(ctx context.Context, name string) (Workspace, error) {
	now := s.now()
	w := Workspace{ID: id.New(now), Name: name}
	item := table.Item{Key: keys.Workspace(w.ID), Attrs: record.Attrs(kind, now, nil), Body: record.Encode(w)}
	if err := s.table.Transact(ctx, table.Put{Item: item, If: table.Absent()}); err != nil {
		return Workspace{}, fmt.Errorf("create workspace: %w", err)
	}
	return w, nil
}

// Get returns a workspace; an unknown one is a fault.NotFound.
func (s *Store) Get(ctx context.Context, workspaceID string) (Workspace, error) {
	item, err := s.table.Get(ctx, keys.Workspace(workspaceID))
	if errors.Is(err, table.ErrNotFound) {
		return Workspace{}, fault.New(fault.NotFound, "Workspace ID %s not found.", workspaceID)
	}
	if err != nil {
		return Workspace{}, fmt.Errorf("get workspace: %w", err)
	}
	w := Workspace{ID: workspaceID}
	if err := errors.Join(record.Check(item, kind), record.Decode(item, &w)); err != nil {
		return Workspace{}, err
	}
	return w, nil
}

package authservice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Connection permits an agent to use a token that was not made for it.
type Connection struct {
	// Token is the token. Its owner has connected it: no other user can.
	Token
	// ID is the connection's id, and Agent the agent that may use the token.
	ID, Agent string
	// Created is when the token was connected.
	Created time.Time
}

const (
	kindConnection = "auth_connection"
	attrID         = "id"
)

// Connect lets an agent use one of the owner's tokens. A token that it may use already is a
// fault.Conflict.
func (s *Service) Connect(ctx context.Context, ref TokenRef, agent string, notes ...record.Note[Connection]) (Connection, error) {
	if agent == "" || len(agent) > maxID {
		return Connection{}, fault.New(fault.Invalid, "agent_id must have 1 to %d bytes.", maxID)
	}
	t, err := s.token(ctx, ref)
	if err != nil {
		return Connection{}, err
	}
	now := s.Now()
	c := Connection{Token: t, ID: id.New(now), Agent: agent, Created: now}
	var o record.Outbox
	o.AddOr(table.Check{Key: t.Key(), If: table.Present()}, record.Always(tokenNotFound(ref.Token)))
	own := table.Attrs{attrID: c.ID, attrUser: t.User, attrAgent: agent}
	put := record.New(keys.AuthConnection(ref.Workspace, agent, t.Token), kindConnection, now, own, nil)
	put.Item.Index = map[table.Index]table.Key{table.ByList: keys.AuthConnectionListEntry(ref.Workspace, t.Token, agent)}
	o.AddOr(put, record.Always(fault.New(fault.Conflict, "The agent is connected to the token already.")))
	o.Add(t.event(TokenConnected, agent, "", now), t.audit(ctx, audit.ConnectAuthToken, now))
	return record.CommitNew(ctx, s.Table, o, c, notes...)
}

// ListConnections returns the connections of an agent, the oldest token first.
func (s *Service) ListConnections(ctx context.Context, workspace, agent string) ([]Connection, error) {
	if agent == "" || len(agent) > maxID {
		return []Connection{}, nil
	}
	return s.connections(ctx, workspace, agent)
}

// connections reads an agent's connections and their tokens; a connection whose token is gone
// is left out.
func (s *Service) connections(ctx context.Context, workspace, agent string) ([]Connection, error) {
	items, err := table.AllItems(ctx, s.Table, keys.AuthConnections(workspace, agent))
	if err != nil {
		return nil, fmt.Errorf("list agent connections: %w", err)
	}
	connections := make([]Connection, 0, len(items))
	for some := range slices.Chunk(items, table.MaxWrites) {
		wanted := make([]table.Key, len(some))
		for i, item := range some {
			wanted[i] = keys.AuthToken(workspace, item.Text(attrUser), item.Key.SK)
		}
		tokens, err := s.Table.GetBatch(ctx, wanted...)
		if err != nil {
			return nil, fmt.Errorf("get connected tokens: %w", err)
		}
		for i, item := range some {
			if tokens[i] == nil {
				continue
			}
			r := record.Read(item, kindConnection)
			t, err := decodeToken(workspace, tokens[i])
			connections = append(connections, Connection{Token: t, ID: item.Text(attrID), Agent: agent, Created: r.Created()})
			if err := cmp.Or(r.Err(), err); err != nil {
				return nil, err
			}
		}
	}
	return connections, nil
}

// Disconnect takes a token from an agent; an unknown connection is a fault.NotFound. An agent
// has few connections, so the connection is searched among all of them.
func (s *Service) Disconnect(ctx context.Context, workspace, agent, connectionID string) error {
	connections, err := s.ListConnections(ctx, workspace, agent)
	if err != nil {
		return err
	}
	notFound := fault.New(fault.NotFound, "Connection ID %s not found.", plain(connectionID, nil))
	at := slices.IndexFunc(connections, func(c Connection) bool { return c.ID == connectionID })
	if at < 0 {
		return notFound
	}
	c := connections[at]
	now := s.Now()
	var o record.Outbox
	o.AddOr(table.Delete{Key: keys.AuthConnection(workspace, agent, c.TokenRef.Token), If: table.Equals(attrID, c.ID)}, record.Always(notFound))
	o.Add(c.event(TokenDisconnected, agent, "", now), c.audit(ctx, audit.DisconnectAuthToken, now))
	return record.Commit(ctx, s.Table, o)
}

// disconnectAll takes a token from all agents. A connection that is made at this moment is
// left over, and has no effect without its token.
func (s *Service) disconnectAll(ctx context.Context, t Token) error {
	if err := table.Erase(ctx, s.Table, keys.AuthConnectionList(t.Workspace, t.Token), nil); err != nil {
		return fmt.Errorf("disconnect token: %w", err)
	}
	return nil
}

package authservice

import (
	"context"
	"errors"
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
	Workspace, ID, Agent string
	TokenID              string
	// ProviderID, Label, Scopes and Expires are values of the token.
	ProviderID, Label string
	Scopes            []string
	Expires           time.Time
	// CreatedBy is the token's owner. Only the owner can connect a token.
	CreatedBy string
	Created   time.Time

	token Token
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
	c := Connection{Workspace: ref.Workspace, ID: id.New(now), Agent: agent, CreatedBy: t.User, Created: now}
	var o record.Outbox
	o.AddOr(table.Check{Key: t.Key(), If: table.Present()}, record.Always(tokenNotFound(ref.Token)))
	o.AddOr(table.Put{
		Item: table.Item{
			Key:   keys.AuthConnection(ref.Workspace, agent, t.Token),
			Attrs: record.Attrs(kindConnection, now, table.Attrs{attrID: c.ID, attrUser: t.User, attrAgent: agent}),
			Index: map[table.Index]table.Key{table.ByList: keys.AuthConnectionListEntry(ref.Workspace, t.Token, agent)},
		},
		If: table.Absent(),
	}, record.Always(fault.New(fault.Conflict, "The agent is connected to the token already.")))
	o.Add(c.event(t, TokenConnected, now), t.audit(ctx, audit.ConnectAuthToken, now))
	if err := record.AddNotes(ctx, &o, c.of(t), notes...); err != nil {
		return Connection{}, err
	}
	if err := record.Commit(ctx, s.Table, o); err != nil {
		return Connection{}, err
	}
	return c.of(t), nil
}

func (c Connection) of(t Token) Connection {
	c.token, c.TokenID, c.ProviderID, c.Label, c.Scopes, c.Expires = t, t.Token, t.ProviderID, t.Label, t.Scopes, t.Expires
	return c
}

func (c Connection) event(t Token, what EventType, now time.Time) table.Write {
	return Event{Owner: t.Owner, Type: what, TokenID: t.Token, ProviderID: t.ProviderID, Agent: c.Agent, At: now}.put()
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
	found := make([]Connection, 0, len(items))
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
			c := Connection{Workspace: workspace, ID: item.Text(attrID), Agent: agent, CreatedBy: item.Text(attrUser), Created: r.Created()}
			t, err := decodeToken(workspace, tokens[i])
			if err := errors.Join(r.Err(), err); err != nil {
				return nil, err
			}
			found = append(found, c.of(t))
		}
	}
	return found, nil
}

// Disconnect takes a token from an agent; an unknown connection is a fault.NotFound. An agent
// has few connections, so the connection is searched among all of them.
func (s *Service) Disconnect(ctx context.Context, workspace, agent, connectionID string) error {
	found, err := s.ListConnections(ctx, workspace, agent)
	if err != nil {
		return err
	}
	notFound := fault.New(fault.NotFound, "Connection ID %s not found.", plain(connectionID, nil))
	at := slices.IndexFunc(found, func(c Connection) bool { return c.ID == connectionID })
	if at < 0 {
		return notFound
	}
	c := found[at]
	now := s.Now()
	var o record.Outbox
	o.AddOr(table.Delete{Key: keys.AuthConnection(workspace, agent, c.TokenID), If: table.Equals(attrID, c.ID)}, record.Always(notFound))
	o.Add(c.event(c.token, TokenDisconnected, now), c.token.audit(ctx, audit.DisconnectAuthToken, now))
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

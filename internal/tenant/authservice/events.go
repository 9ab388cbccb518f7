package authservice

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// EventType is the type of a token's event.
type EventType string

// The events of a token. Each event is written in the transaction of the change that it
// reports.
const (
	TokenCreated      EventType = "token.created"
	TokenImported     EventType = "token.imported"
	TokenRefreshed    EventType = "token.refreshed"
	TokenRefused      EventType = "token.expired"
	TokenChanged      EventType = "token.updated"
	TokenDeleted      EventType = "token.deleted"
	TokenConnected    EventType = "token.connected"
	TokenDisconnected EventType = "token.disconnected"
)

// eventTime is how long events are kept.
const eventTime = 400 * 24 * time.Hour

// Event is an entry of a user's audit log.
type Event struct {
	Owner
	ID                  string
	Type                EventType
	TokenID, ProviderID string
	// Agent is the agent that the token was made for, connected to or taken from.
	Agent string
	// Detail is the provider's error code, or an error code of this package.
	Detail string
	At     time.Time
}

const (
	kindEvent  = "auth_event"
	attrType   = "type"
	attrDetail = "detail"
)

// event returns an event of the token and an agent.
func (t Token) event(what EventType, agent, detail string, now time.Time) table.Write {
	put := record.New(keys.AuthEvent(t.Workspace, t.User, id.New(now)), kindEvent, now, table.Attrs{
		attrType: string(what), attrToken: t.Token, attrProviderID: t.ProviderID, attrAgent: agent, attrDetail: detail,
	}, nil)
	put.Item.Expires = now.Add(eventTime)
	return put
}

// audit returns the entry of the workspace's log for an action of a caller on the token.
func (t Token) audit(ctx context.Context, action audit.Action, now time.Time) table.Write {
	return audit.New(ctx, action, t.Token, fmt.Sprintf("auth provider %s, user %s", t.ProviderID, t.User)).Write(t.Workspace, now)
}

// ListEvents returns the events of an owner's tokens, newest first. Unless providerID is "",
// it returns only the events of that provider.
func (s *Service) ListEvents(ctx context.Context, owner Owner, providerID string, window record.Window) ([]Event, error) {
	if err := checkIdentity(owner.User, ""); err != nil {
		return nil, err
	}
	query := keys.AuthEvents(owner.Workspace, owner.User)
	query.Reverse = true
	window.NoCursor = true
	events, err := record.List(ctx, s.Table, "token events", query, window, func(item *table.Item) (Event, bool, error) {
		r := record.Read(item, kindEvent)
		return Event{
			Owner: owner, ID: item.Key.SK, Type: EventType(item.Text(attrType)), TokenID: item.Text(attrToken), ProviderID: item.Text(attrProviderID),
			Agent: item.Text(attrAgent), Detail: item.Text(attrDetail), At: r.Created(),
		}, providerID == "" || providerID == item.Text(attrProviderID), r.Err()
	})
	return events.Items, err
}

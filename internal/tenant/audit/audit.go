// Package audit keeps, for each workspace, a log of changes with their actor and time. Entries
// are only ever added. The domain writes an entry in the transaction of the change that it
// reports, so both are stored or neither is. The entry of a refused request is written alone.
package audit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Action is the action of an entry.
type Action string

// The actions. Each is a verb and the kind of the resource, as in other audit logs.
const (
	CreateWorkspace  Action = "create_workspace"
	RenameWorkspace  Action = "rename_workspace"
	AddMember        Action = "add_member"
	UpdateMember     Action = "update_member"
	RemoveMember     Action = "remove_member"
	CreateKey        Action = "create_api_key"
	RevokeKey        Action = "revoke_api_key"
	CreateTrustRule  Action = "create_trust_rule"
	DeleteTrustRule  Action = "delete_trust_rule"
	CreateDeployment Action = "create_deployment"
	UpdateDeployment Action = "update_deployment"
	DeleteDeployment Action = "delete_deployment"

	RestartDeployment Action = "restart_deployment"
	// UndeleteDeployment gives back a deleted deployment.
	UndeleteDeployment Action = "undelete_deployment"

	CreateWebhook Action = "create_webhook"
	UpdateWebhook Action = "update_webhook"
	DeleteWebhook Action = "delete_webhook"

	CreateIntegration Action = "create_integration"
	UpdateIntegration Action = "update_integration"
	DeleteIntegration Action = "delete_integration"

	CreateListener Action = "create_listener"
	UpdateListener Action = "update_listener"
	DeleteListener Action = "delete_listener"

	CreateSecret Action = "create_secret"
	UpdateSecret Action = "update_secret"
	DeleteSecret Action = "delete_secret"

	CreateAuthProvider Action = "create_auth_provider"
	UpdateAuthProvider Action = "update_auth_provider"
	DeleteAuthProvider Action = "delete_auth_provider"

	ImportAuthToken     Action = "import_auth_token"
	UpdateAuthToken     Action = "update_auth_token"
	DeleteAuthToken     Action = "delete_auth_token"
	ConnectAuthToken    Action = "connect_auth_token"
	DisconnectAuthToken Action = "disconnect_auth_token"

	// Request is a request as such, which had no effect.
	Request Action = "request"
)

// Outcome is the result of an action.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "succeeded"
	Refused   Outcome = "refused"
)

// Actor is the caller that does something, according to its credentials.
type Actor struct {
	// Key is the id of the API key, "" when another credential was used.
	Key string `json:"key,omitempty"`
	// Subject is the person or program that another credential names.
	Subject string `json:"subject,omitempty"`
	// Request is the id of the request.
	Request string `json:"request,omitempty"`
}

type actorKey struct{}

// By returns a context whose actions are done by the actor.
func By(ctx context.Context, actor Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Entry is one line of the log.
type Entry struct {
	ID string `json:"-"`
	Actor

	Action Action `json:"action"`
	// Resource is the id of the changed object.
	Resource string  `json:"resource"`
	Outcome  Outcome `json:"outcome"`
	// Detail says more, for a person. It never holds a secret.
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"-"`
}

const (
	kind = "audit_entry"
	// retention is how long entries are kept.
	retention = 400 * 24 * time.Hour
)

// New returns the entry of a change. The change succeeds when the transaction succeeds that
// contains the entry. The actor comes from the context.
func New(ctx context.Context, action Action, resource, detail string) Entry {
	actor, _ := ctx.Value(actorKey{}).(Actor)
	return Entry{Actor: actor, Action: action, Resource: resource, Outcome: Succeeded, Detail: detail}
}

// Refusal returns the entry of a request that the caller may not make.
func Refusal(ctx context.Context, resource, detail string) Entry {
	e := New(ctx, Request, resource, detail)
	e.Outcome = Refused
	return e
}

// Write returns the write that adds the entry to a workspace's log.
func (e Entry) Write(workspace string, now time.Time) table.Write {
	put := record.New(keys.AuditEntry(workspace, id.New(now)), kind, now, nil, record.Encode(e))
	put.Item.Expires = now.Add(retention)
	return put
}

// Store reads the log, and adds entries that belong to no transaction.
type Store struct {
	table   table.Table
	now     clock.Clock
	refused *lru.Cache[string, *refused]
}

// NewStore returns a store over a table.
func NewStore(t table.Table, now clock.Clock) *Store {
	return &Store{table: t, now: now, refused: lru.New[string, *refused](refusedWorkspaces)}
}

// Add adds an entry outside of any other transaction.
func (s *Store) Add(ctx context.Context, workspace string, e Entry) error {
	if err := s.table.Transact(ctx, e.Write(workspace, s.now())); err != nil {
		return fmt.Errorf("add audit entry: %w", err)
	}
	return nil
}

func decode(item *table.Item) (Entry, error) {
	e := Entry{ID: item.Key.SK}
	r := record.Read(item, kind)
	r.Decode(&e)
	e.At = r.Created()
	return e, r.Err()
}

// Filter says which entries to return. Zero members ask for nothing.
type Filter struct {
	Action       Action
	Resource     string
	Key, Subject string
	Outcome      Outcome
	// Since and Until bound the time of the entry: Since is inclusive, Until is exclusive.
	Since, Until time.Time
}

func (f Filter) match(e Entry) bool {
	return (f.Action == "" || f.Action == e.Action) && (f.Resource == "" || f.Resource == e.Resource) &&
		(f.Key == "" || f.Key == e.Key) && (f.Subject == "" || f.Subject == e.Subject) && (f.Outcome == "" || f.Outcome == e.Outcome) &&
		(f.Since.IsZero() || !e.At.Before(f.Since)) && (f.Until.IsZero() || e.At.Before(f.Until))
}

// List returns a page of the entries of a workspace's log that match the filter, the newest
// entry first, and the cursor of the next page, or "" if there is no next page. A limit of 0 means
// table.MaxLimit.
func (s *Store) List(ctx context.Context, workspace string, filter Filter, window record.Window) (entries []Entry, next string, err error) {
	query := keys.AuditLog(workspace)
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		return nil, "", fault.New(fault.Invalid, "since must be before until.")
	}
	query.From, query.To = id.First(filter.Since), id.First(filter.Until)
	query.Reverse = true
	window.Limit = cmp.Or(window.Limit, table.MaxLimit)
	list, err := record.List(ctx, s.table, "audit entries", query, window, func(item *table.Item) (Entry, bool, error) {
		e, err := decode(item)
		return e, filter.match(e), err
	})
	return list.Items, list.Cursor, err
}

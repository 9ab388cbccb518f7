package controlplane

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// ListAPIKeys lists the workspace's API keys.
func (s server) ListAPIKeys(ctx context.Context, _ ListAPIKeysRequestObject) (ListAPIKeysResponseObject, error) {
	stored, err := s.Keys(ctx)
	if err != nil {
		return nil, err
	}
	apiKeys, err := stored.List(ctx, auth.Workspace(ctx))
	return ListAPIKeys200JSONResponse{Resources: web.ShowAll(apiKeys, showAPIKey)}, err
}

// CreateAPIKey makes an API key, and shows it.
func (s server) CreateAPIKey(ctx context.Context, request CreateAPIKeyRequestObject) (CreateAPIKeyResponseObject, error) {
	body := request.Body
	wanted := apikey.NewKey{
		Workspace: auth.Workspace(ctx), Name: value(body.Name), Role: workspace.Role(body.Role), Lifetime: seconds(value(body.ExpiresInSeconds)),
	}
	stored, err := s.Keys(ctx)
	if err != nil {
		return nil, err
	}
	created, key, err := stored.Issue(ctx, wanted, storeKeyRefusal(ctx)...)
	if err != nil {
		return nil, err
	}
	k := showAPIKey(created)
	return CreateAPIKey201JSONResponse{
		Headers: CreateAPIKey201ResponseHeaders{CacheControl: new(web.NoStore)},
		Body: APIKeyCreated{
			ID: k.ID, Name: k.Name, Role: k.Role, Prefix: k.Prefix, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, LastUsedAt: k.LastUsedAt, Key: key,
		},
	}, nil
}

// RevokeAPIKey revokes an API key.
func (s server) RevokeAPIKey(ctx context.Context, request RevokeAPIKeyRequestObject) (RevokeAPIKeyResponseObject, error) {
	stored, err := s.Keys(ctx)
	if err != nil {
		return nil, err
	}
	return RevokeAPIKey204Response{}, stored.Revoke(ctx, auth.Workspace(ctx), request.KeyID, s.Workspaces.KeepAdmin)
}

func showAPIKey(k apikey.Key) APIKey {
	return APIKey{
		ID: k.ID, Name: k.Name, Role: Role(k.Role), Prefix: k.Prefix, CreatedAt: clock.Format(k.Created),
		ExpiresAt: clock.Nullable(k.Expires), LastUsedAt: clock.Nullable(k.LastUsed),
	}
}

// ListAuditLog lists the changes in the workspace and their callers, newest first.
func (s server) ListAuditLog(ctx context.Context, request ListAuditLogRequestObject) (ListAuditLogResponseObject, error) {
	p := request.Params
	filter := audit.Filter{
		Action: audit.Action(value(p.Action)), Resource: value(p.Resource), Key: value(p.KeyID), Subject: value(p.Subject),
		Outcome: audit.Outcome(value(p.Outcome)),
	}
	var err error
	if filter.Since, err = instant("since", p.Since); err != nil {
		return nil, err
	}
	if filter.Until, err = instant("until", p.Until); err != nil {
		return nil, err
	}
	entries, next, err := s.Audit.List(ctx, auth.Workspace(ctx), filter, record.Window{Limit: pageSize(p.Limit), Cursor: value(p.Cursor)})
	return ListAuditLog200JSONResponse{Resources: web.ShowAll(entries, showAuditEntry), Cursor: optional.Of(next)}, err
}

func showAuditEntry(e audit.Entry) AuditEntry {
	return AuditEntry{
		ID: e.ID, Time: clock.Format(e.At), KeyID: optional.Of(e.Key), Subject: optional.Of(e.Subject), Action: string(e.Action), Resource: e.Resource,
		Outcome: AuditOutcome(e.Outcome), Detail: optional.Of(e.Detail), RequestID: optional.Of(e.Request),
	}
}

// instant reads a query parameter that is a time, of any offset.
func instant(name string, text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return time.Time{}, fault.Shape(fault.Detail{
			Loc: []any{inQuery, name}, Type: "datetime_parsing", Msg: "Input should be a valid datetime",
		})
	}
	return clock.Cut(t), nil
}

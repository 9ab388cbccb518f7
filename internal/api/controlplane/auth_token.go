package controlplane

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// ListAuthTokens lists a user's tokens.
func (s server) ListAuthTokens(ctx context.Context, request ListAuthTokensRequestObject) (ListAuthTokensResponseObject, error) {
	of, err := owner(ctx, inQuery, request.Params.UserID)
	if err != nil {
		return nil, err
	}
	tokens, err := s.AuthService.ListTokens(ctx, of, authservice.TokenFilter{
		ProviderID: value(request.Params.ProviderID), Agent: value(request.Params.AgentID),
	})
	return ListAuthTokens200JSONResponse(web.ShowAll(tokens, showToken)), err
}

// CheckAuthToken reports whether a user has a token of a provider.
func (s server) CheckAuthToken(ctx context.Context, request CheckAuthTokenRequestObject) (CheckAuthTokenResponseObject, error) {
	of, err := owner(ctx, inQuery, request.Params.UserID)
	if err != nil {
		return nil, err
	}
	exists, err := s.AuthService.TokenExists(ctx, of, authservice.TokenFilter{
		ProviderID: request.Params.ProviderID, Agent: value(request.Params.AgentID),
	})
	return CheckAuthToken200JSONResponse{HasToken: exists}, err
}

// ImportAuthToken stores a token that was obtained elsewhere.
func (s server) ImportAuthToken(ctx context.Context, request ImportAuthTokenRequestObject) (ImportAuthTokenResponseObject, error) {
	body := request.Body
	of, err := owner(ctx, inBody, body.UserID)
	if err != nil {
		return nil, err
	}
	imported := authservice.ImportedToken{
		Owner: of, ProviderID: body.ProviderID, Agent: value(body.AgentID), AccessToken: body.AccessToken, RefreshToken: value(body.RefreshToken),
		Scopes: body.Scopes, Label: value(body.ProviderAccountLabel), Metadata: state.Present(body.Metadata), Default: optional.Or(body.IsDefault, true),
	}
	if body.ExpiresInSeconds != nil {
		imported.Lifetime = max(seconds(*body.ExpiresInSeconds), time.Microsecond)
	}
	t, err := s.AuthService.ImportToken(ctx, imported, web.StoreAnswer(ctx, func(t authservice.TokenRef) (web.Send, string, int64, error) {
		return ImportAuthToken200JSONResponse{TokenID: t.Token}.VisitImportAuthTokenResponse, "", web.Untagged, nil
	})...)
	return ImportAuthToken200JSONResponse{TokenID: t.Token}, err
}

// PatchAuthToken changes the notes on a token.
func (s server) PatchAuthToken(ctx context.Context, request PatchAuthTokenRequestObject) (PatchAuthTokenResponseObject, error) {
	of, err := owner(ctx, inQuery, request.Params.UserID)
	if err != nil {
		return nil, err
	}
	t, err := s.AuthService.PatchToken(ctx, of.Token(request.TokenID), authservice.TokenPatch{
		Label: request.Body.ProviderAccountLabel, Default: request.Body.IsDefault, Metadata: state.Present(request.Body.Metadata),
	})
	return PatchAuthToken200JSONResponse(showToken(t)), err
}

// DeleteAuthToken revokes and deletes a token.
func (s server) DeleteAuthToken(ctx context.Context, request DeleteAuthTokenRequestObject) (DeleteAuthTokenResponseObject, error) {
	of, err := owner(ctx, inQuery, request.Params.UserID)
	if err == nil {
		err = s.AuthService.DeleteToken(ctx, of.Token(request.TokenID))
	}
	return DeleteAuthToken204Response{}, err
}

// DeleteAuthTokens revokes and deletes a user's tokens of a provider.
func (s server) DeleteAuthTokens(ctx context.Context, request DeleteAuthTokensRequestObject) (DeleteAuthTokensResponseObject, error) {
	of, err := owner(ctx, inQuery, request.Params.UserID)
	if err != nil {
		return nil, err
	}
	deleted, err := s.AuthService.DeleteTokens(ctx, of, request.Params.ProviderID)
	return DeleteAuthTokens200JSONResponse{Message: deletedTokens(deleted), Deleted: deleted}, err
}

// CheckSlackTokens reports whether any user of the workspace has a token of Slack.
func (s server) CheckSlackTokens(ctx context.Context, _ CheckSlackTokensRequestObject) (CheckSlackTokensResponseObject, error) {
	exists, err := s.AuthService.TypeHasTokens(ctx, auth.Workspace(ctx), authservice.Slack)
	return CheckSlackTokens200JSONResponse{HasToken: exists}, err
}

// DeleteSlackTokens revokes and deletes all of the workspace's tokens of Slack.
func (s server) DeleteSlackTokens(ctx context.Context, _ DeleteSlackTokensRequestObject) (DeleteSlackTokensResponseObject, error) {
	deleted, err := s.AuthService.DeleteTypeTokens(ctx, auth.Workspace(ctx), authservice.Slack)
	return DeleteSlackTokens200JSONResponse{Message: deletedTokens(deleted), Deleted: deleted}, err
}

func deletedTokens(n int) string { return fmt.Sprintf("Deleted tokens: %d.", n) }

// defaultEvents is how many events are listed if a request names no number.
const defaultEvents = 50

// ListTokenEvents lists the events of a user's tokens.
func (s server) ListTokenEvents(ctx context.Context, request ListTokenEventsRequestObject) (ListTokenEventsResponseObject, error) {
	of, err := owner(ctx, inQuery, request.Params.UserID)
	if err != nil {
		return nil, err
	}
	window := record.Window{Limit: optional.Or(request.Params.Limit, defaultEvents)}
	events, err := s.AuthService.ListEvents(ctx, of, value(request.Params.ProviderID), window)
	return ListTokenEvents200JSONResponse(web.ShowAll(events, showTokenEvent)), err
}

func showTokenEvent(e authservice.Event) TokenEvent {
	return TokenEvent{
		ID: e.ID, EventType: string(e.Type), ProviderID: e.ProviderID, TokenID: optional.Of(e.TokenID), AgentID: optional.Of(e.Agent),
		Reason: optional.Of(e.Detail), CreatedAt: clock.Format(e.At),
	}
}

// showToken converts a token to the shape of the interface: without its value.
func showToken(t authservice.Token) AuthTokenSummary {
	return AuthTokenSummary{
		ID: t.Token, ProviderID: t.ProviderID, AgentID: optional.Of(t.Agent), ProviderAccountLabel: optional.Of(t.Label), Scopes: t.Scopes,
		ExpiresAt: clock.Nullable(t.Expires), IsDefault: t.IsDefault, Status: string(t.Status), Metadata: t.Metadata,
		CreatedAt: clock.Format(t.Created), UpdatedAt: clock.Format(t.Updated),
	}
}

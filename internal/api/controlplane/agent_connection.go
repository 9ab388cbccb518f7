package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// ListAgentConnections lists the tokens that an agent may use besides its own tokens.
func (s server) ListAgentConnections(ctx context.Context, request ListAgentConnectionsRequestObject) (ListAgentConnectionsResponseObject, error) {
	connections, err := s.AuthService.ListConnections(ctx, auth.Workspace(ctx), request.AgentID)
	return ListAgentConnections200JSONResponse{Data: web.ShowAll(connections, showConnection)}, err
}

// CreateAgentConnection lets an agent use a token.
func (s server) CreateAgentConnection(ctx context.Context, request CreateAgentConnectionRequestObject) (CreateAgentConnectionResponseObject, error) {
	of, err := owner(ctx, inBody, request.Body.UserID)
	if err != nil {
		return nil, err
	}
	c, err := s.AuthService.Connect(ctx, of.Token(request.Body.OauthTokenID), request.AgentID, web.StoreAnswer(ctx, func(c authservice.Connection) (web.Send, string, int64, error) {
		return CreateAgentConnection201JSONResponse(showConnection(c)).VisitCreateAgentConnectionResponse, "", web.Untagged, nil
	})...)
	return CreateAgentConnection201JSONResponse(showConnection(c)), err
}

// DeleteAgentConnection takes a token from an agent.
func (s server) DeleteAgentConnection(ctx context.Context, request DeleteAgentConnectionRequestObject) (DeleteAgentConnectionResponseObject, error) {
	err := s.AuthService.Disconnect(ctx, auth.Workspace(ctx), request.AgentID, request.ConnectionID)
	return DeleteAgentConnection204Response{}, err
}

// showConnection converts a connection to the shape of the interface.
func showConnection(c authservice.Connection) AgentConnection {
	return AgentConnection{
		ID: c.ID, AgentID: c.Agent, OauthTokenID: c.TokenRef.Token, ProviderID: c.ProviderID, ProviderAccountLabel: optional.Of(c.Label), Scopes: c.Scopes,
		ExpiresAt: clock.Nullable(c.Expires), CreatedBy: c.User, CreatedAt: clock.Format(c.Created),
	}
}

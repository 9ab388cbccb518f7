package controlplane

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// ListAuthProviders lists the workspace's OAuth providers.
func (s server) ListAuthProviders(ctx context.Context, _ ListAuthProvidersRequestObject) (ListAuthProvidersResponseObject, error) {
	providers, err := s.AuthService.ListProviders(ctx, auth.Workspace(ctx))
	return ListAuthProviders200JSONResponse(web.ShowAll(providers, showProvider)), err
}

// CreateAuthProvider creates an OAuth provider.
func (s server) CreateAuthProvider(ctx context.Context, request CreateAuthProviderRequestObject) (CreateAuthProviderResponseObject, error) {
	body := request.Body
	p, err := s.AuthService.CreateProvider(ctx, authservice.NewProvider{
		Workspace: auth.Workspace(ctx), ProviderID: body.ProviderID, ClientSecret: body.ClientSecret,
		ProviderSpec: authservice.ProviderSpec{
			Name: body.Name, ClientID: body.ClientID, AuthURL: body.AuthURL, TokenURL: body.TokenURL, RevocationURL: value(body.RevocationURL),
			UsesPKCE: value(body.UsesPkce), CodeChallengeMethod: value(body.CodeChallengeMethod),
			Type: authservice.ProviderType(value(body.ProviderType)), ClientAuth: authservice.ClientAuth(value(body.TokenEndpointAuthMethod)),
		},
	}, web.StoreAnswer(ctx, func(p authservice.Provider) (web.Send, string, int64, error) {
		return CreateAuthProvider200JSONResponse(showProvider(p)).VisitCreateAuthProviderResponse, p.ID, p.Version(), nil
	})...)
	web.ShowVersion(ctx, p.ID, p.Version())
	return CreateAuthProvider200JSONResponse(showProvider(p)), err
}

// DiscoverAuthProvider creates an OAuth provider from the address of an MCP server.
func (s server) DiscoverAuthProvider(ctx context.Context, request DiscoverAuthProviderRequestObject) (DiscoverAuthProviderResponseObject, error) {
	body := request.Body
	p, err := s.AuthService.Discover(ctx, authservice.NewDiscovered{
		Workspace: auth.Workspace(ctx), ProviderID: body.ProviderID, Name: body.Name, MCPServerURL: body.McpServerURL,
		RedirectURI: s.callbackURL(ctx, body.ProviderID),
	})
	web.ShowVersion(ctx, p.ID, p.Version())
	return DiscoverAuthProvider200JSONResponse(showProvider(p)), err
}

// GetAuthProvider reads an OAuth provider.
func (s server) GetAuthProvider(ctx context.Context, request GetAuthProviderRequestObject) (GetAuthProviderResponseObject, error) {
	p, err := s.AuthService.Provider(ctx, auth.Workspace(ctx), request.ProviderID)
	web.ShowVersion(ctx, p.ID, p.Version())
	return GetAuthProvider200JSONResponse(showProvider(p)), err
}

// PatchAuthProvider changes an OAuth provider.
func (s server) PatchAuthProvider(ctx context.Context, request PatchAuthProviderRequestObject) (PatchAuthProviderResponseObject, error) {
	body := request.Body
	p, err := s.AuthService.PatchProvider(ctx, auth.Workspace(ctx), request.ProviderID, authservice.ProviderPatch{
		ProviderID: body.ProviderID, Name: body.Name, ClientID: body.ClientID, ClientSecret: body.ClientSecret, AuthURL: body.AuthURL, TokenURL: body.TokenURL,
		RevocationURL: body.RevocationURL, CodeChallengeMethod: body.CodeChallengeMethod, UsesPKCE: body.UsesPkce,
		Type: (*authservice.ProviderType)(body.ProviderType), ClientAuth: (*authservice.ClientAuth)(body.TokenEndpointAuthMethod),
		Expect: web.ExpectedVersions(ctx),
	})
	web.ShowVersion(ctx, p.ID, p.Version())
	return PatchAuthProvider200JSONResponse(showProvider(p)), err
}

// DeleteAuthProvider deletes an OAuth provider and its tokens.
func (s server) DeleteAuthProvider(ctx context.Context, request DeleteAuthProviderRequestObject) (DeleteAuthProviderResponseObject, error) {
	err := s.AuthService.DeleteProvider(ctx, auth.Workspace(ctx), request.ProviderID, web.ExpectedVersions(ctx))
	return DeleteAuthProvider200JSONResponse{Message: fmt.Sprintf("The auth provider %s is deleted.", request.ProviderID)}, err
}

// showProvider converts a provider to the shape of the interface.
func showProvider(p authservice.Provider) AuthProvider {
	return AuthProvider{
		ID: p.ID, OrganizationID: p.Workspace, ProviderID: p.ProviderID, Name: p.Name, ClientID: p.ClientID, AuthURL: p.AuthURL, TokenURL: p.TokenURL,
		RevocationURL: optional.Of(p.RevocationURL), UsesPkce: p.UsesPKCE, CodeChallengeMethod: optional.Of(p.CodeChallengeMethod),
		ProviderType: optional.Of(string(p.Type)), TokenEndpointAuthMethod: string(p.ClientAuth),
		McpServerURL: optional.Of(p.MCPServerURL), IsDynamicClient: p.Dynamic, CreatedAt: clock.Format(p.Created), UpdatedAt: clock.Format(p.Updated),
	}
}

// callbackURL is the address to which a provider sends browsers back.
func (s server) callbackURL(ctx context.Context, providerID string) string {
	return s.BaseURL(ctx) + "/v2/auth/callback/" + providerID
}

package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
)

// CreatePushToken lets a client push images for a deployment.
func (s server) CreatePushToken(ctx context.Context, request CreatePushTokenRequestObject) (CreatePushTokenResponseObject, error) {
	grant, err := s.Deployments.PushToken(ctx, ref(ctx, request.DeploymentID))
	return CreatePushToken200JSONResponse{
		Headers: CreatePushToken200ResponseHeaders{CacheControl: new(web.NoStore)},
		Body: PushToken{
			Token: grant.Token, Username: grant.Username, RegistryURL: grant.Host(), RepositoryURL: grant.Repository, ExpiresAt: clock.Format(grant.Expires),
		},
	}, err
}

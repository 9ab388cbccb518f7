package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
)

// PatchDeploymentResourceTiers changes the sizes of a deployment.
func (s server) PatchDeploymentResourceTiers(ctx context.Context, request PatchDeploymentResourceTiersRequestObject) (PatchDeploymentResourceTiersResponseObject, error) {
	shown, err := s.patchTiers(ctx, request.DeploymentID, request.Body, value(request.Params.ValidateOnly), func(shown Deployment) web.Send {
		return PatchDeploymentResourceTiers200JSONResponse(shown).VisitPatchDeploymentResourceTiersResponse
	})
	return PatchDeploymentResourceTiers200JSONResponse(shown), err
}

// PatchDeploymentTier does the same.
func (s server) PatchDeploymentTier(ctx context.Context, request PatchDeploymentTierRequestObject) (PatchDeploymentTierResponseObject, error) {
	shown, err := s.patchTiers(ctx, request.DeploymentID, request.Body, value(request.Params.ValidateOnly), func(shown Deployment) web.Send {
		return PatchDeploymentTier200JSONResponse(shown).VisitPatchDeploymentTierResponse
	})
	return PatchDeploymentTier200JSONResponse(shown), err
}

func (s server) patchTiers(ctx context.Context, deploymentID string, body *ResourceTiersRequest, validateOnly bool, answer func(Deployment) web.Send) (Deployment, error) {
	if body.ComputeTier == nil && body.DatabaseTier == nil {
		return Deployment{}, fault.New(fault.Invalid, "compute_tier or database_tier must be given.")
	}
	patch := deployment.Patch{ComputeTier: body.ComputeTier, DatabaseTier: body.DatabaseTier, ValidateOnly: validateOnly, Expect: web.ExpectedVersionsOf(ctx, deploymentID), Notes: s.storeDeploymentAnswer(ctx, answer)}
	return s.patched(ctx, deploymentID, patch)
}

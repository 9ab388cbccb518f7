package controlplane

import "context"

// RestartDeployment has a deployment's agents started anew, without a revision.
func (s server) RestartDeployment(ctx context.Context, request RestartDeploymentRequestObject) (RestartDeploymentResponseObject, error) {
	restart, err := s.Deployments.Restart(ctx, ref(ctx, request.DeploymentID))
	return RestartDeployment202JSONResponse{ID: restart.ID, DeploymentID: request.DeploymentID, RevisionID: restart.Revision}, err
}

package controlplane

import "context"

// RestartDeployment restarts a deployment's agents, without a new revision.
func (s server) RestartDeployment(ctx context.Context, request RestartDeploymentRequestObject) (RestartDeploymentResponseObject, error) {
	restart, err := s.Deployments.Restart(ctx, ref(ctx, request.DeploymentID))
	return RestartDeployment202JSONResponse{ID: restart.ID, DeploymentID: request.DeploymentID, RevisionID: restart.Revision}, err
}

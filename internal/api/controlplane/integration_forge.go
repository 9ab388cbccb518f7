package controlplane

import "context"

// This file serves the operations of the GitHub App under the names that later clients use:
// each operation calls the operation that it renames, and gives the same answer.

// ListForgeGithubIntegrations is ListGithubIntegrations.
func (s server) ListForgeGithubIntegrations(ctx context.Context, _ ListForgeGithubIntegrationsRequestObject) (ListForgeGithubIntegrationsResponseObject, error) {
	answer, err := s.ListGithubIntegrations(ctx, ListGithubIntegrationsRequestObject{})
	same, _ := answer.(ListGithubIntegrations200JSONResponse)
	return ListForgeGithubIntegrations200JSONResponse(same), err
}

// ListForgeGithubRepositories is ListGithubRepositories.
func (s server) ListForgeGithubRepositories(ctx context.Context, request ListForgeGithubRepositoriesRequestObject) (ListForgeGithubRepositoriesResponseObject, error) {
	answer, err := s.ListGithubRepositories(ctx, ListGithubRepositoriesRequestObject(request))
	same, _ := answer.(ListGithubRepositories200JSONResponse)
	return ListForgeGithubRepositories200JSONResponse(same), err
}

// ListForgeInstallations is ListInstallations.
func (s server) ListForgeInstallations(ctx context.Context, request ListForgeInstallationsRequestObject) (ListForgeInstallationsResponseObject, error) {
	answer, err := s.ListInstallations(ctx, ListInstallationsRequestObject{Params: ListInstallationsParams(request.Params)})
	same, _ := answer.(ListInstallations200JSONResponse)
	return ListForgeInstallations200JSONResponse(same), err
}

// GetForgeInstallation is GetInstallation.
func (s server) GetForgeInstallation(ctx context.Context, request GetForgeInstallationRequestObject) (GetForgeInstallationResponseObject, error) {
	answer, err := s.GetInstallation(ctx, GetInstallationRequestObject(request))
	same, _ := answer.(GetInstallation200JSONResponse)
	return GetForgeInstallation200JSONResponse(same), err
}

// ListForgeInstallationRepositories is ListInstallationRepositories.
func (s server) ListForgeInstallationRepositories(ctx context.Context, request ListForgeInstallationRepositoriesRequestObject) (ListForgeInstallationRepositoriesResponseObject, error) {
	answer, err := s.ListInstallationRepositories(ctx, ListInstallationRepositoriesRequestObject{IntegrationID: request.IntegrationID, Params: ListInstallationRepositoriesParams(request.Params)})
	same, _ := answer.(ListInstallationRepositories200JSONResponse)
	return ListForgeInstallationRepositories200JSONResponse(same), err
}

// CreateForgeInstallationLink is CreateInstallationLink.
func (s server) CreateForgeInstallationLink(ctx context.Context, _ CreateForgeInstallationLinkRequestObject) (CreateForgeInstallationLinkResponseObject, error) {
	answer, err := s.CreateInstallationLink(ctx, CreateInstallationLinkRequestObject{})
	same, _ := answer.(CreateInstallationLink200JSONResponse)
	return CreateForgeInstallationLink200JSONResponse(same), err
}

// DeleteForgeInstallation is DeleteInstallation.
func (s server) DeleteForgeInstallation(ctx context.Context, request DeleteForgeInstallationRequestObject) (DeleteForgeInstallationResponseObject, error) {
	_, err := s.DeleteInstallation(ctx, DeleteInstallationRequestObject(request))
	return DeleteForgeInstallation204Response{}, err
}

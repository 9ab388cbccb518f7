package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/record/record"
)

// ListGithubIntegrations lists the workspace's installations of the GitHub App.
func (s server) ListGithubIntegrations(ctx context.Context, _ ListGithubIntegrationsRequestObject) (ListGithubIntegrationsResponseObject, error) {
	installations, err := s.Integrations.Installations(ctx, auth.Workspace(ctx))
	return ListGithubIntegrations200JSONResponse(web.ShowAll(installations, showInstallation)), err
}

// ListGithubRepositories lists the repositories that an installation may reach.
func (s server) ListGithubRepositories(ctx context.Context, request ListGithubRepositoriesRequestObject) (ListGithubRepositoriesResponseObject, error) {
	repositories, err := s.Integrations.Repositories(ctx, integrationRef(ctx, request.IntegrationID))
	return ListGithubRepositories200JSONResponse(web.ShowAll(repositories, showRepository)), err
}

// ListInstallations lists the workspace's installations of the GitHub App, by pages.
func (s server) ListInstallations(ctx context.Context, request ListInstallationsRequestObject) (ListInstallationsResponseObject, error) {
	p := request.Params
	page, err := s.Integrations.InstallationPage(ctx, auth.Workspace(ctx), record.Window{Limit: pageSize(p.PageSize), Cursor: value(p.Cursor)})
	return ListInstallations200JSONResponse{Items: web.ShowAll(page.Items, showInstallation), NextCursor: optional.Of(page.Cursor)}, err
}

// ListInstallationRepositories lists the repositories that an installation may reach, by pages.
func (s server) ListInstallationRepositories(ctx context.Context, request ListInstallationRepositoriesRequestObject) (ListInstallationRepositoriesResponseObject, error) {
	p := request.Params
	repositories, next, err := s.Integrations.RepositoryPage(ctx, integrationRef(ctx, request.IntegrationID), pageSize(p.PageSize), value(p.Cursor))
	return ListInstallationRepositories200JSONResponse{Items: web.ShowAll(repositories, showRepository), NextCursor: optional.Of(next)}, err
}

// GetInstallation reads an installation.
func (s server) GetInstallation(ctx context.Context, request GetInstallationRequestObject) (GetInstallationResponseObject, error) {
	i, err := s.Integrations.GetInstallation(ctx, integrationRef(ctx, request.IntegrationID))
	return GetInstallation200JSONResponse(showInstallation(i)), err
}

// DeleteInstallation takes an installation from the workspace.
func (s server) DeleteInstallation(ctx context.Context, request DeleteInstallationRequestObject) (DeleteInstallationResponseObject, error) {
	err := s.Integrations.Uninstall(ctx, integrationRef(ctx, request.IntegrationID))
	return DeleteInstallation204Response{}, err
}

// ListGitCredentials lists the workspace's credentials for git hosts.
func (s server) ListGitCredentials(ctx context.Context, request ListGitCredentialsRequestObject) (ListGitCredentialsResponseObject, error) {
	p := request.Params
	page, err := s.Integrations.CredentialPage(ctx, auth.Workspace(ctx), record.Window{Limit: pageSize(p.PageSize), Cursor: value(p.Cursor)})
	return ListGitCredentials200JSONResponse{Items: web.ShowAll(page.Items, showCredential), NextCursor: optional.Of(page.Cursor)}, err
}

// CreateGitCredential creates credentials for a git host.
func (s server) CreateGitCredential(ctx context.Context, request CreateGitCredentialRequestObject) (CreateGitCredentialResponseObject, error) {
	body := request.Body
	c, err := s.Integrations.CreateCredential(ctx, integration.NewCredential{
		Workspace: auth.Workspace(ctx), Host: body.Host, User: body.User, Token: body.Token,
	}, web.StoreAnswer(ctx, func(c integration.Credential) (web.Send, string, int64, error) {
		return CreateGitCredential201JSONResponse(showCredential(c)).VisitCreateGitCredentialResponse, "", 0, nil
	})...)
	return CreateGitCredential201JSONResponse(showCredential(c)), err
}

// GetGitCredential reads credentials for a git host.
func (s server) GetGitCredential(ctx context.Context, request GetGitCredentialRequestObject) (GetGitCredentialResponseObject, error) {
	c, err := s.Integrations.GetCredential(ctx, integrationRef(ctx, request.IntegrationID))
	return GetGitCredential200JSONResponse(showCredential(c)), err
}

// PatchGitCredential changes credentials for a git host.
func (s server) PatchGitCredential(ctx context.Context, request PatchGitCredentialRequestObject) (PatchGitCredentialResponseObject, error) {
	c, err := s.Integrations.PatchCredential(ctx, integrationRef(ctx, request.IntegrationID), integration.CredentialPatch{
		User: request.Body.User, Token: request.Body.Token,
	})
	return PatchGitCredential200JSONResponse(showCredential(c)), err
}

// DeleteGitCredential deletes credentials for a git host.
func (s server) DeleteGitCredential(ctx context.Context, request DeleteGitCredentialRequestObject) (DeleteGitCredentialResponseObject, error) {
	err := s.Integrations.DeleteCredential(ctx, integrationRef(ctx, request.IntegrationID))
	return DeleteGitCredential204Response{}, err
}

func integrationRef(ctx context.Context, integrationID string) integration.Ref {
	return integration.Ref{Workspace: auth.Workspace(ctx), Integration: integrationID}
}

func showInstallation(i integration.Installation) GithubIntegration {
	return GithubIntegration{ID: i.Integration, InstallationID: i.InstallationID, Name: i.Name}
}

func showRepository(r integration.Repository) GithubRepository {
	return GithubRepository{HostIntegrationID: r.Integration, ID: r.ID, Name: r.Name, Owner: r.Owner, URL: r.URL, DefaultBranch: r.DefaultBranch}
}

func showCredential(c integration.Credential) GitCredential {
	return GitCredential{ID: c.Integration, Host: c.Host, User: c.User, CreatedAt: clock.Format(c.Created), UpdatedAt: clock.Format(c.Updated)}
}

package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/auth"
	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/table"
)

// GetOK answers that the server takes requests.
func (s server) GetOK(context.Context, GetOKRequestObject) (GetOKResponseObject, error) {
	return GetOK200JSONResponse{Ok: true}, nil
}

// CreateDeployment creates a deployment and its first revision.
func (s server) CreateDeployment(ctx context.Context, request CreateDeploymentRequestObject) (CreateDeploymentResponseObject, error) {
	body := request.Body
	d, err := s.Deployments.Create(ctx, deployment.NewDeployment{
		Workspace:      auth.Workspace(ctx),
		Name:           body.Name,
		Source:         revision.Source(body.Source),
		SourceConfig:   sourceConfig(&body.SourceConfig),
		RevisionConfig: revisionConfig(&body.SourceRevisionConfig),
		Secrets:        secrets(body.Secrets),
	})
	if err != nil {
		return nil, err
	}
	shown, err := s.show(ctx, d)
	return CreateDeployment201JSONResponse(shown), err
}

// GetDeployment reads a deployment.
func (s server) GetDeployment(ctx context.Context, request GetDeploymentRequestObject) (GetDeploymentResponseObject, error) {
	d, err := s.Deployments.Get(ctx, ref(ctx, request.DeploymentID))
	if err != nil {
		return nil, err
	}
	shown, err := s.show(ctx, d)
	return GetDeployment200JSONResponse(shown), err
}

// ListDeployments lists the workspace's deployments, newest first.
func (s server) ListDeployments(ctx context.Context, request ListDeploymentsRequestObject) (ListDeploymentsResponseObject, error) {
	window := window(request.Params.Limit, request.Params.Offset)
	found, err := s.Deployments.List(ctx, auth.Workspace(ctx), window)
	if err != nil {
		return nil, err
	}
	list := DeploymentsList{Resources: make([]Deployment, len(found)), Offset: window.Offset + len(found)}
	for i, d := range found {
		if list.Resources[i], err = s.show(ctx, d); err != nil {
			return nil, err
		}
	}
	return ListDeployments200JSONResponse(list), nil
}

// PatchDeployment changes a deployment, and makes a revision where that is asked for.
func (s server) PatchDeployment(ctx context.Context, request PatchDeploymentRequestObject) (PatchDeploymentResponseObject, error) {
	body := request.Body
	patch := deployment.Patch{Name: body.Name, Source: (*revision.Source)(body.Source), AgentURL: s.AgentURL(request.DeploymentID)}
	if body.SourceConfig != nil {
		patch.SourceConfig = sourceConfig(body.SourceConfig)
	}
	if body.SourceRevisionConfig != nil {
		patch.RevisionConfig = revisionConfig(body.SourceRevisionConfig)
	}
	if body.Secrets != nil {
		replaced := secrets(*body.Secrets)
		patch.Secrets = &replaced
	}
	d, err := s.Deployments.Patch(ctx, ref(ctx, request.DeploymentID), patch)
	if err != nil {
		return nil, err
	}
	shown, err := s.show(ctx, d)
	return PatchDeployment200JSONResponse(shown), err
}

// DeleteDeployment deletes a deployment; its teardown goes on afterwards.
func (s server) DeleteDeployment(ctx context.Context, request DeleteDeploymentRequestObject) (DeleteDeploymentResponseObject, error) {
	if err := s.Deployments.Delete(ctx, ref(ctx, request.DeploymentID)); err != nil {
		return nil, err
	}
	return DeleteDeployment204Response{}, nil
}

// show is a deployment as the interface has it.
func (s server) show(ctx context.Context, d deployment.Deployment) (Deployment, error) {
	opened, err := s.Deployments.Secrets(ctx, d.Ref, d.Secrets)
	if err != nil {
		return Deployment{}, err
	}
	shown := Deployment{
		ID:               d.Deployment,
		Name:             d.Name,
		Source:           Source(d.Source),
		SourceConfig:     s.showSourceConfig(d),
		Secrets:          make([]Secret, len(opened)),
		Status:           DeploymentStatus(d.Status),
		LatestRevisionID: nullable(d.Latest),
		ActiveRevisionID: nullable(d.Active),
		CreatedAt:        clock.Format(d.Created),
		UpdatedAt:        clock.Format(d.Updated),
		SourceRevisionConfig: SourceRevisionConfig{
			RepoRef: d.RevisionConfig.RepoRef, FrameworkConfigPath: d.RevisionConfig.ConfigPath, ImageURI: d.RevisionConfig.ImageURI,
			RepoCommitSha: nullable(d.CommitSHA),
		},
	}
	for i, secret := range opened {
		shown.Secrets[i] = Secret(secret)
	}
	return shown, nil
}

func (s server) showSourceConfig(d deployment.Deployment) SourceConfig {
	c := d.SourceConfig
	shown := SourceConfig{
		IntegrationID: c.IntegrationID, RepoURL: c.RepoURL, DeploymentType: (*DeploymentType)(c.DeploymentType),
		BuildOnPush: c.BuildOnPush, CustomURL: c.CustomURL, ResourceSpec: c.ResourceSpec, ListenerID: c.ListenerID,
		InstallCommand: c.InstallCommand, BuildCommand: c.BuildCommand,
	}
	if c.ListenerConfig != nil {
		shown.ListenerConfig = &ListenerConfig{K8SNamespace: c.ListenerConfig.K8sNamespace}
	}
	if shown.CustomURL == nil {
		url := s.AgentURL(d.Deployment)
		shown.CustomURL = &url
	}
	return shown
}

func sourceConfig(c *SourceConfigRequest) deployment.SourceConfig {
	config := deployment.SourceConfig{
		IntegrationID: c.IntegrationID, RepoURL: c.RepoURL, DeploymentType: (*string)(c.DeploymentType),
		BuildOnPush: c.BuildOnPush, CustomURL: c.CustomURL, ListenerID: c.ListenerID,
		InstallCommand: c.InstallCommand, BuildCommand: c.BuildCommand,
	}
	if string(c.ResourceSpec) != "null" {
		config.ResourceSpec = c.ResourceSpec
	}
	if c.ListenerConfig != nil {
		config.ListenerConfig = &deployment.ListenerConfig{K8sNamespace: c.ListenerConfig.K8SNamespace}
	}
	return config
}

func revisionConfig(c *SourceRevisionConfigRequest) revision.Config {
	return revision.Config{RepoRef: c.RepoRef, ConfigPath: c.FrameworkConfigPath, ImageURI: c.ImageURI}
}

func secrets(sent []Secret) []deployment.Secret {
	taken := make([]deployment.Secret, len(sent))
	for i, secret := range sent {
		taken[i] = deployment.Secret(secret)
	}
	return taken
}

func ref(ctx context.Context, deploymentID string) deployment.Ref {
	return deployment.Ref{Workspace: auth.Workspace(ctx), Deployment: deploymentID}
}

// defaultLimit is how many resources a list returns unless told otherwise.
const defaultLimit = 20

func window(limit, offset *int) table.Window {
	w := table.Window{Limit: defaultLimit}
	if limit != nil {
		w.Limit = *limit
	}
	if offset != nil {
		w.Offset = *offset
	}
	return w
}

// nullable is null for what is not there yet.
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

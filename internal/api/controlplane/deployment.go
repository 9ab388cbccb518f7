package controlplane

import (
	"context"
	"errors"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// GetOK answers that the server takes requests, or the reason why it does not take all of them.
func (s server) GetOK(context.Context, GetOKRequestObject) (GetOKResponseObject, error) {
	if s.Room != nil {
		if err := s.Room(); err != nil {
			return GetOK200JSONResponse{Ok: false, Detail: new(err.Error())}, nil //nolint:nilerr // it is the answer
		}
	}
	return GetOK200JSONResponse{Ok: true}, nil
}

// CreateDeployment creates a deployment and its first revision.
func (s server) CreateDeployment(ctx context.Context, request CreateDeploymentRequestObject) (CreateDeploymentResponseObject, error) {
	body := request.Body
	validateOnly := value(request.Params.ValidateOnly)
	d, err := s.Deployments.Create(ctx, deployment.NewDeployment{
		Workspace:      auth.Workspace(ctx),
		Name:           body.Name,
		Source:         revision.Source(body.Source),
		SourceConfig:   sourceConfig(&body.SourceConfig),
		RevisionConfig: revisionConfig(&body.SourceRevisionConfig),
		Secrets:        secrets(body.Secrets),
		Options: deployment.Options{
			AutoRollback: body.AutoRollback, ReadinessTimeout: body.ReadinessTimeoutSeconds, DisplayName: body.DisplayName,
			CanaryPercent: body.CanaryPercent, CanarySeconds: body.CanarySeconds,
		},
		SecretReferences: secretReferences(body.SecretReferences),
		ValidateOnly:     validateOnly,
		Notes: s.storeDeploymentAnswer(ctx, func(shown Deployment) web.Send {
			return CreateDeployment201JSONResponse(shown).VisitCreateDeploymentResponse
		}),
	})
	if err != nil {
		return nil, err
	}
	shown, err := s.show(ctx, d)
	if validateOnly {
		return CreateDeployment200JSONResponse(shown), err
	}
	web.ShowVersion(ctx, d.Deployment, d.Version())
	return CreateDeployment201JSONResponse(shown), err
}

// GetDeployment reads a deployment.
func (s server) GetDeployment(ctx context.Context, request GetDeploymentRequestObject) (GetDeploymentResponseObject, error) {
	d, err := s.Deployments.Get(ctx, ref(ctx, request.DeploymentID))
	shown, err := s.showCurrent(ctx, d, err)
	return GetDeployment200JSONResponse(shown), err
}

// PatchDeployment changes a deployment, and makes a revision if the request asks for it.
func (s server) PatchDeployment(ctx context.Context, request PatchDeploymentRequestObject) (PatchDeploymentResponseObject, error) {
	patch := s.patch(ctx, request.DeploymentID, request.Body)
	patch.ValidateOnly, patch.Expect = value(request.Params.ValidateOnly), web.ExpectedVersionsOf(ctx, request.DeploymentID)
	patch.Notes = s.storeDeploymentAnswer(ctx, func(shown Deployment) web.Send {
		return PatchDeployment200JSONResponse(shown).VisitPatchDeploymentResponse
	})
	shown, err := s.patched(ctx, request.DeploymentID, patch)
	return PatchDeployment200JSONResponse(shown), err
}

// patched changes a deployment, and shows it.
func (s server) patched(ctx context.Context, deploymentID string, patch deployment.Patch) (Deployment, error) {
	d, err := s.Deployments.Patch(ctx, ref(ctx, deploymentID), patch)
	if err == nil && patch.ValidateOnly {
		return s.show(ctx, d)
	}
	return s.showCurrent(ctx, d, err)
}

func (s server) patch(ctx context.Context, deploymentID string, body *DeploymentPatchRequest) deployment.Patch {
	patch := deployment.Patch{AgentURL: s.AgentURL(ctx, deploymentID)}
	if body == nil {
		return patch
	}
	patch.Name, patch.Source, patch.RevisionSource = body.Name, (*revision.Source)(body.Source), (*revision.Source)(body.RevisionSource)
	patch.Options = deployment.Options{
		AutoRollback: body.AutoRollback, ReadinessTimeout: body.ReadinessTimeoutSeconds, DisplayName: body.DisplayName,
		CanaryPercent: body.CanaryPercent, CanarySeconds: body.CanarySeconds,
	}
	if body.SourceConfig != nil {
		patch.SourceConfig = sourceConfig(body.SourceConfig)
	}
	if body.SourceRevisionConfig != nil {
		patch.RevisionConfig = revisionConfig(body.SourceRevisionConfig)
	}
	patch.RevisionConfig.TrackedPackages = body.TrackedPackages
	if body.Secrets != nil {
		patch.Secrets = new(secrets(*body.Secrets))
	}
	if body.SecretReferences != nil {
		patch.SecretReferences = new(secretReferences(*body.SecretReferences))
	}
	return patch
}

// DeleteDeployment deletes a deployment; its teardown goes on afterwards.
func (s server) DeleteDeployment(ctx context.Context, request DeleteDeploymentRequestObject) (DeleteDeploymentResponseObject, error) {
	p := request.Params
	err := s.Deployments.Delete(ctx, ref(ctx, request.DeploymentID), deployment.Deletion{
		TracingProject: value(p.DeleteTracingProject), Force: value(p.Force), Window: seconds(value(p.RecoveryWindowSeconds)),
		Expect: web.ExpectedVersionsOf(ctx, request.DeploymentID),
	})
	return DeleteDeployment204Response{}, err
}

// DeleteDeployments deletes several deployments, each as in a request of its own.
func (s server) DeleteDeployments(ctx context.Context, request DeleteDeploymentsRequestObject) (DeleteDeploymentsResponseObject, error) {
	p := request.Params
	how := deployment.Deletion{TracingProject: value(p.DeleteTracingProject), Force: value(p.Force), Window: seconds(value(p.RecoveryWindowSeconds))}
	done := DeploymentsDeleted{DeploymentIds: []string{}, Failed: []DeploymentNotDeleted{}}
	missing := 0
	for _, id := range p.DeploymentIds {
		err := s.Deployments.Delete(ctx, ref(ctx, id), how)
		known, ok := errors.AsType[*fault.Error](err)
		switch {
		case err == nil:
			done.DeploymentIds = append(done.DeploymentIds, id)
		case ok:
			if known.Kind == fault.NotFound {
				missing++
			}
			done.Failed = append(done.Failed, DeploymentNotDeleted{DeploymentID: id, Reason: string(known.Kind), Detail: known.Message})
		case ctx.Err() != nil:
			return nil, err
		default:
			done.Failed = append(done.Failed, DeploymentNotDeleted{DeploymentID: id, Reason: "internal", Detail: s.unforeseen(ctx, err)})
		}
	}
	switch len(p.DeploymentIds) {
	case len(done.DeploymentIds):
		return DeleteDeployments200JSONResponse(done), nil
	case missing:
		return nil, fault.New(fault.NotFound, "None of these deployments was found.")
	default:
		return DeleteDeployments207JSONResponse(done), nil
	}
}

// UndeleteDeployment undoes the deletion of a deployment.
func (s server) UndeleteDeployment(ctx context.Context, request UndeleteDeploymentRequestObject) (UndeleteDeploymentResponseObject, error) {
	d, err := s.Deployments.Undelete(ctx, ref(ctx, request.DeploymentID), web.ExpectedVersionsOf(ctx, request.DeploymentID))
	shown, err := s.showCurrent(ctx, d, err)
	return UndeleteDeployment200JSONResponse(shown), err
}

// GetTracingProject reads a deployment's tracing project.
func (s server) GetTracingProject(ctx context.Context, request GetTracingProjectRequestObject) (GetTracingProjectResponseObject, error) {
	p, err := s.Deployments.TracingProject(ctx, ref(ctx, request.DeploymentID))
	return GetTracingProject200JSONResponse{
		ID: p.ID, Name: p.Name, DeploymentID: optional.Of(p.Deployment), CreatedAt: clock.Format(p.Created), UpdatedAt: clock.Format(p.Updated),
	}, err
}

// showCurrent shows a deployment and its version, unless it could not be read or changed.
func (s server) showCurrent(ctx context.Context, d deployment.Deployment, err error) (Deployment, error) {
	if err != nil {
		return Deployment{}, err
	}
	web.ShowVersion(ctx, d.Deployment, d.Version())
	return s.show(ctx, d)
}

// show converts a deployment to the shape of the API.
func (s server) show(ctx context.Context, d deployment.Deployment) (Deployment, error) {
	secrets, err := s.showSecrets(ctx, d)
	if err != nil {
		return Deployment{}, err
	}
	return Deployment{
		ID:                      d.Deployment,
		TenantID:                d.Workspace,
		Name:                    d.Name,
		Source:                  Source(d.Source),
		SourceConfig:            s.showSourceConfig(ctx, d),
		Secrets:                 secrets,
		Status:                  DeploymentStatus(d.Status),
		PurgeAt:                 clock.Nullable(d.UndeleteUntil()),
		LatestRevisionID:        optional.Of(d.Latest),
		ActiveRevisionID:        optional.Of(d.Active),
		ImageVersion:            optional.Of(d.ImageVersion),
		SecretReferences:        showSecretReferences(d.SecretReferences),
		AutoRollback:            d.AutoRollback,
		DisplayName:             d.DisplayName,
		ComputeTier:             d.ComputeTier,
		DatabaseTier:            d.DatabaseTier,
		CreatedAt:               clock.Format(d.Created),
		UpdatedAt:               clock.Format(d.Updated),
		ReadinessTimeoutSeconds: d.ReadinessTimeout,
		CanaryPercent:           d.CanaryPercent,
		CanarySeconds:           d.CanarySeconds,
		SourceRevisionConfig:    showRevisionConfig(d.RevisionConfig, d.Source.Commit(d.CommitSHA)),
	}, nil
}

func showRevisionConfig(c revision.Config, commit string) SourceRevisionConfig {
	return SourceRevisionConfig{
		RepoRef: c.RepoRef, FrameworkConfigPath: c.ConfigPath, ImageURI: c.ImageURI, SourceTarballPath: c.TarballPath, TrackedPackages: c.TrackedPackages,
		RepoCommitSha: optional.Of(commit),
	}
}

// showSecrets returns a deployment's secrets; their values are visible only to callers that may
// change them.
func (s server) showSecrets(ctx context.Context, d deployment.Deployment) ([]Secret, error) {
	opened, err := s.Deployments.Secrets(ctx, d.Ref, d.Secrets)
	if err != nil {
		return nil, err
	}
	seesSecrets := !s.RedactSecrets && auth.Of(ctx).May(workspace.DeploymentsUpdate)
	shown := make([]Secret, len(opened))
	for i, secret := range opened {
		shown[i] = Secret(secret)
		if !seesSecrets {
			shown[i].Value = deployment.Redacted
		}
	}
	return shown, nil
}

func (s server) showSourceConfig(ctx context.Context, d deployment.Deployment) SourceConfig {
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
		shown.CustomURL = new(s.AgentURL(ctx, d.Deployment))
	}
	return shown
}

func sourceConfig(c *SourceConfigRequest) deployment.SourceConfig {
	config := deployment.SourceConfig{
		IntegrationID: c.IntegrationID, RepoURL: c.RepoURL, DeploymentType: (*string)(c.DeploymentType),
		BuildOnPush: c.BuildOnPush, CustomURL: c.CustomURL, ListenerID: c.ListenerID,
		InstallCommand: c.InstallCommand, BuildCommand: c.BuildCommand, ResourceSpec: state.Present(c.ResourceSpec),
	}
	if c.ListenerConfig != nil {
		config.ListenerConfig = &deployment.ListenerConfig{K8sNamespace: c.ListenerConfig.K8SNamespace}
	}
	return config
}

func revisionConfig(c *SourceRevisionConfigRequest) revision.Config {
	return revision.Config{RepoRef: c.RepoRef, ConfigPath: c.FrameworkConfigPath, ImageURI: c.ImageURI, TarballPath: c.SourceTarballPath}
}

func secrets(sent []Secret) []deployment.Secret {
	return web.ShowAll(sent, func(s Secret) deployment.Secret { return deployment.Secret(s) })
}

func secretReferences(sent []SecretReference) []compute.SecretReference {
	return web.ShowAll(sent, func(r SecretReference) compute.SecretReference { return compute.SecretReference(r) })
}

func showSecretReferences(references []compute.SecretReference) []SecretReference {
	return web.ShowAll(references, func(r compute.SecretReference) SecretReference { return SecretReference(r) })
}

func ref(ctx context.Context, deploymentID string) deployment.Ref {
	return deployment.Ref{Workspace: auth.Workspace(ctx), Deployment: deploymentID}
}

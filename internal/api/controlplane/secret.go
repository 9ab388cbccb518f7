package controlplane

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
)

// ListSecrets lists the workspace's secrets, by name.
func (s server) ListSecrets(ctx context.Context, request ListSecretsRequestObject) (ListSecretsResponseObject, error) {
	query := window(request.Params.Limit, request.Params.Offset, request.Params.Cursor)
	page, err := s.Deployments.WorkspaceSecrets().List(ctx, auth.Workspace(ctx), query)
	return ListSecrets200JSONResponse{
		Resources: web.ShowAll(page.Items, showSecret), Offset: query.Offset + len(page.Items), Cursor: optional.Of(page.Cursor),
	}, err
}

// CreateSecret creates a secret.
func (s server) CreateSecret(ctx context.Context, request CreateSecretRequestObject) (CreateSecretResponseObject, error) {
	created, err := s.Deployments.WorkspaceSecrets().Create(ctx, secretRef(ctx, request.Body.Name), request.Body.Data, web.StoreAnswer(ctx, func(secret workspacesecret.Secret) (web.Send, string, int64, error) {
		return CreateSecret201JSONResponse(showSecret(secret)).VisitCreateSecretResponse, secret.Identity(), secret.Version(), nil
	})...)
	web.ShowVersion(ctx, created.Identity(), created.Version())
	return CreateSecret201JSONResponse(showSecret(created)), err
}

// GetSecret reads a secret, and the deployments that refer to it.
func (s server) GetSecret(ctx context.Context, request GetSecretRequestObject) (GetSecretResponseObject, error) {
	stored, err := s.Deployments.WorkspaceSecrets().Get(ctx, secretRef(ctx, request.SecretName))
	if err != nil {
		return nil, err
	}
	users, err := s.Deployments.WorkspaceSecrets().Users(ctx, stored.Ref)
	shown := showSecret(stored)
	shown.DeploymentIds = new(web.ShowAll(users, func(user workspacesecret.User) string { return user.Deployment }))
	web.ShowVersion(ctx, stored.Identity(), stored.Version())
	return GetSecret200JSONResponse(shown), err
}

// PatchSecret sets and removes values of a secret.
func (s server) PatchSecret(ctx context.Context, request PatchSecretRequestObject) (PatchSecretResponseObject, error) {
	patch := workspacesecret.Patch{Data: request.Body.Data, Expect: web.ExpectedVersions(ctx)}
	after, changed, err := s.Deployments.WorkspaceSecrets().Patch(ctx, secretRef(ctx, request.SecretName), patch)
	if err != nil {
		return nil, err
	}
	shown, restarted := showSecret(after), []string{}
	if restart := request.Body.Restart; restart == nil || *restart {
		if restart != nil {
			// A repeated request finds the values changed already.
			changed = slices.Collect(maps.Keys(request.Body.Data))
		}
		err = s.Deployments.RestartUsers(ctx, after.Ref, changed, func(deployment string, err error) {
			if err == nil {
				restarted = append(restarted, deployment)
				return
			}
			shown.FailedRestarts = append(shown.FailedRestarts, DeploymentNotRestarted{DeploymentID: deployment, Detail: s.messageOf(ctx, err)})
		})
	}
	shown.RestartedDeploymentIds = &restarted
	web.ShowVersion(ctx, after.Identity(), after.Version())
	return PatchSecret200JSONResponse(shown), err
}

// messageOf is the message for a client about an error of a part of its request.
func (s server) messageOf(ctx context.Context, err error) string {
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known.Message
	}
	return s.unforeseen(ctx, err)
}

// DeleteSecret deletes a secret that has no references.
func (s server) DeleteSecret(ctx context.Context, request DeleteSecretRequestObject) (DeleteSecretResponseObject, error) {
	err := s.Deployments.WorkspaceSecrets().Delete(ctx, secretRef(ctx, request.SecretName), web.ExpectedVersions(ctx))
	return DeleteSecret204Response{}, err
}

// showSecret converts a secret to the shape of the interface.
func showSecret(of workspacesecret.Secret) WorkspaceSecret {
	return WorkspaceSecret{Name: of.Name, Keys: of.Keys, CreatedAt: clock.Format(of.Created), UpdatedAt: clock.Format(of.Updated)}
}

func secretRef(ctx context.Context, name string) workspacesecret.Ref {
	return workspacesecret.Ref{Workspace: auth.Workspace(ctx), Name: name}
}

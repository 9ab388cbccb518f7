package controlplane

import (
	"cmp"
	"context"
	"io"

	"github.com/slipway-run/slipway/internal/control/push"
)

// ReceiveGithubWebhook takes an event of the GitHub App.
func (s server) ReceiveGithubWebhook(ctx context.Context, request ReceiveGithubWebhookRequestObject) (ReceiveGithubWebhookResponseObject, error) {
	p := request.Params
	d := push.Delivery{Event: value(p.XGitHubEvent), ID: value(p.XGitHubDelivery), Signature: value(p.XHubSignature256)}
	err := s.Push.ExpectsApp(ctx, d)
	if err == nil {
		d.Body, err = io.ReadAll(request.Body)
	}
	if err == nil {
		err = s.Push.App(ctx, d)
	}
	return ReceiveGithubWebhook202Response{}, err
}

// ReceivePushHook takes a push of one repository, for one deployment.
func (s server) ReceivePushHook(ctx context.Context, request ReceivePushHookRequestObject) (ReceivePushHookResponseObject, error) {
	p := request.Params
	d := push.Delivery{Event: value(p.XGitHubEvent), ID: value(p.XGitHubDelivery), Signature: value(p.XHubSignature256)}
	if token := value(p.XGitlabToken); token != "" {
		// Only the key stays the same when the event is sent again; GitLab before version 17.4
		// sends no key.
		d = push.Delivery{Event: value(p.XGitlabEvent), ID: cmp.Or(value(p.IdempotencyKey), value(p.XGitlabEventUUID)), Token: token}
	}
	err := s.Push.Expects(ctx, request.WorkspaceID, request.DeploymentID, d)
	if err == nil {
		d.Body, err = io.ReadAll(request.Body)
	}
	if err == nil {
		err = s.Push.Deployment(ctx, request.WorkspaceID, request.DeploymentID, d)
	}
	return ReceivePushHook202Response{}, err
}

// GetPushHook returns the values to enter at the host of a deployment's repository.
func (s server) GetPushHook(ctx context.Context, request GetPushHookRequestObject) (GetPushHookResponseObject, error) {
	d, err := s.Deployments.Get(ctx, ref(ctx, request.DeploymentID))
	if err != nil {
		return nil, err
	}
	secret, err := s.Push.HookSecret(ctx, d.Workspace, d.Deployment)
	return GetPushHook200JSONResponse{
		URL: s.BaseURL(ctx) + "/v2/integrations/git/hooks/" + d.Workspace + "/" + d.Deployment, Secret: secret,
	}, err
}

package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// ListWebhooks lists the workspace's webhooks.
func (s server) ListWebhooks(ctx context.Context, _ ListWebhooksRequestObject) (ListWebhooksResponseObject, error) {
	webhooks, err := s.Webhooks.List(ctx, auth.Workspace(ctx))
	return ListWebhooks200JSONResponse{Resources: web.ShowAll(webhooks, func(w webhook.Webhook) Webhook { return showWebhook(w, "") })}, err
}

// CreateWebhook creates a webhook and shows its secret.
func (s server) CreateWebhook(ctx context.Context, request CreateWebhookRequestObject) (CreateWebhookResponseObject, error) {
	body := request.Body
	created, err := s.Webhooks.Create(ctx, webhook.NewWebhook{
		Workspace: auth.Workspace(ctx), URL: body.URL, Description: value(body.Description), Types: eventTypes(body.EventTypes),
		Disabled: !optional.Or(body.Enabled, true),
	}, web.StoreAnswer(ctx, func(created webhook.Created) (web.Send, string, int64, error) {
		return CreateWebhook201JSONResponse(showWebhook(created.Webhook, created.Secret)).VisitCreateWebhookResponse, created.Webhook.Webhook, created.Webhook.Version(), nil
	})...)
	web.ShowVersion(ctx, created.Webhook.Webhook, created.Webhook.Version())
	return CreateWebhook201JSONResponse(showWebhook(created.Webhook, created.Secret)), err
}

// GetWebhook reads a webhook.
func (s server) GetWebhook(ctx context.Context, request GetWebhookRequestObject) (GetWebhookResponseObject, error) {
	w, err := s.Webhooks.Get(ctx, webhookRef(ctx, request.WebhookID))
	web.ShowVersion(ctx, w.Webhook, w.Version())
	return GetWebhook200JSONResponse(showWebhook(w, "")), err
}

// PatchWebhook changes a webhook.
func (s server) PatchWebhook(ctx context.Context, request PatchWebhookRequestObject) (PatchWebhookResponseObject, error) {
	body := request.Body
	patch := webhook.Patch{URL: body.URL, Description: body.Description, Enabled: body.Enabled, Expect: web.ExpectedVersions(ctx)}
	if body.EventTypes != nil {
		patch.Types = new(eventTypes(body.EventTypes))
	}
	w, err := s.Webhooks.Patch(ctx, webhookRef(ctx, request.WebhookID), patch)
	web.ShowVersion(ctx, w.Webhook, w.Version())
	return PatchWebhook200JSONResponse(showWebhook(w, "")), err
}

// DeleteWebhook deletes a webhook.
func (s server) DeleteWebhook(ctx context.Context, request DeleteWebhookRequestObject) (DeleteWebhookResponseObject, error) {
	err := s.Webhooks.Delete(ctx, webhookRef(ctx, request.WebhookID), web.ExpectedVersions(ctx))
	return DeleteWebhook204Response{}, err
}

// RotateWebhookSecret gives a webhook another secret and shows it.
func (s server) RotateWebhookSecret(ctx context.Context, request RotateWebhookSecretRequestObject) (RotateWebhookSecretResponseObject, error) {
	w, secret, err := s.Webhooks.Rotate(ctx, webhookRef(ctx, request.WebhookID))
	web.ShowVersion(ctx, w.Webhook, w.Version())
	return RotateWebhookSecret200JSONResponse(showWebhook(w, secret)), err
}

// TestWebhook sends a webhook a test message without an event.
func (s server) TestWebhook(ctx context.Context, request TestWebhookRequestObject) (TestWebhookResponseObject, error) {
	d, err := s.Webhooks.Test(ctx, webhookRef(ctx, request.WebhookID))
	return TestWebhook202JSONResponse(showWebhookDelivery(d)), err
}

// ListWebhookDeliveries lists the messages that a webhook was sent.
func (s server) ListWebhookDeliveries(ctx context.Context, request ListWebhookDeliveriesRequestObject) (ListWebhookDeliveriesResponseObject, error) {
	p := request.Params
	page, err := s.Webhooks.Deliveries(ctx, webhookRef(ctx, request.WebhookID), record.Window{Limit: pageSize(p.Limit), Cursor: value(p.Cursor)})
	return ListWebhookDeliveries200JSONResponse{Resources: web.ShowAll(page.Items, showWebhookDelivery), Cursor: optional.Of(page.Cursor)}, err
}

// ReplayWebhookDelivery sends a message once more.
func (s server) ReplayWebhookDelivery(ctx context.Context, request ReplayWebhookDeliveryRequestObject) (ReplayWebhookDeliveryResponseObject, error) {
	d, err := s.Webhooks.Replay(ctx, webhookRef(ctx, request.WebhookID), request.DeliveryID)
	return ReplayWebhookDelivery202JSONResponse(showWebhookDelivery(d)), err
}

// showWebhook converts a webhook to the shape of the interface; secret is "" if it is not
// shown.
func showWebhook(w webhook.Webhook, secret string) Webhook {
	return Webhook{
		ID: w.Webhook, URL: w.URL, Description: w.Description, Enabled: w.Enabled, Secret: optional.Of(secret),
		EventTypes:     web.ShowAll(w.Types, func(t event.Type) EventType { return EventType(t) }),
		DisabledReason: optional.Of(w.Reason), FailingSince: clock.Nullable(w.Failing), CreatedAt: clock.Format(w.Created), UpdatedAt: clock.Format(w.Updated),
	}
}

func showWebhookDelivery(d webhook.Delivery) WebhookDelivery {
	shown := WebhookDelivery{
		ID: d.Delivery, MessageID: d.Message.ID, EventType: d.Message.Type, Status: string(d.Status), Attempts: d.Attempts, Failure: optional.Of(d.Failure),
		NextAttemptAt: clock.Nullable(d.Due), Payload: d.Message.Body, CreatedAt: clock.Format(d.Created), UpdatedAt: clock.Format(d.Updated),
	}
	if d.Response != 0 {
		shown.ResponseStatus = &d.Response
	}
	return shown
}

func eventTypes(sent []EventType) []event.Type {
	return web.ShowAll(sent, func(t EventType) event.Type { return event.Type(t) })
}

func webhookRef(ctx context.Context, id string) webhook.Ref {
	return webhook.Ref{Workspace: auth.Workspace(ctx), Webhook: id}
}

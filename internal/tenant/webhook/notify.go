package webhook

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Notify implements event.Subscribers. It makes a delivery for each pair of an event and a webhook
// that wants the event's type.
func (s *Store) Notify(ctx context.Context, workspace string, events []event.Event) (o record.Outbox, err error) {
	webhooks, err := s.List(ctx, workspace)
	if err != nil {
		return o, err
	}
	for _, e := range events {
		body := record.Encode(e.Payload())
		for _, w := range webhooks {
			if w.wants(e.Type) {
				o.Join(s.send(newDelivery(w.Workspace, w.Webhook, Sent{ID: e.ID, Type: string(e.Type), Body: body}, e.At)))
			}
		}
	}
	return o, nil
}

// send returns the write of a delivery, and the start of its workflow after the commit.
func (s *Store) send(d Delivery) record.Outbox {
	o := record.Write(d.put())
	o.Then(s.carry(d))
	return o
}

func newDelivery(workspace, log string, message Sent, now time.Time) Delivery {
	return Delivery{
		DeliveryRef: DeliveryRef{workspace, log, id.New(now)}, Created: now, Updated: now, Status: Pending, Due: now, version: 1,
		Message: message,
	}
}

// Test sends a test message to a webhook. The webhook must be enabled.
func (s *Store) Test(ctx context.Context, ref Ref) (Delivery, error) {
	w, err := s.Get(ctx, ref)
	if err != nil {
		return Delivery{}, err
	}
	if err := w.mustBeEnabled(); err != nil {
		return Delivery{}, err
	}
	now := s.Now()
	message := id.New(now)
	d := newDelivery(w.Workspace, w.Webhook, Sent{ID: message, Type: string(event.WebhookTest), Body: record.Encode(map[string]any{
		"id": message, "type": event.WebhookTest, "timestamp": clock.Format(now), "data": map[string]string{"webhook_id": w.Webhook},
	})}, now)
	return d, record.Commit(ctx, s.Table, s.send(d))
}

// Message is a notification to a URL that is not a registered webhook, such as a run's webhook.
type Message struct {
	Workspace string
	// Deployment is the deployment whose rules and headers the message has; "" for none.
	Deployment string
	// Log is the id of the object that the message is about. The delivery is stored under it.
	Log string
	// URL is the address to call. The caller has checked it with CheckURL.
	URL string
	// Type is the message's type, for the delivery's log.
	Type string
	// Body is JSON.
	Body []byte
}

// Send returns the delivery of a message. The caller adds it to the transaction that stores the
// reported change. If the delivery's workflow does not start, Rescue starts it later.
func (s *Store) Send(m Message) (record.Outbox, DeliveryRef) {
	now := s.Now()
	d := newDelivery(m.Workspace, m.Log, Sent{ID: id.New(now), Type: m.Type, Body: m.Body, URL: m.URL, Deployment: m.Deployment}, now)
	return s.send(d), d.DeliveryRef
}

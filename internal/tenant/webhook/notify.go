package webhook

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Notify implements event.Subscribers: it returns the writes of one delivery for each event and each webhook that wants it.
func (s *Store) Notify(ctx context.Context, workspace string, events []event.Event) ([]table.Write, func(context.Context), error) {
	webhooks, err := s.List(ctx, workspace)
	if err != nil {
		return nil, nil, err
	}
	var writes []table.Write
	var made []Delivery
	for _, e := range events {
		body := record.Encode(e.Payload())
		for _, w := range webhooks {
			if w.wants(e.Type) {
				d := w.deliver(Sent{ID: e.ID, Type: string(e.Type), Body: body}, e.At)
				writes, made = append(writes, d.put()), append(made, d)
			}
		}
	}
	return writes, func(ctx context.Context) {
		for _, d := range made {
			s.begin(context.WithoutCancel(ctx), d)
		}
	}, nil
}

// deliver makes a delivery to the webhook.
func (r Ref) deliver(message Sent, now time.Time) Delivery {
	return newDelivery(r.Workspace, r.Webhook, message, now)
}

func newDelivery(workspace, log string, message Sent, now time.Time) Delivery {
	return Delivery{
		DeliveryRef: DeliveryRef{workspace, log, id.New(now)}, Created: now, Updated: now, Status: Pending, Due: now, version: 1,
		Message: message,
	}
}

// Test sends a webhook a message that tells of nothing.
func (s *Store) Test(ctx context.Context, ref Ref) (Delivery, error) {
	w, err := s.Get(ctx, ref)
	if err != nil {
		return Delivery{}, err
	}
	if err := w.mustBeEnabled(); err != nil {
		return Delivery{}, err
	}
	now := s.now()
	message := id.New(now)
	d := w.deliver(Sent{ID: message, Type: string(event.WebhookTest), Body: record.Encode(map[string]any{
		"id": message, "type": event.WebhookTest, "timestamp": clock.Format(now), "data": map[string]string{"webhook_id": w.Webhook},
	})}, now)
	if err := s.table.Transact(ctx, d.put()); err != nil {
		return Delivery{}, err
	}
	s.begin(context.WithoutCancel(ctx), d)
	return d, nil
}

// Message is something that an address is told which is no webhook's.
type Message struct {
	Workspace string
	// Log is what the delivery is kept with, the id of what it tells of.
	Log string
	// URL is where to. It was checked by CheckURL.
	URL string
	// Type says what it is, for the delivery's log.
	Type string
	// Body is JSON.
	Body []byte
}

// Send returns the write of a message's delivery, for the transaction of what it tells of, and what begins the sending when that has succeeded. If begin is
// never called, Rescue does it.
func (s *Store) Send(m Message) (write table.Write, begin func(context.Context), sent DeliveryRef) {
	now := s.now()
	d := newDelivery(m.Workspace, m.Log, Sent{ID: id.New(now), Type: m.Type, Body: m.Body, URL: m.URL}, now)
	return d.put(), func(ctx context.Context) { s.begin(context.WithoutCancel(ctx), d) }, d.DeliveryRef
}

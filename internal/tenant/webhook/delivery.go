package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// Status is the state of a delivery.
type Status string

const (
	// Pending: it must be sent at its Due time. An attempt ends the delivery, or moves that
	// time.
	Pending Status = "pending"
	// Succeeded: an attempt was answered with 2xx. Terminal, until it is replayed.
	Succeeded Status = "succeeded"
	// Failed: the delivery was given up. Terminal, until it is replayed.
	Failed Status = "failed"
)

// transitions lists the statuses that may follow each status.
var transitions = map[Status][]Status{
	Pending:   {Pending, Succeeded, Failed},
	Succeeded: {Pending},
	Failed:    {Pending},
}

// DeliveryRef names a delivery. It is the input of the delivery's workflow.
type DeliveryRef struct {
	Workspace string `json:"workspace_id"`
	// Log is the webhook's id, or Message.Log of a Message.
	Log      string `json:"log_id"`
	Delivery string `json:"delivery_id"`
}

func (r DeliveryRef) key() table.Key { return keys.WebhookDelivery(r.Workspace, r.Log, r.Delivery) }

// Delivery is a message on its way to one address, or the result of sending it.
type Delivery struct {
	DeliveryRef
	Created, Updated time.Time
	Status           Status
	// Message is the message.
	Message Sent
	// Attempts is how often the message was sent since the delivery was made or last replayed,
	// Response is the status of the last answer, or 0 if there was no answer, and Failure says
	// why the last attempt failed.
	Attempts, Response int
	Failure            string
	// Due is the time of the next attempt, or zero if there is no next attempt.
	Due time.Time
	// round counts the workflows of the delivery.
	round   int64
	version int64
}

// Sent is the message that a delivery sends.
type Sent struct {
	// ID is the webhook-id: the same in every attempt, for receivers that take no message twice.
	ID   string `json:"id"`
	Type string `json:"type"`
	Body []byte `json:"body"`
	// URL is the address, if the message is not for a webhook. Deployment is the deployment that
	// such a message is about.
	URL        string `json:"url,omitempty"`
	Deployment string `json:"deployment,omitempty"`
}

const (
	kindDelivery = "webhook_delivery"
	attrStatus   = "status"
	attrAttempts = "attempts"
	attrResponse = "response"
	attrFailure  = "failure"
	attrDue      = "due"
	attrRound    = "round"

	// retention is how long a delivery stays in its log.
	retention = 30 * 24 * time.Hour
	// lease is how long after its time an attempt counts as missed.
	lease = 2 * time.Minute
)

// put is the write of a new delivery, which is due at once.
func (d Delivery) put() table.Write {
	put := record.New(d.key(), kindDelivery, d.Created, d.attrs(), record.Encode(d.Message))
	put.Item.Index, put.Item.Expires = d.dueAt(d.Created), d.Created.Add(retention)
	return put
}

func (d Delivery) attrs() table.Attrs {
	attrs := table.Attrs{
		attrStatus: string(d.Status), attrAttempts: int64(d.Attempts), attrResponse: int64(d.Response), attrFailure: d.Failure,
		attrDue: "", attrRound: d.round,
	}
	if d.Status == Pending {
		attrs[attrDue] = clock.Format(d.Due)
	}
	return attrs
}

func (d Delivery) dueAt(at time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.DueDeliveries.At(d.Delivery, at.Add(lease))}
}

// change returns the write of the delivery's next state, under the condition that the delivery
// has not changed since it was read.
func (d Delivery) change(now time.Time, next Delivery) table.Update {
	if !slices.Contains(transitions[d.Status], next.Status) {
		panic(fmt.Sprintf("webhook: a delivery that is %s may not become %s", d.Status, next.Status))
	}
	change := record.Change(d.key(), now, next.attrs(), table.Equals(record.Version, d.version))
	change.Index = map[table.Index]table.Key{table.ByDue: {}}
	switch {
	case next.Status == Pending:
		change.Index = d.dueAt(next.Due)
	case d.Message.URL != "": // it cannot be replayed, and its object may be deleted before it
		change.Body = record.Encode(Sent{ID: d.Message.ID, Type: d.Message.Type})
	}
	return change
}

func decodeDelivery(ref DeliveryRef, item *table.Item) (Delivery, error) {
	r := record.Read(item, kindDelivery)
	d := Delivery{
		DeliveryRef: ref, Status: Status(item.Text(attrStatus)), Attempts: int(item.Int(attrAttempts)), Response: int(item.Int(attrResponse)),
		Failure: item.Text(attrFailure), round: item.Int(attrRound), version: item.Int(record.Version),
		Due: r.Time(attrDue), Created: r.Created(), Updated: r.Updated(),
	}
	r.Decode(&d.Message)
	return d, r.Err()
}

// GetDelivery returns a delivery; an unknown delivery is a fault.NotFound.
func (s *Store) GetDelivery(ctx context.Context, ref DeliveryRef) (Delivery, error) {
	missing := fault.New(fault.NotFound, "Delivery ID %s not found.", ref.Delivery)
	return record.One(ctx, s.Table, "delivery", ref.key(), missing, record.In(ref, decodeDelivery))
}

// Deliveries returns a page of a webhook's deliveries, the newest first.
func (s *Store) Deliveries(ctx context.Context, ref Ref, window record.Window) (record.Page[Delivery], error) {
	if _, err := s.Get(ctx, ref); err != nil {
		return record.Page[Delivery]{}, err
	}
	return s.logged(ctx, ref, window)
}

// logged returns a page of the deliveries of a webhook, or of the messages with this Message.Log.
func (s *Store) logged(ctx context.Context, ref Ref, window record.Window) (record.Page[Delivery], error) {
	query := keys.WebhookDeliveries(ref.Workspace, ref.Webhook)
	query.Reverse = true
	return record.List(ctx, s.Table, "deliveries", query, window, func(item *table.Item) (Delivery, bool, error) {
		d, err := decodeDelivery(ref.Delivery(item.Key.SK), item)
		return d, true, err
	})
}

// Unsent says why the last message with this Message.Log has not arrived yet. It returns "" if the
// message has arrived, if no attempt has been made, or if there is no message.
func (s *Store) Unsent(ctx context.Context, workspace, log string) (string, error) {
	page, err := s.logged(ctx, Ref{Workspace: workspace, Webhook: log}, record.Window{Limit: 1})
	if err != nil || len(page.Items) == 0 || page.Items[0].Failure == "" {
		return "", err
	}
	d := page.Items[0]
	next := "There will be no other attempt."
	if d.Status == Pending {
		next = "The next attempt is at " + clock.Format(d.Due) + "."
	}
	return fmt.Sprintf("Attempt %d to call the webhook has failed. %s %s", d.Attempts, d.Failure, next), nil
}

// Replay sends the message of an ended delivery once more, with the same webhook-id. A
// delivery that is still on its way is a fault.Conflict.
func (s *Store) Replay(ctx context.Context, ref Ref, deliveryID string) (Delivery, error) {
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (d Delivery, o record.Outbox, err error) {
		w, err := s.Get(ctx, ref)
		if err == nil {
			err = w.mustBeEnabled()
		}
		if err != nil {
			return d, o, err
		}
		if d, err = s.GetDelivery(ctx, ref.Delivery(deliveryID)); err != nil {
			return d, o, err
		}
		if d.Status == Pending {
			return d, o, fault.New(fault.Conflict, "Delivery ID %s is still on its way.", deliveryID)
		}
		now, again := s.Now(), d
		again.Status, again.Attempts, again.Response, again.Failure, again.Due, again.Updated, again.round = Pending, 0, 0, "", now, now, d.round+1
		o.Add(d.change(now, again))
		o.Then(s.carry(again))
		return again, o, nil
	})
}

func (w Webhook) mustBeEnabled() error {
	if w.Enabled {
		return nil
	}
	return fault.New(fault.Conflict, "Webhook ID %s is disabled. Enable it first.", w.Webhook)
}

// execution is the name of the workflow that carries the delivery.
func (d Delivery) execution() string { return fmt.Sprintf("%s-%d", d.Delivery, d.round) }

// start starts the workflow of the delivery. It is idempotent.
func (s *Store) start(ctx context.Context, d Delivery) error {
	err := s.Workflow.Start(ctx, workflow.Webhook, d.execution(), record.Encode(d.DeliveryRef))
	if err != nil {
		return fmt.Errorf("start delivery %s: %w", d.Delivery, err)
	}
	return nil
}

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

// MayBecome reports whether next may follow s.
func (s Status) MayBecome(next Status) bool { return slices.Contains(transitions[s], next) }

// DeliveryRef names a delivery.
type DeliveryRef struct {
	Workspace string
	// Log is the webhook's id, or Message.Log of a Message.
	Log      string
	Delivery string
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
	return table.Put{If: table.Absent(), Item: table.Item{
		Key: d.key(), Body: record.Encode(d.Message), Expires: d.Created.Add(retention),
		Attrs: record.Attrs(kindDelivery, d.Created, table.Attrs{
			attrStatus: string(Pending), attrAttempts: int64(0), attrResponse: int64(0), attrFailure: "", attrDue: clock.Format(d.Created), attrRound: int64(0),
		}),
		Index: d.dueAt(d.Created),
	}}
}

func (d Delivery) dueAt(at time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.DueDeliveryEntry(d.Delivery, at.Add(lease))}
}

// change returns the write of the delivery's next state, under the condition that the delivery
// has not changed since it was read.
func (d Delivery) change(now time.Time, next Delivery) table.Update {
	if !d.Status.MayBecome(next.Status) {
		panic(fmt.Sprintf("webhook: a delivery that is %s may not become %s", d.Status, next.Status))
	}
	change := record.Change(d.key(), now, table.Attrs{
		attrStatus: string(next.Status), attrAttempts: int64(next.Attempts), attrResponse: int64(next.Response), attrFailure: next.Failure,
		attrDue: "", attrRound: next.round,
	}, table.Equals(record.Version, d.version))
	change.Index = map[table.Index]table.Key{table.ByDue: {}}
	switch {
	case next.Status == Pending:
		change.Set[attrDue], change.Index = clock.Format(next.Due), d.dueAt(next.Due)
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
	item, err := record.Get(ctx, s.table, "delivery", ref.key(), fault.New(fault.NotFound, "Delivery ID %s not found.", ref.Delivery))
	if err != nil {
		return Delivery{}, err
	}
	return decodeDelivery(ref, item)
}

// Deliveries returns a page of a webhook's deliveries, the newest first.
func (s *Store) Deliveries(ctx context.Context, ref Ref, window record.Window) (record.Page[Delivery], error) {
	if _, err := s.Get(ctx, ref); err != nil {
		return record.Page[Delivery]{}, err
	}
	query := keys.WebhookDeliveries(ref.Workspace, ref.Webhook)
	query.Reverse = true
	return record.List(ctx, s.table, "deliveries", query, window, func(item *table.Item) (Delivery, bool, error) {
		d, err := decodeDelivery(ref.Delivery(item.Key.SK), item)
		return d, true, err
	})
}

// Replay sends the message of an ended delivery once more, with the same webhook-id. A
// delivery that is still on its way is a fault.Conflict.
func (s *Store) Replay(ctx context.Context, ref Ref, deliveryID string) (Delivery, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (d Delivery, o record.Outbox, err error) {
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
		now := s.now()
		next := Delivery{Status: Pending, Due: now, round: d.round + 1}
		o.Add(d.change(now, next))
		d.Status, d.Attempts, d.Response, d.Failure, d.Due, d.Updated, d.round = Pending, 0, 0, "", now, now, next.round
		o.Then(s.carry(d))
		return d, o, nil
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

// task is the input of the workflow: ids only.
type task struct {
	Workspace string `json:"workspace_id"`
	Log       string `json:"log_id"`
	Delivery  string `json:"delivery_id"`
}

// start starts the workflow of the delivery. It is idempotent.
func (s *Store) start(ctx context.Context, d Delivery) error {
	err := s.workflow.Start(ctx, workflow.Webhook, d.execution(), record.Encode(task(d.DeliveryRef)))
	if err != nil {
		return fmt.Errorf("start delivery %s: %w", d.Delivery, err)
	}
	return nil
}

package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Ref names a webhook. Every read and write begins with the workspace.
type Ref struct{ Workspace, Webhook string }

func (r Ref) key() table.Key { return keys.Webhook(r.Workspace, r.Webhook) }

func (r Ref) bound() secret.Bound {
	return secret.Bound{Workspace: r.Workspace, Resource: r.Webhook}
}

// Sealed returns, for each kind of item of this package, what its sealed texts are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kindWebhook: func(item *table.Item) (secret.Bound, error) {
		workspace, err := keys.WorkspaceOf(item.Key)
		return Ref{workspace, keys.WebhookID(item.Key)}.bound(), err
	},
}

// Delivery names one of the webhook's deliveries.
func (r Ref) Delivery(id string) DeliveryRef {
	return DeliveryRef{Workspace: r.Workspace, Log: r.Webhook, Delivery: id}
}

// Spec is the description of a webhook from its client.
type Spec struct {
	URL string `json:"url"`
	// Types are the types of the events that the webhook gets; an empty list means all types.
	Types       []event.Type `json:"types,omitempty"`
	Description string       `json:"description,omitempty"`
	// Secrets sign the messages, the present secret first.
	Secrets []signer `json:"secrets"`
}

// signer is a secret that signs.
type signer struct {
	Sealed []byte `json:"sealed"`
	// Until is when a replaced secret stops signing; zero for the present secret.
	Until time.Time `json:"until,omitzero"`
}

// Webhook is an address that gets events.
type Webhook struct {
	Ref
	Spec
	Created, Updated time.Time
	// Enabled says that the webhook gets messages, Reason says why it gets no messages if the
	// server disabled it.
	Enabled bool
	Reason  string
	// Failing is the time since which no attempt has succeeded; zero if the last attempt
	// succeeded.
	Failing time.Time
	version int64
}

// The reasons why the server disables a webhook.
const (
	// ReasonGone: its address answered 410.
	ReasonGone = "GONE"
	// ReasonFailing: no attempt has succeeded for days.
	ReasonFailing = "FAILING"
)

const (
	kindWebhook = "webhook"
	attrEnabled = "enabled"
	attrReason  = "disabled_reason"
	attrFailing = "failing_since"
)

// Version counts the changes of a webhook. Everything that is shown of a webhook stays the
// same as long as its version stays the same.
func (w Webhook) Version() int64 { return w.version }

// wants reports whether a webhook gets events of a type.
func (w Webhook) wants(t event.Type) bool {
	return w.Enabled && (len(w.Types) == 0 || slices.Contains(w.Types, t))
}

func decodeWebhook(workspace string, item *table.Item) (Webhook, error) {
	r := record.Read(item, kindWebhook)
	w := Webhook{
		Ref:     Ref{workspace, keys.WebhookID(item.Key)},
		Enabled: item.Bool(attrEnabled), Reason: item.Text(attrReason), version: item.Int(record.Version),
		Failing: r.Time(attrFailing), Created: r.Created(), Updated: r.Updated(),
	}
	r.Decode(&w.Spec)
	return w, r.Err()
}

// change returns a write of the webhook under the condition that the webhook has not changed
// since it was read.
func (w Webhook) change(now time.Time, set table.Attrs) table.Update {
	return record.Change(w.key(), now, set, table.Equals(record.Version, w.version))
}

// List returns the webhooks of a workspace, oldest first.
func (s *Store) List(ctx context.Context, workspace string) ([]Webhook, error) {
	return record.All(ctx, s.Table, "webhooks", keys.Webhooks(workspace), record.In(workspace, decodeWebhook))
}

// Get returns a webhook; an unknown webhook is a fault.NotFound.
func (s *Store) Get(ctx context.Context, ref Ref) (Webhook, error) {
	missing := fault.New(fault.NotFound, "Webhook ID %s not found.", ref.Webhook)
	return record.One(ctx, s.Table, "webhook", ref.key(), missing, record.In(ref.Workspace, decodeWebhook))
}

// prefix distinguishes secrets of webhooks from other secrets, as Standard Webhooks defines.
const prefix = "whsec_"

// newSecret makes a secret, and seals it.
func (s *Store) newSecret(ctx context.Context, ref Ref) (shown string, kept signer, err error) {
	raw := make([]byte, 32)
	rand.Read(raw) // never returns an error
	shown = prefix + base64.StdEncoding.EncodeToString(raw)
	kept.Sealed, err = s.Sealer.Seal(ctx, ref.bound(), []byte(shown))
	if err != nil {
		return "", signer{}, fmt.Errorf("seal secret: %w", err)
	}
	return shown, kept, nil
}

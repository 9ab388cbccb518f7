package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
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

// Delivery names one of the webhook's deliveries.
func (r Ref) Delivery(id string) DeliveryRef {
	return DeliveryRef{Workspace: r.Workspace, Log: r.Webhook, Delivery: id}
}

// Spec is what a webhook was asked to be.
type Spec struct {
	URL string `json:"url"`
	// Types are those of the events that it is sent; none stands for all.
	Types       []event.Type `json:"types,omitempty"`
	Description string       `json:"description,omitempty"`
	// Secrets sign what is sent, the present one first.
	Secrets []signer `json:"secrets"`
}

// signer is a secret that signs.
type signer struct {
	Sealed []byte `json:"sealed"`
	// Until is when one that was replaced ceases to sign; zero for the present one.
	Until time.Time `json:"until,omitzero"`
}

// Webhook is an address that is told of events.
type Webhook struct {
	Ref
	Spec
	Created, Updated time.Time
	// Enabled says that it is sent anything, Reason why it is not if the server decided so.
	Enabled bool
	Reason  string
	// Failing is since when nothing has got through to it; zero when the last attempt did.
	Failing time.Time
	version int64
}

// Why the server has disabled a webhook.
const (
	// ReasonGone: its address answered 410.
	ReasonGone = "GONE"
	// ReasonFailing: nothing got through to it for days.
	ReasonFailing = "FAILING"
)

const (
	kindWebhook = "webhook"
	attrEnabled = "enabled"
	attrReason  = "disabled_reason"
	attrFailing = "failing_since"
)

// Version counts the changes of a webhook. All that is shown of it is the same as long as its
// version is.
func (w Webhook) Version() int64 { return w.version }

// wants tells whether a webhook is to be sent events of a type.
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

// change returns a write of the webhook under the condition that nobody changed it since it was
// read.
func (w Webhook) change(now time.Time, set table.Attrs) table.Update {
	return record.Change(w.key(), now, set, table.Equals(record.Version, w.version))
}

// List returns the webhooks of a workspace, oldest first.
func (s *Store) List(ctx context.Context, workspace string) ([]Webhook, error) {
	items, err := table.AllItems(ctx, s.table, keys.Webhooks(workspace))
	if err != nil {
		return nil, fmt.Errorf("query webhooks: %w", err)
	}
	found := make([]Webhook, len(items))
	for i, item := range items {
		if found[i], err = decodeWebhook(workspace, item); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Get returns a webhook; an unknown one is a fault.NotFound.
func (s *Store) Get(ctx context.Context, ref Ref) (Webhook, error) {
	item, err := s.table.Get(ctx, ref.key())
	if errors.Is(err, table.ErrNotFound) {
		return Webhook{}, fault.New(fault.NotFound, "Webhook ID %s not found.", ref.Webhook)
	}
	if err != nil {
		return Webhook{}, fmt.Errorf("get webhook: %w", err)
	}
	return decodeWebhook(ref.Workspace, item)
}

// prefix tells secrets of webhooks from others, as Standard Webhooks says.
const prefix = "whsec_"

// newSecret makes a secret, and seals it.
func (s *Store) newSecret(ctx context.Context, ref Ref) (shown string, kept signer, err error) {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return "", signer{}, fmt.Errorf("make secret: %w", err)
	}
	shown = prefix + base64.StdEncoding.EncodeToString(raw)
	kept.Sealed, err = s.sealer.Seal(ctx, ref.bound(), []byte(shown))
	if err != nil {
		return "", signer{}, fmt.Errorf("seal secret: %w", err)
	}
	return shown, kept, nil
}

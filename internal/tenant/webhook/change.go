package webhook

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// NewWebhook is the request to create a webhook.
type NewWebhook struct {
	Workspace, URL, Description string
	Types                       []event.Type
	Disabled                    bool
}

// Created is a new webhook with its secret, which is never shown again.
type Created struct {
	Webhook Webhook
	Secret  string
}

// Create creates a webhook.
func (s *Store) Create(ctx context.Context, request NewWebhook, notes ...record.Note[Created]) (Created, error) {
	if err := s.CheckURL("url", request.URL); err != nil {
		return Created{}, err
	}
	now := s.Now()
	w := Webhook{
		Ref:     Ref{request.Workspace, id.New(now)},
		Spec:    Spec{URL: request.URL, Types: types(request.Types), Description: request.Description},
		Created: now, Updated: now, Enabled: !request.Disabled, version: 1,
	}
	secret, kept, err := s.newSecret(ctx, w.Ref)
	if err != nil {
		return Created{}, err
	}
	w.Secrets = []signer{kept}
	put := record.New(w.key(), kindWebhook, now, table.Attrs{attrEnabled: w.Enabled, attrReason: "", attrFailing: ""}, record.Encode(w.Spec))
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (Created, record.Outbox, error) {
		created := Created{w, secret}
		counted, err := s.Quotas.Take(ctx, s.Table, now, quota.Webhooks, request.Workspace, 1)
		o := record.Write(put, counted, audit.New(ctx, audit.CreateWebhook, w.Webhook, "").Write(w.Workspace, now))
		if err == nil {
			err = record.AddNotes(ctx, &o, created, notes...)
		}
		return created, o, err
	})
}

// types returns each type once, in order.
func types(given []event.Type) []event.Type {
	sorted := slices.Sorted(slices.Values(given))
	return slices.Compact(sorted)
}

// Patch is a request to change a webhook. A nil member changes nothing.
type Patch struct {
	URL, Description *string
	Types            *[]event.Type
	Enabled          *bool
	// Expect are the versions that the patch was made for.
	Expect record.Versions
}

// Patch changes a webhook. A webhook that is enabled again, or gets another URL, starts without its
// earlier failures.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (Webhook, error) {
	if patch.URL != nil {
		if err := s.CheckURL("url", *patch.URL); err != nil {
			return Webhook{}, err
		}
	}
	return s.change(ctx, ref, patch.Expect, func(w *Webhook) (string, error) {
		var changed []string
		if patch.URL != nil && *patch.URL != w.URL {
			w.URL, w.Failing, changed = *patch.URL, time.Time{}, append(changed, "url")
		}
		if patch.Description != nil && *patch.Description != w.Description {
			w.Description, changed = *patch.Description, append(changed, "description")
		}
		if patch.Types != nil && !slices.Equal(types(*patch.Types), w.Types) {
			w.Types, changed = types(*patch.Types), append(changed, "event_types")
		}
		if patch.Enabled != nil && *patch.Enabled != w.Enabled {
			w.Enabled, w.Reason, w.Failing, changed = *patch.Enabled, "", time.Time{}, append(changed, "enabled")
		}
		return strings.Join(changed, ", "), nil
	})
}

// Rotate gives a webhook another secret and returns that secret, which is never shown again.
// The previous secret continues to sign for a day, beside the new secret.
func (s *Store) Rotate(ctx context.Context, ref Ref) (_ Webhook, secret string, err error) {
	var w Webhook
	w, err = s.change(ctx, ref, nil, func(w *Webhook) (string, error) {
		shown, kept, err := s.newSecret(ctx, ref)
		if err != nil {
			return "", err
		}
		before := w.Secrets[0]
		before.Until = s.Now().Add(overlap)
		secret, w.Secrets = shown, []signer{kept, before}
		return "secret", nil
	})
	return w, secret, err
}

// change applies a change to a webhook. apply returns the names of the changed members, or ""
// if nothing has changed.
func (s *Store) change(ctx context.Context, ref Ref, expect record.Versions, apply func(*Webhook) (string, error)) (Webhook, error) {
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (w Webhook, o record.Outbox, err error) {
		if w, err = s.expected(ctx, ref, expect); err != nil {
			return w, o, err
		}
		what, err := apply(&w)
		if err != nil || what == "" {
			return w, o, err
		}
		now := s.Now()
		change := w.change(now, table.Attrs{attrEnabled: w.Enabled, attrReason: w.Reason, attrFailing: clock.FormatOptional(w.Failing)})
		change.Body = record.Encode(w.Spec)
		o.Add(change, audit.New(ctx, audit.UpdateWebhook, w.Webhook, what).Write(w.Workspace, now))
		w.Updated = now
		w.version++
		return w, o, nil
	})
}

// Delete deletes a webhook. Messages that are still on their way to it are not sent any more.
func (s *Store) Delete(ctx context.Context, ref Ref, expect record.Versions) error {
	return record.Decide(ctx, s.Table, func(ctx context.Context) (record.Outbox, error) {
		w, err := s.expected(ctx, ref, expect)
		if err != nil {
			return record.Outbox{}, err
		}
		counted, err := s.Quotas.Take(ctx, s.Table, s.Now(), quota.Webhooks, ref.Workspace, -1)
		return record.Write(
			table.Delete{Key: ref.key(), If: table.Equals(record.Version, w.version)},
			counted,
			audit.New(ctx, audit.DeleteWebhook, w.Webhook, "").Write(w.Workspace, s.Now())), err
	})
}

// expected returns a webhook that has one of the versions, or a fault.Stale.
func (s *Store) expected(ctx context.Context, ref Ref, expect record.Versions) (Webhook, error) {
	w, err := s.Get(ctx, ref)
	return w, cmp.Or(err, expect.Check(w.version, "Webhook ID "+w.Webhook))
}

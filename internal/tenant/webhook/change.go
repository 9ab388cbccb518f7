package webhook

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Most is how many webhooks a workspace may have. Each is written to with every event, in its transaction.
const Most = 10

const (
	kindCount = "webhook_count"
	attrCount = "count"
)

// NewWebhook is the request to create one.
type NewWebhook struct {
	Workspace, URL, Description string
	Types                       []event.Type
	Disabled                    bool
}

// Create creates a webhook and returns it with its secret, which is never shown again.
func (s *Store) Create(ctx context.Context, request NewWebhook) (_ Webhook, secret string, err error) {
	if err := s.CheckURL("url", request.URL); err != nil {
		return Webhook{}, "", err
	}
	now := s.now()
	w := Webhook{
		Ref:     Ref{request.Workspace, id.New(now)},
		Spec:    Spec{URL: request.URL, Types: types(request.Types), Description: request.Description},
		Created: now, Updated: now, Enabled: !request.Disabled, version: 1,
	}
	secret, kept, err := s.newSecret(ctx, w.Ref)
	if err != nil {
		return Webhook{}, "", err
	}
	w.Secrets = []signer{kept}
	put := table.Put{If: table.Absent(), Item: table.Item{
		Key: w.key(), Attrs: record.Attrs(kindWebhook, now, table.Attrs{attrEnabled: w.Enabled, attrReason: "", attrFailing: ""}), Body: record.Encode(w.Spec),
	}}
	for range contention {
		counted, err := s.oneMore(ctx, request.Workspace)
		if err != nil {
			return Webhook{}, "", err
		}
		err = s.table.Transact(ctx, put, counted, audit.New(ctx, audit.CreateWebhook, w.Webhook, "").Write(w.Workspace, now))
		if isChanged(err) {
			continue
		}
		if err != nil {
			return Webhook{}, "", fmt.Errorf("create webhook: %w", err)
		}
		return w, secret, nil
	}
	return Webhook{}, "", errTooOften
}

// oneMore returns the write that counts a new webhook.
func (s *Store) oneMore(ctx context.Context, workspace string) (table.Write, error) {
	now, key := s.now(), keys.WebhookCount(workspace)
	item, err := s.table.Get(ctx, key)
	if errors.Is(err, table.ErrNotFound) {
		return table.Put{If: table.Absent(), Item: table.Item{Key: key, Attrs: record.Attrs(kindCount, now, table.Attrs{attrCount: int64(1)})}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get webhook count: %w", err)
	}
	count := item.Int(attrCount)
	if count >= Most {
		return nil, fault.New(fault.Conflict, "A workspace has at most %d webhooks. Delete one first.", Most)
	}
	return record.Change(key, now, table.Attrs{attrCount: count + 1}, table.Equals(attrCount, count)), nil
}

// types are each once, in order.
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

// Patch changes a webhook. One that is enabled again begins without a past.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (Webhook, error) {
	if patch.URL != nil {
		if err := s.CheckURL("url", *patch.URL); err != nil {
			return Webhook{}, err
		}
	}
	return s.change(ctx, ref, patch.Expect, func(w *Webhook) (string, error) {
		var changed []string
		if patch.URL != nil && *patch.URL != w.URL {
			w.URL, changed = *patch.URL, append(changed, "url")
		}
		if patch.Description != nil && *patch.Description != w.Description {
			w.Description, changed = *patch.Description, append(changed, "description")
		}
		if patch.Types != nil && !reflect.DeepEqual(types(*patch.Types), w.Types) {
			w.Types, changed = types(*patch.Types), append(changed, "event_types")
		}
		if patch.Enabled != nil && *patch.Enabled != w.Enabled {
			w.Enabled, w.Reason, changed = *patch.Enabled, "", append(changed, "enabled")
		}
		return strings.Join(changed, ", "), nil
	})
}

// Rotate gives a webhook another secret and returns that, which is never shown again. The one before goes on to sign for a day, beside the new one.
func (s *Store) Rotate(ctx context.Context, ref Ref) (_ Webhook, secret string, err error) {
	var w Webhook
	w, err = s.change(ctx, ref, nil, func(w *Webhook) (string, error) {
		shown, kept, err := s.newSecret(ctx, ref)
		if err != nil {
			return "", err
		}
		before := w.Secrets[0]
		before.Until = s.now().Add(overlap)
		secret, w.Secrets = shown, []signer{kept, before}
		return "secret", nil
	})
	return w, secret, err
}

// change applies a change, which says what it has changed, "" for nothing.
func (s *Store) change(ctx context.Context, ref Ref, expect record.Versions, apply func(*Webhook) (string, error)) (Webhook, error) {
	for range contention {
		w, err := s.Get(ctx, ref)
		if err != nil {
			return Webhook{}, err
		}
		if err := w.check(expect); err != nil {
			return Webhook{}, err
		}
		what, err := apply(&w)
		if err != nil || what == "" {
			return w, err
		}
		now := s.now()
		set := table.Attrs{attrEnabled: w.Enabled, attrReason: w.Reason}
		if strings.Contains(what, "enabled") {
			set[attrFailing] = ""
		}
		change := w.change(now, set)
		change.Body = record.Encode(w.Spec)
		err = s.table.Transact(ctx, change, audit.New(ctx, audit.UpdateWebhook, w.Webhook, what).Write(w.Workspace, now))
		if isChanged(err) {
			continue
		}
		if err != nil {
			return Webhook{}, fmt.Errorf("write webhook: %w", err)
		}
		w.Updated = now
		w.version++
		return w, nil
	}
	return Webhook{}, errTooOften
}

// Delete deletes a webhook. What is still on its way to it is not sent any more.
func (s *Store) Delete(ctx context.Context, ref Ref, expect record.Versions) error {
	for range contention {
		w, err := s.Get(ctx, ref)
		if err != nil {
			return err
		}
		if err := w.check(expect); err != nil {
			return err
		}
		now := s.now()
		err = s.table.Transact(ctx,
			table.Delete{Key: ref.key(), If: table.Equals(record.Version, w.version)},
			table.Update{Key: keys.WebhookCount(ref.Workspace), Add: map[string]int64{attrCount: -1}},
			audit.New(ctx, audit.DeleteWebhook, w.Webhook, "").Write(w.Workspace, now))
		if isChanged(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("delete webhook: %w", err)
		}
		return nil
	}
	return errTooOften
}

func (w Webhook) check(expect record.Versions) error {
	if expect.Allow(w.version) {
		return nil
	}
	return fault.New(fault.Stale, "Webhook ID %s was changed since it was read. Read it again.", w.Webhook)
}

func isChanged(err error) bool {
	_, changed := errors.AsType[*table.ConditionFailed](err)
	return changed
}

var errTooOften = fault.New(fault.Unavailable, "The webhook is changed too often to take another change.")

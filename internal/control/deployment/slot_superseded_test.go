package deployment_test

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestRevisionsAreSkippedWithAllWebhooks: the event of each revision goes to as many webhooks as a
// workspace may have.
func TestRevisionsAreSkippedWithAllWebhooks(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	most := quota.All[slices.IndexFunc(quota.All, func(q quota.Quota) bool { return q.Name == quota.Webhooks })].Most
	limits := quota.Limits{}.With(quota.Webhooks, most)
	hooks := webhook.NewStore(webhook.Config{
		Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler), Private: outbound.Everywhere, Quotas: limits,
	})
	for range most {
		_, err := hooks.Create(t.Context(), webhook.NewWebhook{Workspace: workspace, URL: "https://203.0.113.5/hook"})
		check.Must(t, err)
	}
	f.Store = deployment.NewStore(deployment.Config{
		Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Listeners: f.listeners, Integrations: f.integrations, Subscribers: hooks, Quotas: limits,
	})
	d := f.create(t, fromGit("weather"))
	const superseded = 9
	for range superseded + 1 {
		f.patch(t, d.Ref, again)
	}
	f.promote(t, d.Ref)
	d = f.get(t, d.Ref)
	check.Must(t, f.Skip(t.Context(), d.Ref, d.Slot))
	told, err := f.Events().Deployment(workspace, d.Deployment).Read(t.Context(), "", 1000)
	check.Must(t, err)
	skips := 0
	for _, e := range told {
		if e.Status == string(revision.Skipped) {
			skips++
		}
	}
	if skips != superseded {
		t.Errorf("the log tells of %d skipped revisions, want %d", skips, superseded)
	}
}

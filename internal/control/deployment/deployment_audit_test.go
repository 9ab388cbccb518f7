package deployment_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestChangesAreInTheAuditLog makes each kind of change, and some requests that are refused or
// change nothing.
func TestChangesAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := audit.By(t.Context(), audit.Actor{Key: "key", Request: "request"})
	d, err := f.Create(ctx, fromGit("weather"))
	check.Must(t, err)
	first := d.Revision(d.Latest)
	f.promote(t, d.Ref)
	for _, patch := range []deployment.Patch{{}, {Name: new("other")}, {SourceConfig: deployment.SourceConfig{BuildOnPush: new(true)}, ValidateOnly: true}} {
		_, _ = f.Patch(ctx, d.Ref, patch)
	}
	if _, err := f.Create(ctx, fromGit("weather")); err == nil {
		t.Error("the name was given twice")
	}
	_, err = f.Patch(ctx, d.Ref, deployment.Patch{RevisionConfig: revision.Config{RepoRef: new("dev")}})
	check.Must(t, err)
	d, err = f.Redeploy(ctx, first, nil)
	check.Must(t, err)
	_, err = f.Cancel(ctx, d.Revision(d.Latest))
	check.Must(t, err)
	check.Must(t, f.Delete(ctx, d.Ref, deployment.Deletion{}))
	entries, _, err := audit.NewStore(f.table, f.clock.Now).List(t.Context(), workspace, audit.Filter{}, record.Window{Limit: 100})
	check.Must(t, err)
	type line struct {
		Action audit.Action
		Detail string
	}
	var got []line
	for _, entry := range entries {
		got = append(got, line{entry.Action, entry.Detail})
		if entry.Resource != d.Deployment || entry.Key != "key" || entry.Request != "request" || entry.Outcome != audit.Succeeded {
			t.Errorf("got %+v", entry)
		}
	}
	want := []line{
		{audit.DeleteDeployment, "weather"}, {audit.UpdateDeployment, "cancel of revision " + d.Latest},
		{audit.UpdateDeployment, "redeploy of revision " + first.Revision}, {audit.UpdateDeployment, ""}, {audit.CreateDeployment, "weather"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audit log, newest first (-want +got):\n%s", diff)
	}
}

package deployment_test

import (
	"errors"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/test/check"
)

// credential creates credentials for the host of fromGit, and returns their id.
func (f *fixture) credential(t *testing.T) string {
	t.Helper()
	c, err := f.integrations.CreateCredential(t.Context(), integration.NewCredential{Workspace: workspace, Host: "git.test", User: "u", Token: "t"})
	check.Must(t, err)
	return c.Integration
}

// watched returns the branch that a deployment is stored to watch, "" if it watches no branch.
func (f *fixture) watched(t *testing.T, ref deployment.Ref) string {
	t.Helper()
	item, err := f.table.Get(t.Context(), keys.PushWatch(ref.Workspace, ref.Deployment))
	if errors.Is(err, table.ErrNotFound) {
		return ""
	}
	check.Must(t, err)
	return item.Text("branch")
}

// TestTheWatchIsWhatTheDeploymentSays follows a watch through everything that changes it.
func TestTheWatchIsWhatTheDeploymentSays(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	plain := f.create(t, fromGit("plain"))
	request := fromGit("weather")
	request.SourceConfig.BuildOnPush = new(true)
	planned := request
	planned.ValidateOnly = true
	f.create(t, planned)
	d := f.create(t, request)
	want := func(ref deployment.Ref, branch string) {
		t.Helper()
		if got := f.watched(t, ref); got != branch {
			t.Errorf("it watches %q, want %q", got, branch)
		}
	}
	want(plain.Ref, "")
	want(d.Ref, "main")
	first := d.Latest
	f.patch(t, d.Ref, deployment.Patch{RevisionConfig: revision.Config{RepoRef: new("next")}})
	want(d.Ref, "next")
	f.patch(t, d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{BuildOnPush: new(false)}})
	want(d.Ref, "")
	f.patch(t, d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{BuildOnPush: new(true)}})
	want(d.Ref, "next")
	f.patch(t, plain.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{BuildOnPush: new(true)}})
	want(plain.Ref, "main")
	f.promote(t, d.Ref)
	if _, err := f.Redeploy(t.Context(), d.Revision(first), nil); err != nil {
		t.Fatal(err)
	}
	want(d.Ref, "main")
	check.Must(t, f.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	want(d.Ref, "")
}

// TestBuildIsAPatchOfTheSameRef builds a deployment for pushes.
func TestBuildIsAPatchOfTheSameRef(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	request.SourceConfig.BuildOnPush, request.SourceConfig.IntegrationID = new(true), new(f.credential(t))
	request.Secrets = []deployment.Secret{{Name: "A", Value: "b"}}
	d := f.create(t, request)
	check.Must(t, f.Build(t.Context(), workspace, d.Deployment, "abc"))
	built := f.get(t, d.Ref)
	r := f.revision(t, d.Ref, built.Latest)
	if r.Status != revision.Queued || *r.Config.RepoRef != "main" || r.IntegrationID == nil || *r.IntegrationID != *request.SourceConfig.IntegrationID || len(r.Secrets) == 0 {
		t.Errorf("got %+v", r)
	}
	log, _, err := audit.NewStore(f.table, f.clock.Now).List(t.Context(), workspace, audit.Filter{}, record.Window{Limit: 1})
	if err != nil || len(log) != 1 || log[0].Resource != d.Deployment || log[0].Detail != "push of commit abc" {
		t.Errorf("the audit log says %+v (%v)", log, err)
	}
	f.patch(t, d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{BuildOnPush: new(false)}})
	for name, err := range map[string]error{
		"not on pushes": f.Build(t.Context(), workspace, d.Deployment, "abc"),
		"deleted":       errors.Join(f.Delete(t.Context(), d.Ref, deployment.Deletion{}), f.Build(t.Context(), workspace, d.Deployment, "abc")),
	} {
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := f.Build(t.Context(), workspace, "0197a000-0000-7000-8000-00000000dead", "abc"); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown: got %v", err)
	}
	if got := f.revisions(t, d.Ref); len(got) != 2 {
		t.Errorf("there are %d revisions, want 2", len(got))
	}
}

package deployment_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// uploads is an upload.Store that contains the uploads which it granted.
type uploads struct {
	kept []upload.Ref
	base string
}

func (u *uploads) Grant(_ context.Context, ref upload.Ref, base string) (upload.Grant, error) {
	u.kept, u.base = append(u.kept, ref), base
	return upload.Grant{URL: base + ref.Path()}, nil
}

func (u *uploads) List(_ context.Context, workspace, deployment string) (found []upload.Ref, err error) {
	for _, ref := range u.kept {
		if ref.Workspace == workspace && ref.Deployment == deployment {
			found = append(found, ref)
		}
	}
	return found, nil
}

func (u *uploads) Remove(_ context.Context, _, _ string, refs []upload.Ref) error {
	u.kept = slices.DeleteFunc(u.kept, func(ref upload.Ref) bool { return slices.Contains(refs, ref) })
	return nil
}

func (u *uploads) Erase(ctx context.Context, workspace, deployment string) error {
	return upload.Prune(ctx, u, workspace, deployment, func(upload.Ref) bool { return false })
}

// uploading returns a store that takes uploads, and a deployment without uploads.
func uploading(t *testing.T) (*fixture, *uploads, deployment.Deployment) {
	t.Helper()
	f, kept := setUp(t), &uploads{}
	f.Store = deployment.NewStore(deployment.Config{
		Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Listeners: f.listeners, Integrations: f.integrations, Uploads: kept,
	})
	return f, kept, f.create(t, deployment.NewDeployment{Workspace: fromGit("").Workspace, Name: "uploaded", Source: revision.InternalSource})
}

// upload makes a revision from a new upload.
func (f *fixture) upload(t *testing.T, ref deployment.Ref) upload.Ref {
	t.Helper()
	to, grant, err := f.Upload(t.Context(), ref, "https://slipway.test/")
	check.Must(t, err)
	if grant.URL != "https://slipway.test/"+to.Path() {
		t.Errorf("it is to be uploaded to %s", grant.URL)
	}
	f.patch(t, ref, deployment.Patch{RevisionConfig: revision.Config{TarballPath: new(to.Path())}})
	return to
}

// TestUploadsGoWithTheBuildsThatAreMadeFromThem deploys many uploads, and keeps a few builds.
func TestUploadsGoWithTheBuildsThatAreMadeFromThem(t *testing.T) {
	t.Parallel()
	f, kept, d := uploading(t)
	var all []upload.Ref
	next := func(end func(context.Context, deployment.Deployment, revision.Revision) error) {
		all = append(all, f.upload(t, d.Ref))
		at, r := f.carry(t, d.Ref)
		check.Must(t, end(t.Context(), at, r))
	}
	fail := func(ctx context.Context, d deployment.Deployment, r revision.Revision) error {
		return f.Fail(ctx, d, r, build.ReasonSourceInvalid, "no tarball")
	}
	for range 2 {
		next(f.Promote)
	}
	next(fail)
	for range 2 {
		next(f.Promote)
	}
	forget := func() {
		t.Helper()
		at := f.get(t, d.Ref)
		err := f.ForgetBuilds(t.Context(), at, 2, func(context.Context, string) error { return nil })
		check.Must(t, errors.Join(err, f.ForgetUploads(t.Context(), at, kept)))
	}
	forget()
	if diff := cmp.Diff(all, kept.kept); diff != "" {
		t.Errorf("while all are new (-want +got):\n%s", diff)
	}
	f.clock.Pass(25 * time.Hour)
	waiting, _, err := f.Upload(t.Context(), d.Ref, "")
	check.Must(t, err)
	forget()
	if diff := cmp.Diff(append(all[3:], waiting), kept.kept); diff != "" {
		t.Errorf("a day later (-want +got):\n%s", diff)
	}
	// An upload whose revision failed is tried again next, as long as nothing else is
	// uploaded.
	next(fail)
	f.clock.Pass(25 * time.Hour)
	forget()
	if diff := cmp.Diff(all[3:], kept.kept); diff != "" {
		t.Errorf("another day later (-want +got):\n%s", diff)
	}
}

// TestARevisionWhoseUploadIsGoneIsNotDeployedAgain forgets the builds of two revisions. The upload
// of one of them is also the source of a later revision.
func TestARevisionWhoseUploadIsGoneIsNotDeployedAgain(t *testing.T) {
	t.Parallel()
	f, kept, d := uploading(t)
	next := func(revise func()) string {
		revise()
		return f.promote(t, d.Ref).Revision
	}
	upload := func() { f.upload(t, d.Ref) }
	gone, shared := next(upload), next(upload)
	last := next(func() { f.patch(t, d.Ref, deployment.Patch{Revise: true}) })
	f.clock.Pass(25 * time.Hour)
	at := f.get(t, d.Ref)
	for _, id := range []string{gone, shared} {
		check.Must(t, record.Commit(t.Context(), f.table, record.Write(f.revision(t, d.Ref, id).Forget())))
	}
	check.Must(t, f.ForgetUploads(t.Context(), at, kept))
	_, err := f.Redeploy(t.Context(), d.Revision(gone), nil)
	wantInvalid(t, err, "The upload of revision ID "+gone+" is not kept any more. Upload it again, and PATCH the deployment with it.")
	for _, id := range []string{shared, last} {
		if _, err := f.Redeploy(t.Context(), d.Revision(id), nil); err != nil {
			t.Error(err)
		}
	}
}

// TestOnlyUploadedSourcesHaveUploads asks for upload addresses for other sources.
func TestOnlyUploadedSourcesHaveUploads(t *testing.T) {
	t.Parallel()
	f, kept, d := uploading(t)
	refused := func(ref deployment.Ref, kind fault.Kind, words string) {
		t.Helper()
		if _, _, err := f.Upload(t.Context(), ref, ""); !fault.Is(err, kind) || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v", err)
		}
	}
	git := f.create(t, fromGit("git"))
	refused(git.Ref, fault.Invalid, "only available for 'internal_source' source deployments")
	check.Must(t, f.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	refused(d.Ref, fault.Conflict, "is being deleted")
	f.Store = deployment.NewStore(deployment.Config{Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now})
	other := f.create(t, deployment.NewDeployment{Workspace: fromGit("").Workspace, Name: "other", Source: revision.InternalSource})
	refused(other.Ref, fault.Unavailable, "no place for uploads")
	if len(kept.kept) != 0 {
		t.Errorf("granted %v", kept.kept)
	}
}

// TestARedeployThatBuildsNeedsRoom on the workspace's disk. A build that is kept needs no room.
func TestARedeployThatBuildsNeedsRoom(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ref := f.create(t, fromGit("weather")).Ref
	first := f.promote(t, ref).Ref
	full := deployment.NewStore(deployment.Config{
		Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Listeners: f.listeners, Integrations: f.integrations,
		Files: &quota.Files{Limits: quota.Limits{}.With(quota.FileBytes, 1), Measure: func(string) int64 { return 1 }},
	})
	if _, err := full.Redeploy(t.Context(), first, nil); err != nil {
		t.Error(err)
	}
	check.Must(t, record.Commit(t.Context(), f.table, record.Write(f.revision(t, ref, first.Revision).Forget())))
	if _, err := full.Redeploy(t.Context(), first, nil); !fault.Is(err, fault.Forbidden) {
		t.Errorf("got %v, want a refusal: the build needs room", err)
	}
}

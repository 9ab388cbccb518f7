package deployment_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestARollbackIsNotedIfItHappens rolls back a deployment that was changed meanwhile, and then the
// same deployment in its present state.
func TestARollbackIsNotedIfItHappens(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ref := f.create(t, fromGit("agent")).Ref
	f.deployNext(t, ref)
	relapsed := f.deployNext(t, ref)
	before := f.get(t, ref)
	f.patch(t, ref, deployment.Patch{Options: deployment.Options{AutoRollback: new(true)}})
	rollBack := func(d deployment.Deployment) (reason string, err error) {
		err = f.RollBack(t.Context(), d, f.revision(t, ref, relapsed), "It crashed.")
		return f.revision(t, ref, relapsed).Reason, err
	}
	if reason, err := rollBack(before); !errors.Is(err, record.ErrLost) || reason != "" {
		t.Errorf("of a deployment that was changed: the reason is %q (%v)", reason, err)
	}
	if reason, err := rollBack(f.get(t, ref)); err != nil || reason != revision.ReasonRolledBack {
		t.Errorf("the reason is %q (%v)", reason, err)
	}
}

// TestATagThatIsDeployedAgainEndsBuildsOnPush brings back a revision of a tag, after the deployment
// was moved to a branch and built on pushes.
func TestATagThatIsDeployedAgainEndsBuildsOnPush(t *testing.T) {
	t.Parallel()
	for name, bringBack := range map[string]func(*testing.T, *fixture, deployment.Ref){
		"undelete": func(t *testing.T, f *fixture, ref deployment.Ref) {
			f.deleteWithin(t, ref, window)
			f.undelete(t, ref)
		},
		"automatic rollback": func(t *testing.T, f *fixture, ref deployment.Ref) {
			relapsed := f.revision(t, ref, f.promote(t, ref).Revision)
			check.Must(t, f.RollBack(t.Context(), f.get(t, ref), relapsed, "It crashed."))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			request := fromGit("agent")
			request.RevisionConfig.RepoRef = new("refs/tags/v1")
			ref := f.create(t, request).Ref
			f.promote(t, ref)
			f.patch(t, ref, deployment.Patch{
				SourceConfig: deployment.SourceConfig{BuildOnPush: new(true)}, RevisionConfig: revision.Config{RepoRef: new("main")},
			})
			bringBack(t, f, ref)
			d := f.get(t, ref)
			if *d.RevisionConfig.RepoRef != "refs/tags/v1" || *d.SourceConfig.BuildOnPush || f.watched(t, ref) != "" {
				t.Errorf("it has %s, build_on_push %v, and pushes to %q build it", *d.RevisionConfig.RepoRef, *d.SourceConfig.BuildOnPush, f.watched(t, ref))
			}
			told, err := f.Events().Deployment(workspace, ref.Deployment).Read(t.Context(), "", 100)
			check.Must(t, err)
			const want = "source_config.build_on_push was set to false: it must be false when source_revision_config.repo_ref is a tag (refs/tags/v1)."
			if !slices.ContainsFunc(told, func(e event.Positioned) bool { return e.Message == want }) {
				t.Errorf("the events are %+v", told)
			}
		})
	}
}

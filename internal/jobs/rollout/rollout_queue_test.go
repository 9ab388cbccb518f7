package rollout_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// TestRevisionsQueueBehindTheOneInFlight lets three revisions wait: the newest goes next, the
// others never begin.
func TestRevisionsQueueBehindTheOneInFlight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first  revision.Status
		result build.Result
	}{
		"that succeeds": {first: revision.Deployed},
		"that fails":    {first: revision.BuildFailed, result: build.Result{State: build.Failed, Reason: "REASON", Message: "words"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.builder.hold(true)
			m.builder.outcome = func(spec build.Spec) build.Result {
				if spec.Ref == "main" && c.result.State != "" {
					return c.result
				}
				return built(spec)
			}
			s := m.start(t, m.table)
			d := s.create(t, fromGit("weather"))
			for i := range 3 {
				s.patch(t, d.Ref, again(fmt.Sprint(i)))
			}
			m.builder.finish()
			s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			want := []revision.Status{revision.Deployed, revision.Skipped, revision.Skipped, c.first}
			for i, r := range s.revisions(t, d.Ref) {
				if r.Status != want[i] {
					t.Errorf("revision %d from the newest is %s, want %s", i, r.Status, want[i])
				}
				if _, began := m.builder.specs[r.Revision]; began != (r.Status != revision.Skipped) {
					t.Errorf("the build of revision %d, which is %s, began: %v", i, r.Status, began)
				}
			}
		})
	}
}

// TestPatchesRaceWithRollouts sends 50 PATCHes at once while rollouts are carried out: no
// PATCH is lost, the newest revision ends active, every other revision was deployed before it
// or skipped, and no revision is stuck.
func TestPatchesRaceWithRollouts(t *testing.T) {
	t.Parallel()
	const n = 50
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.create(t, fromGit("weather"))
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, errs[i] = s.deployments.Patch(t.Context(), d.Ref, again(fmt.Sprint(i))) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("PATCH %d: %v", i, err)
		}
	}
	s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	revisions := s.revisions(t, d.Ref)
	refs := map[string]bool{}
	for _, r := range revisions {
		refs[*r.Config.RepoRef] = true
		if r.Status != revision.Deployed && r.Status != revision.Skipped {
			t.Errorf("revision %s is %s: %s", r.Revision, r.Status, r.Reason)
		}
	}
	if len(revisions) != n+1 || len(refs) != n+1 {
		t.Errorf("got %d revisions of %d refs, want %d", len(revisions), len(refs), n+1)
	}
	if d := s.get(t, d.Ref); d.Active != revisions[0].Revision || d.CommitSHA != "commit-of-"+*revisions[0].Config.RepoRef {
		t.Errorf("got %+v, want %s active", d, revisions[0].Revision)
	}
}

// TestADeleteRacesWithPatchesAndRollouts deletes the deployment while the patches and rollouts
// run.
func TestADeleteRacesWithPatchesAndRollouts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.create(t, fromGit("weather"))
	var all sync.WaitGroup
	for i := range 20 {
		// PATCHes that come too late are refused.
		all.Go(func() { _, _ = s.deployments.Patch(t.Context(), d.Ref, again(fmt.Sprint(i))) })
	}
	s.deleteAndAwait(t, d)
	all.Wait()
	s.rescue(t)
	s.tasks.Wait()
	s.wantGone(t, d)
}

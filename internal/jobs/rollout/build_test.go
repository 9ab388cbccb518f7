package rollout_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// keptBuilds is the number of deployed revisions that keep their builds.
const keptBuilds = 10

func (s *server) redeploy(t *testing.T, ref deployment.Ref, id string) deployment.Deployment {
	t.Helper()
	if _, err := s.deployments.Redeploy(t.Context(), ref.Revision(id), nil); err != nil {
		t.Fatal(err)
	}
	d := s.settle(t, ref)
	s.wantAtRest(t, ref, revision.Deployed)
	return d
}

// TestOldBuildsAreRemoved deploys more revisions than keep their builds, and then some of them
// again: a revision with a build, which is not repeated, and a revision without a build.
func TestOldBuildsAreRemoved(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.builder.outcome = func(spec build.Spec) build.Result {
		result := built(spec)
		if result.CommitSHA = "commit-at-" + spec.Revision; spec.Commit != "" {
			result.CommitSHA = spec.Commit
		}
		return result
	}
	var fragile atomic.Value
	m.builder.entered = func(method, id string) {
		if method == "Remove" && fragile.CompareAndSwap(id, "") {
			m.builder.fail("Remove", 1)
		}
	}
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	ids := []string{d.Latest}
	fragile.Store(d.Latest) // its removal fails at first
	deploy := func() {
		s.patch(t, d.Ref, again("main"))
		d = s.settle(t, d.Ref)
		s.wantAtRest(t, d.Ref, revision.Deployed)
		ids = append(ids, d.Latest)
	}
	for range keptBuilds {
		deploy()
	}
	// The revision is deployed all the same, and the log shows the failed removal; the next
	// revision does the remaining removals.
	if left := m.builder.left(); !slices.Equal(left, ids) {
		t.Errorf("there are builds of %v, want %v", left, ids)
	}
	if log := m.log.String(); strings.Count(log, "old builds are left") != 1 || !strings.Contains(log, errInjected.Error()) || !strings.Contains(log, d.Latest) {
		t.Errorf("the log has %s", log)
	}
	deploy()
	if left := m.builder.left(); !slices.Equal(left, ids[2:]) {
		t.Errorf("there are builds of %v, want %v", left, ids[2:])
	}

	// The first of the remaining revisions is deployed again and again: its build is used, and
	// stays as long as the revision does.
	again := ids[2]
	d = s.redeploy(t, d.Ref, again)
	if r := s.revision(t, d.Ref, d.Latest); r.Artifact.Dir != "/builds/"+again || r.CommitSHA != "commit-at-"+again {
		t.Errorf("it runs %+v of %s", r.Artifact, r.CommitSHA)
	}
	for range keptBuilds - 1 {
		deploy()
	}
	if left := m.builder.left(); !slices.Contains(left, again) || slices.Contains(left, ids[3]) || len(left) != keptBuilds {
		t.Errorf("there are builds of %v, want those of the last %d revisions, of which one has that of %s", left, keptBuilds, again)
	}
	deploy()
	if left := m.builder.left(); slices.Contains(left, again) || len(left) != keptBuilds {
		t.Errorf("there are builds of %v", left)
	}

	// The oldest revision has no build any more: its commit is built again, though the branch
	// moved on.
	oldest := ids[0]
	if r := s.revision(t, d.Ref, oldest); r.Status != revision.Deployed || r.CommitSHA != "commit-at-"+oldest {
		t.Errorf("the oldest is %s of %s", r.Status, r.CommitSHA)
	}
	for range 2 {
		d = s.redeploy(t, d.Ref, oldest)
		r := s.revision(t, d.Ref, d.Latest)
		if r.CommitSHA != "commit-at-"+oldest || r.Artifact.Dir != "/builds/"+r.Revision || m.builder.specs[r.Revision].Commit != r.CommitSHA {
			t.Errorf("it runs %+v of %s", r.Artifact, r.CommitSHA)
		}
	}
	// The revision that was made from it has a build of its own.
	made := d.Latest
	d = s.redeploy(t, d.Ref, made)
	if r := s.revision(t, d.Ref, d.Latest); r.Artifact.Dir != "/builds/"+made {
		t.Errorf("it runs %+v, want the build of %s", r.Artifact, made)
	}
}

// inQueue is what a builder says of a build that waits in the queue of the platform's account.
var inQueue = build.Result{State: build.Running, Reason: build.ReasonNoCapacity, Message: "the quota builds at once of the account"}

// TestABuildInTheQueueSaysWhatItWaitsFor as long as it waits. When it runs, it says nothing more.
func TestABuildInTheQueueSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.patience = time.Millisecond
	m.builder.outcome = func(build.Spec) build.Result { return inQueue }
	s := m.start(t, m.table)
	var said []string
	s.around = func(ctx context.Context, step string, perform performFunc) (json.RawMessage, error) {
		output, err := perform(ctx)
		if step != "AwaitBuild" {
			return output, err
		}
		page, listErr := s.deployments.Search(t.Context(), workspace, deployment.Filter{}, record.Window{Limit: 1})
		if listErr != nil {
			return nil, listErr
		}
		r := s.revisions(t, page.Items[0].Ref)[0]
		if said = append(said, r.Reason+": "+r.Message); r.Doomed() || err != nil {
			t.Errorf("the revision is about to fail: %s, %v", r.Message, err)
		}
		m.builder.mu.Lock()
		defer m.builder.mu.Unlock()
		switch len(said) {
		case 2:
			m.builder.builds[r.Revision] = build.Result{State: build.Running}
		case 3:
			m.builder.builds[r.Revision] = built(m.builder.specs[r.Revision])
		}
		return output, err
	}
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	waits := inQueue.Reason + ": " + inQueue.Message
	if want := []string{waits, waits, ": ", ": "}; !slices.Equal(said, want) {
		t.Errorf("it said %q, want %q", said, want)
	}
}

// TestABuildThatIsLostEachTimeFails has a builder that loses each build before the build has a
// result. The next revision gets the slot.
func TestABuildThatIsLostEachTimeFails(t *testing.T) {
	t.Parallel()
	for lost, want := range map[int]revision.Status{5: revision.Deployed, 1000: revision.BuildFailed} {
		m := newMachine(t)
		var starts int
		m.builder.outcome = func(spec build.Spec) build.Result {
			if starts++; starts <= lost && spec.Ref != "good" {
				return build.Result{State: build.Absent, Message: "its host is gone"}
			}
			return built(spec)
		}
		s := m.start(t, m.table)
		d := s.settle(t, s.create(t, fromGit("weather")).Ref)
		s.wantAtRest(t, d.Ref, want)
		if want == revision.Deployed {
			continue
		}
		if r := s.revision(t, d.Ref, d.Latest); r.Reason != build.ReasonInternal || starts != 11 {
			t.Errorf("it was built %d times, and has %s: %s", starts, r.Reason, r.Message)
		}
		if log := m.log.String(); strings.Count(log, "lost again and again") != 1 || strings.Count(log, "its host is gone") != starts {
			t.Errorf("the log has %s", m.log.String())
		}
		s.patch(t, d.Ref, again("good"))
		d = s.settle(t, d.Ref)
		s.wantAtRest(t, d.Ref, revision.Deployed)
	}
}

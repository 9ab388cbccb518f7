package rollout_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// minder is a target whose releases relapse when the test says so.
type minder struct {
	*target
	relapses func(compute.Release) string
	asked    atomic.Int64
	// later is how much time has passed while releases stayed healthy.
	later fixtures.RunningClock
	// waited, when not nil, is told of each wait. The wait then lasts as long as it may, and
	// no time passes.
	waited chan struct{}
}

// AwaitRelapse lets an hour pass if the release does not relapse.
func (m *minder) AwaitRelapse(ctx context.Context, ref compute.Ref) (string, error) {
	m.asked.Add(1)
	if m.waited != nil {
		m.waited <- struct{}{}
		<-ctx.Done()
		return "", nil
	}
	release, _ := m.release(ref.Revision)
	why := m.relapses(release)
	if why == "" {
		m.later.Pass(time.Hour)
	}
	return why, nil
}

// mind starts a server whose releases relapse as relapses says.
func mind(t *testing.T, relapses func(compute.Release) string) (*server, *minder) {
	t.Helper()
	m := newMachine(t)
	s := m.start(t, m.table)
	return s, s.minded(relapses)
}

// minded makes the server's releases relapse as relapses says, and its clock go on while they
// are minded.
func (s *server) minded(relapses func(compute.Release) string) *minder {
	minded := &minder{target: s.target, relapses: relapses}
	s.rollout.Targets[revision.GitHub] = minded
	s.rollout.Now = minded.later.Now
	return minded
}

// steady releases do not relapse.
func steady(compute.Release) string { return "" }

// badRef is the branch whose releases do not stay healthy.
const badRef = "bad"

func badRelapses(release compute.Release) string {
	if release.Env["PLATFORM_FRAMEWORK_GIT_REF"] == badRef {
		return "It ended 3 times."
	}
	return ""
}

// guarded is a request for a deployment that asks for automatic rollback.
func guarded() deployment.NewDeployment {
	request := fromGit("weather")
	request.AutoRollback = new(true)
	return request
}

// wantRevisions checks the revisions' refs and reasons, the oldest first.
func (s *server) wantRevisions(t *testing.T, d deployment.Deployment, want string) {
	t.Helper()
	var got []string
	for _, r := range s.revisions(t, d.Ref) {
		got = append([]string{strings.TrimSpace(*r.Config.RepoRef + " " + string(r.Status) + " " + r.Reason)}, got...)
	}
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("revisions are %s\nwant %s", text, want)
	}
}

func TestARevisionThatDoesNotStayHealthyIsRolledBack(t *testing.T) {
	t.Parallel()
	for name, around := range map[string]func(context.Context, string, performFunc) (json.RawMessage, error){
		"once": nil,
		"each step twice at once": func(ctx context.Context, _ string, perform performFunc) (json.RawMessage, error) {
			other := make(chan error)
			go func() {
				_, err := perform(ctx)
				other <- err
			}()
			answer, err := perform(ctx)
			if err := <-other; err != nil {
				return nil, err
			}
			return answer, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := mind(t, badRelapses)
			s.around = around
			first := s.settle(t, s.create(t, guarded()).Ref)
			s.patch(t, first.Ref, again(badRef))
			d := s.settle(t, first.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			s.wantRevisions(t, d, "main DEPLOYED, bad DEPLOYED ROLLED_BACK, main DEPLOYED")
			all := s.revisions(t, d.Ref) // newest first
			if *d.RevisionConfig.RepoRef != "main" || all[0].CommitSHA != all[2].CommitSHA || all[0].CommitSHA == "" {
				t.Errorf("got %+v, want what the first revision was made from", d)
			}
			if why := all[1].Message; !strings.Contains(why, first.Active) || !strings.Contains(why, "It ended 3 times.") {
				t.Errorf("the message is %q", why)
			}
		})
	}
}

// old is a table that answers once with an item as it was.
type old struct {
	table.Table
	item atomic.Pointer[table.Item]
}

func (o *old) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	if item := o.item.Load(); item != nil && item.Key == key && o.item.CompareAndSwap(item, nil) {
		return item, nil
	}
	return o.Table.Get(ctx, key)
}

// TestAPromotionBetweenTwoReadsIsObserved: the deployment is read before the promotion, and the
// revision after it. The answer of such a step must not end the rollout unobserved.
func TestAPromotionBetweenTwoReadsIsObserved(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	reads := &old{Table: m.table}
	s := m.start(t, reads)
	s.minded(badRelapses)
	first := s.settle(t, s.create(t, guarded()).Ref)
	s.around = func(ctx context.Context, step string, perform performFunc) (json.RawMessage, error) {
		if step != "Promote" {
			return perform(ctx)
		}
		before, err := m.table.Get(ctx, first.Key())
		if err != nil {
			return nil, err
		}
		if answer, err := perform(ctx); err != nil {
			return answer, err
		}
		reads.item.Store(before)
		return perform(ctx)
	}
	s.patch(t, first.Ref, again(badRef))
	d := s.settle(t, first.Ref)
	s.wantRevisions(t, d, "main DEPLOYED, bad DEPLOYED ROLLED_BACK, main DEPLOYED")
}

func TestWhenNothingIsRolledBack(t *testing.T) {
	t.Parallel()
	always := func(compute.Release) string { return "It ended 3 times." }
	for name, c := range map[string]struct {
		asks     *bool
		relapses func(compute.Release) string
		refs     []string
		want     string
	}{
		"nobody asked for it":               {nil, always, []string{badRef}, "main DEPLOYED, bad DEPLOYED"},
		"it is turned off":                  {new(false), always, []string{badRef}, "main DEPLOYED, bad DEPLOYED"},
		"there is none before":              {new(true), always, nil, "main DEPLOYED"},
		"it stays healthy":                  {new(true), badRelapses, []string{"good"}, "main DEPLOYED, good DEPLOYED"},
		"the one before does not stay so":   {new(true), always, []string{badRef}, "main DEPLOYED, bad DEPLOYED ROLLED_BACK, main DEPLOYED"},
		"the one before was rolled back to": {new(true), badRelapses, []string{badRef, badRef}, "main DEPLOYED, bad DEPLOYED ROLLED_BACK, main DEPLOYED, bad DEPLOYED ROLLED_BACK, main DEPLOYED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, minded := mind(t, c.relapses)
			request := fromGit("weather")
			request.AutoRollback = c.asks
			d := s.create(t, request)
			d = s.settle(t, d.Ref)
			for _, ref := range c.refs {
				s.patch(t, d.Ref, again(ref))
				d = s.settle(t, d.Ref)
			}
			s.wantAtRest(t, d.Ref, revision.Deployed)
			s.wantRevisions(t, d, c.want)
			if (c.asks == nil || !*c.asks) && minded.asked.Load() > 0 {
				t.Error("the release was observed")
			}
		})
	}
}

// TestANewerRevisionComesBeforeARollback: a newer revision is in flight when the active
// revision relapses.
func TestANewerRevisionComesBeforeARollback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ref, want string }{
		"it is good": {"good", "main DEPLOYED, bad DEPLOYED, good DEPLOYED"},
		"it fails":   {"broken", "main DEPLOYED, bad DEPLOYED ROLLED_BACK, broken BUILD_FAILED BUILD_COMMAND_FAILED, main DEPLOYED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relapsed, mended := make(chan struct{}), make(chan struct{})
			s, _ := mind(t, func(release compute.Release) string {
				if release.Env["PLATFORM_FRAMEWORK_GIT_REF"] != badRef {
					return ""
				}
				select {
				case <-relapsed:
				default:
					close(relapsed)
				}
				<-mended
				return "It ended 3 times."
			})
			s.builder.outcome = func(spec build.Spec) build.Result {
				if spec.Ref == "broken" {
					return build.Result{State: build.Failed, Reason: build.ReasonBuildCommandFailed, Message: "no"}
				}
				return built(spec)
			}
			d := s.settle(t, s.create(t, guarded()).Ref)
			s.patch(t, d.Ref, again(badRef))
			<-relapsed
			s.builder.hold(true)
			s.patch(t, d.Ref, again(c.ref))
			close(mended)
			s.builder.finish()
			d = s.settle(t, d.Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			s.wantRevisions(t, d, c.want)
		})
	}
}

// TestNothingRunsAnObservedRevisionAnyMore continues the observation on a server that has no target
// for the release: the revision stays as it is.
func TestNothingRunsAnObservedRevisionAnyMore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.patience = time.Hour
	s := m.start(t, m.table)
	minded := s.minded(steady)
	first := s.settle(t, s.create(t, guarded()).Ref)
	minded.waited = make(chan struct{}, 100)
	s.patch(t, first.Ref, again("dev"))
	<-minded.waited
	s.kill()
	s.sources = nil
	next := s.start(t, s.table)
	next.resume(t)
	d := next.settle(t, first.Ref)
	next.wantAtRest(t, d.Ref, revision.Deployed)
	if log := m.log.String(); strings.Contains(log, "panicked") {
		t.Error(log)
	}
}

package rollout_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// TestFailuresOfABuildEndInWords checks every reason, for the first revision and for a
// revision after a revision that serves.
func TestFailuresOfABuildEndInWords(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		build.ReasonRepoUnreachable, build.ReasonRefNotFound, build.ReasonConfigNotFound, build.ReasonConfigInvalid,
		build.ReasonBuildCommandFailed, build.ReasonBuildTimeout,
	} {
		wantFailures(t, reason, revision.BuildFailed, func(m *machine, message string) {
			m.builder.outcome = func(spec build.Spec) build.Result {
				if spec.Ref == "good" {
					return built(spec)
				}
				return build.Result{State: build.Failed, Reason: reason, Message: message}
			}
		})
	}
}

func TestFailuresOfAReleaseEndInWords(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{compute.ReasonStartFailed, compute.ReasonNotReady, compute.ReasonPortTaken} {
		wantFailures(t, reason, revision.DeployFailed, func(m *machine, message string) {
			good := map[string]bool{}
			m.builder.outcome = func(spec build.Spec) build.Result {
				good[spec.Revision] = spec.Ref == "good"
				return built(spec)
			}
			m.target.health = func(release compute.Release) compute.Status {
				if good[release.Revision] {
					return compute.Status{State: compute.Healthy}
				}
				return compute.Status{State: compute.Failed, Reason: reason, Message: message}
			}
		})
	}
}

// wantFailures checks revisions of the ref "bad", which the machine lets fail.
func wantFailures(t *testing.T, reason string, status revision.Status, arrange func(m *machine, message string)) {
	t.Helper()
	const message = "it failed:\nlast line of output"
	for _, name := range []string{"first", "after one that serves"} {
		t.Run(reason+" "+name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			arrange(m, message)
			s := m.start(t, m.table)
			request := fromGit("weather")
			request.RevisionConfig.RepoRef = new("bad")
			active := ""
			if name != "first" {
				request.RevisionConfig.RepoRef = new("good")
			}
			d := s.settle(t, s.create(t, request).Ref)
			if name != "first" {
				active = d.Active
				s.patch(t, d.Ref, again("bad"))
				d = s.settle(t, d.Ref)
			}
			s.wantAtRest(t, d.Ref, status)
			r := s.revision(t, d.Ref, d.Latest)
			if r.Reason != reason || r.Message != message || d.Active != active || (active == "") == (len(m.target.left()) == 1) {
				t.Errorf("got %s: %q, active %q; want %s: %q, active %q", r.Reason, r.Message, d.Active, reason, message, active)
			}
			if got := s.executionStatus(t, workflow.Rollout, d.Latest); got != workflow.Failed {
				t.Errorf("the workflow is %s, want FAILED", got)
			}
			for _, left := range m.builder.left() {
				if left == d.Latest {
					t.Error("the failed build is left")
				}
			}
		})
	}
}

// TestADeploymentRecoversFromAFailure makes a good revision after a bad one.
func TestADeploymentRecoversFromAFailure(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.builder.outcome = func(spec build.Spec) build.Result {
		if spec.Ref == "main" {
			return build.Result{State: build.Failed, Reason: build.ReasonRefNotFound, Message: "no such ref"}
		}
		return built(spec)
	}
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	if d.Status != deployment.Ready || d.CommitSHA != "" {
		t.Errorf("after the failure: got %+v, want it READY without a commit", d)
	}
	s.patch(t, d.Ref, again("dev"))
	d = s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestANotedFailureStands ends the server between the note and the end of the revision. The
// build is lost, and would succeed now. Still the revision ends with the noted failure, and a
// DEPLOYED revision never says that it failed.
func TestANotedFailureStands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrange, mend func(m *machine)
		status        revision.Status
	}{
		"of a build": {
			func(m *machine) {
				m.builder.outcome = func(build.Spec) build.Result {
					return build.Result{State: build.Failed, Reason: "REASON", Message: "words"}
				}
			},
			func(m *machine) { m.builder.outcome = built; clear(m.builder.builds) },
			revision.BuildFailed,
		},
		"of a release": {
			func(m *machine) {
				m.target.health = func(compute.Release) compute.Status {
					return compute.Status{State: compute.Failed, Reason: "REASON", Message: "words"}
				}
			},
			func(m *machine) { m.target.health = healthy; m.target.lose() },
			revision.DeployFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			c.arrange(m)
			mortal := newMortal(m.table)
			mortal.dieAfter(func(r revision.Revision) bool { return r.Reason != "" })
			first := m.start(t, mortal)
			created := first.create(t, fromGit("weather"))
			<-mortal.died
			mortal.bury(first)
			c.mend(m)
			s := m.start(t, m.table)
			s.resume(t)
			s.settle(t, created.Ref)
			s.wantAtRest(t, created.Ref, c.status)
			if r := s.revision(t, created.Ref, created.Latest); r.Reason != "REASON" || r.Message != "words" {
				t.Errorf("got %s: %s", r.Reason, r.Message)
			}
		})
	}
}

// TestWorkWaitsForItsPlace refuses work more often than other failures are repeated, and reads
// the revision's message meanwhile. A revision that waited has no message in the end.
func TestWorkWaitsForItsPlace(t *testing.T) {
	t.Parallel()
	full := compute.Status{State: compute.Failed, Reason: "NO_CAPACITY", Message: "the quota tasks of the account"}
	for name, arrange := range map[string]func(m *machine){
		"of a build": func(m *machine) {
			m.builder.injected = &build.NoCapacity{Quota: "builds"}
			m.builder.fail("Start", 20)
		},
		"of a release": func(m *machine) {
			m.target.injected = &compute.NoCapacity{Quota: "releases"}
			m.target.fail("Apply", 20)
		},
		"of a release that was begun": func(m *machine) {
			var starts atomic.Int64
			m.target.health = func(compute.Release) compute.Status {
				if starts.Add(1) <= 20 {
					return full
				}
				return compute.Status{State: compute.Healthy}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			arrange(m)
			s := m.start(t, m.table)
			var refusals atomic.Int64
			s.around = func(ctx context.Context, step string, perform func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
				output, err := perform(ctx)
				if named, ok := errors.AsType[*workflow.TaskError](err); ok && named.Name == workflow.ErrorNoCapacity {
					refusals.Add(1)
					page, listErr := s.deployments.Search(t.Context(), workspace, deployment.Filter{}, record.Window{Limit: 1})
					if listErr != nil {
						return nil, listErr
					}
					if r := s.revisions(t, page.Items[0].Ref)[0]; r.Reason != "NO_CAPACITY" || !strings.Contains(r.Message, "the quota") || r.Doomed() {
						t.Errorf("at %s it says %s: %s", step, r.Reason, r.Message)
					}
				}
				return output, err
			}
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			s.wantAtRest(t, d.Ref, revision.Deployed)
			if r := s.revision(t, d.Ref, d.Latest); r.Reason != "" || r.Message != "" || r.Waits {
				t.Errorf("in the end it says %s: %s", r.Reason, r.Message)
			}
			if got := refusals.Load(); got != 20 {
				t.Errorf("%d steps were repeated, want 20", got)
			}
		})
	}
}

// TestQuotasAreNamed lets a revision fail for which there is no room for hours. The time
// counts from the moment when the revision began to wait for room: another revision had the
// slot for half a day.
func TestQuotasAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrange func(m *machine)
		status  revision.Status
	}{
		"of builds": {func(m *machine) {
			m.builder.injected = &build.NoCapacity{Quota: "builds at once"}
			m.builder.fail("Start", -1)
		}, revision.BuildFailed},
		"of builds that were begun": {func(m *machine) {
			m.patience = time.Millisecond
			m.builder.outcome = func(build.Spec) build.Result { return inQueue }
		}, revision.BuildFailed},
		"of releases": {func(m *machine) {
			m.target.injected = &compute.NoCapacity{Quota: "builds at once"}
			m.target.fail("Apply", -1)
		}, revision.DeployFailed},
		"of releases that were begun": {func(m *machine) {
			m.target.health = func(compute.Release) compute.Status {
				return compute.Status{State: compute.Failed, Reason: "NO_CAPACITY", Message: "the quota builds at once of the account"}
			}
		}, revision.DeployFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			c.arrange(m)
			var looks atomic.Int64 // each reading of the clock is five minutes later
			m.now = func() time.Time { return clock.System().Add(time.Duration(looks.Add(1)) * 5 * time.Minute) }
			s := m.start(t, m.table)
			d := s.settle(t, s.create(t, fromGit("weather")).Ref)
			s.wantAtRest(t, d.Ref, c.status)
			if r := s.revision(t, d.Ref, d.Latest); r.Reason != "NO_CAPACITY" || !strings.Contains(r.Message, "the quota builds at once of") {
				t.Errorf("got %s: %s", r.Reason, r.Message)
			}
		})
	}
}

// TestTheWaitForRoomBeginsWithTheStep: the time in which a revision was queued behind another
// revision does not count as a wait for room.
func TestTheWaitForRoomBeginsWithTheStep(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	late := m.late()
	m.builder.hold(true)
	building := make(chan struct{})
	var once sync.Once
	m.builder.entered = func(method, _ string) {
		if method == "Await" {
			once.Do(func() { close(building) })
		}
	}
	s := m.start(t, m.table)
	d := s.create(t, fromGit("weather"))
	<-building
	queued := s.patch(t, d.Ref, again("next")).Latest
	late.Pass(12 * time.Hour)
	m.builder.injected = &build.NoCapacity{Quota: "builds"}
	m.builder.fail("Start", 3)
	m.builder.finish()
	d = s.settle(t, d.Ref)
	if r := s.revision(t, d.Ref, queued); r.Status != revision.Deployed {
		t.Errorf("it is %s: %s: %s", r.Status, r.Reason, r.Message)
	}
}

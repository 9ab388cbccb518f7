package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/test/check"
)

// try makes a second revision that is a canary of the given percent, and returns the active
// revision and the canary.
func (f *fixture) try(t *testing.T, percent int) (active, canary revision.Revision) {
	t.Helper()
	request := fromGit("weather")
	request.CanaryPercent = &percent
	created := f.create(t, request)
	active = f.promote(t, created.Ref)
	f.patch(t, created.Ref, again)
	d, r := f.carry(t, created.Ref)
	check.Must(t, f.BeginCanary(t.Context(), d, r))
	return active, f.revision(t, d.Ref, r.Revision)
}

// TestTheShareOfACanary checks that the share is about as large as requested, and consists of
// whole threads: each thread has the same release at every request.
func TestTheShareOfACanary(t *testing.T) {
	t.Parallel()
	const threads = 2000
	for _, percent := range []int{1, 10, 50, 99} {
		f := setUp(t)
		active, canary := f.try(t, percent)
		tried := 0
		for range threads {
			thread := id.New(f.clock.Now())
			by := f.serving(t, active.Deployment, thread)
			if again := f.serving(t, active.Deployment, thread); again != by {
				t.Fatalf("thread %s is served by %s, and then by %s", thread, by, again)
			}
			switch by {
			case canary.Revision:
				tried++
			case active.Revision:
			default:
				t.Fatalf("thread %s is served by %s", thread, by)
			}
		}
		// The ids are random: at 50 % the standard deviation is 22 threads.
		want := threads * percent / 100
		if off := tried - want; off < -110 || off > 110 || tried == 0 {
			t.Errorf("%d %%: %d of %d threads, want about %d", percent, tried, threads, want)
		}
		if by := f.serving(t, active.Deployment, ""); by != active.Revision {
			t.Errorf("what belongs to no thread is served by %s", by)
		}
	}
}

// serving returns the revision that serves a thread.
func (f *fixture) serving(t *testing.T, deploymentID, thread string) string {
	t.Helper()
	release, err := f.Serving(t.Context(), workspace, deploymentID, thread)
	check.Must(t, err)
	return release.Revision
}

// TestEachCanaryHasOtherThreads: a thread must not be in every canary.
func TestEachCanaryHasOtherThreads(t *testing.T) {
	t.Parallel()
	f, other := setUp(t), setUp(t)
	one, tried := f.try(t, 50)
	two, _ := other.try(t, 50)
	both := 0
	for n := range 1000 {
		thread := fmt.Sprintf("0197a000-0000-7000-8000-%012x", n)
		if f.serving(t, one.Deployment, thread) == tried.Revision && other.serving(t, two.Deployment, thread) != two.Revision {
			both++
		}
	}
	if both < 150 || both > 350 {
		t.Errorf("%d of 1000 threads are in both halves, want about 250", both)
	}
}

// TestACanaryChangesNothingThatIsShown of the deployment, so that a client that has read the
// deployment can still change it.
func TestACanaryChangesNothingThatIsShown(t *testing.T) {
	t.Parallel()
	request := fromGit("weather")
	request.CanaryPercent = new(10)
	f := setUp(t)
	created := f.create(t, request)
	f.promote(t, created.Ref)
	f.patch(t, created.Ref, again)
	d, r := f.carry(t, created.Ref)
	check.Must(t, f.BeginCanary(t.Context(), d, r))
	during := f.get(t, d.Ref)
	if during.Canary != 10 || during.Version() != d.Version() || during.Updated != d.Updated {
		t.Errorf("got %+v, was %+v", during, d)
	}
	if err := f.BeginCanary(t.Context(), d, r); err == nil {
		t.Error("it has begun twice")
	}
	check.Must(t, f.EndCanary(t.Context(), during))
	if after := f.get(t, d.Ref); after.Canary != 0 || after.Version() != d.Version() {
		t.Errorf("got %+v after the end", after)
	}
}

// TestNoCanaryIsPromotedThatIsAboutToFail, also when its failure is noted during the request
// for the promotion: its release is being removed.
func TestNoCanaryIsPromotedThatIsAboutToFail(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *fixture, deployment.Deployment, revision.Revision) error{
		"it is noted why": func(t *testing.T, f *fixture, d deployment.Deployment, r revision.Revision) error {
			return f.Advance(t.Context(), d, r.Note(f.clock.Now(), revision.ReasonCanaryFailed, "It ended."))
		},
		"its share has ended": func(t *testing.T, f *fixture, d deployment.Deployment, _ revision.Revision) error {
			return f.EndCanary(t.Context(), d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			active, canary := f.try(t, 50)
			slow := &interrupted{Table: f.table, before: func() {
				d, r, err := f.GetRevision(t.Context(), canary.Ref)
				if err == nil {
					err = end(t, f, d, r)
				}
				if err != nil {
					t.Error(err)
				}
			}}
			store := deployment.NewStore(deployment.Config{Table: slow, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now})
			r, err := store.PromoteCanary(t.Context(), canary.Ref)
			if d := f.get(t, deployment.Ref{Workspace: workspace, Deployment: canary.Deployment}); !fault.Is(err, fault.Conflict) || d.Active != active.Revision {
				t.Errorf("got %s (%v), and %s is active, want a fault of kind conflict, and %s", r.Status, err, d.Active, active.Revision)
			}
		})
	}
}

// TestNoCanaryAtAListener checks that the fault names the field.
func TestNoCanaryAtAListener(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromImage("weather")
	request.SourceConfig.ListenerID = new("0197a000-0000-7000-8000-00000000000a")
	request.CanaryPercent = new(1)
	if _, err := f.Create(t.Context(), request); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "canary_percent must be 0") {
		t.Errorf("got %v", err)
	}
	request.CanaryPercent = new(0)
	if _, err := f.Create(t.Context(), request); err != nil && strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

// TestARevisionThatBeginsOrEndsItsOwnAuthenticationGetsNoCanary: until the revision is
// promoted, the agent server would serve it under the rules of another revision.
func TestARevisionThatBeginsOrEndsItsOwnAuthenticationGetsNoCanary(t *testing.T) {
	t.Parallel()
	percent := 10
	for _, c := range []struct {
		active bool
		next   string
		want   bool
	}{{false, "", true}, {true, "./auth.py:auth", true}, {true, "", false}, {false, "./auth.py:auth", false}} {
		d := deployment.Deployment{Active: "active", Auth: c.active}
		d.CanaryPercent = &percent
		if got := d.WantsCanary(revision.Revision{Artifact: build.Artifact{Auth: c.next}}); got != c.want {
			t.Errorf("from %t to %q: %t", c.active, c.next, got)
		}
	}
}

// TestARevisionThatBeginsToEncryptGetsNoCanary: the agent server asks the active revision to
// encrypt.
func TestARevisionThatBeginsToEncryptGetsNoCanary(t *testing.T) {
	t.Parallel()
	percent := 10
	for _, encrypted := range []bool{false, true} {
		d := deployment.Deployment{Active: "active", Encrypted: encrypted}
		d.CanaryPercent = &percent
		if got := d.WantsCanary(revision.Revision{Artifact: build.Artifact{Encryption: "./own.py:e"}}); got != encrypted {
			t.Errorf("from %t: %t", encrypted, got)
		}
	}
}

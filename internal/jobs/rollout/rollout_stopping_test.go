package rollout_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/revision"
)

// stop ends a server and gives it all the time that it needs.
func (s *server) stop(t *testing.T, meanwhile func()) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		s.workflow.Close(context.Background())
		close(closed)
	}()
	<-s.workflow.Closing().Done()
	meanwhile()
	tooLong := time.NewTimer(time.Minute)
	defer tooLong.Stop()
	select {
	case <-closed:
	case <-tooLong.C:
		t.Fatal("the server waits for what does not come")
	}
}

// entering returns a channel that tells when a method of a fake is called first.
func (f *fake) entering(awaited string) <-chan struct{} {
	calls := make(chan struct{}, 1)
	f.entered = func(method, _ string) {
		if method == awaited {
			select {
			case calls <- struct{}{}:
			default:
			}
		}
	}
	return calls
}

// TestNoReleaseKeepsTheProcess that is about to end: the step that waits for the release has
// the patience of an hour, and the release never answers.
func TestNoReleaseKeepsTheProcess(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.patience = time.Hour
	m.target.hold(true)
	waiting := m.target.entering("Await")
	s := m.start(t, m.table)
	d := s.create(t, fromGit("weather"))
	<-waiting
	s.stop(t, func() {})
	if r := s.revision(t, d.Ref, d.Latest); r.Status != revision.Deploying {
		t.Errorf("the revision is %s (%s: %s), want it to go on at the next start", r.Status, r.Reason, r.Message)
	}
	m.target.finish()
	next := m.start(t, m.table)
	next.resume(t)
	next.settle(t, d.Ref)
	next.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestNoCanaryKeepsTheProcess that is about to end, however long the canary must be minded.
func TestNoCanaryKeepsTheProcess(t *testing.T) {
	t.Parallel()
	s, _, _, d := onTrial(t)
	s.stop(t, func() {})
	if r := s.revision(t, d.Ref, d.Latest); r.Status != revision.Deploying || r.Reason != revision.ReasonCanary {
		t.Errorf("the revision is %s (%s: %s), want it to be a canary at the next start", r.Status, r.Reason, r.Message)
	}
}

// TestABuildMayEndBeforeTheProcess does, because the build would otherwise have to begin again.
func TestABuildMayEndBeforeTheProcess(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.patience = time.Hour
	m.builder.hold(true)
	building := m.builder.entering("Await")
	s := m.start(t, m.table)
	d := s.create(t, fromGit("weather"))
	<-building
	s.stop(t, m.builder.finish)
	if r := s.revision(t, d.Ref, d.Latest); r.Artifact.Dir == "" {
		t.Errorf("the revision is %s (%s: %s), want it to be built", r.Status, r.Reason, r.Message)
	}
}

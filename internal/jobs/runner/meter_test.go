package runner_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// shift is a runner whose clock stands still unless the test moves it, and the agents' work that
// the runner has told.
type shift struct {
	*fixture
	at   atomic.Int64
	told chan time.Duration
	// agent gets a channel for each call of the agent. The call ends with the error that is sent.
	agent chan chan error
	// left gets a value for each run that has left its agent.
	left chan struct{}
}

// exit is a target that says when a caller leaves.
type exit struct {
	compute.Target

	left chan struct{}
}

func (e exit) Acquire(ctx context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	endpoint, done, err := e.Target.Acquire(ctx, ref)
	return endpoint, func() {
		done()
		e.left <- struct{}{}
	}, err
}

// newShift returns a runner at half past a minute. Its heartbeats are faster than any test.
func newShift(t *testing.T, scales bool) *shift {
	t.Helper()
	s := &shift{told: make(chan time.Duration, 1000), agent: make(chan chan error, 10), left: make(chan struct{}, 10)}
	s.at.Store(time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC).UnixNano())
	endpoint := graphtest.Start(t, func(ctx context.Context, _ graph.Invocation, emit func(string, any)) error {
		emit(graph.EventMessages, chunk("m", "working"))
		call := make(chan error)
		s.agent <- call
		select {
		case err := <-call:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	s.fixture = newFixture(t, endpoint, func(c *runner.Config) {
		c.ReadLimits = func(context.Context, compute.Ref) (compute.RunLimits, error) {
			return compute.RunLimits{Scales: scales}, nil
		}
		c.Busy = func(_ context.Context, release compute.Ref, worked time.Duration) {
			if want := (compute.Ref{Workspace: "w", Deployment: "d", Revision: "revision 0"}); release != want {
				t.Errorf("told of %+v", release)
			}
			s.told <- worked
		}
		c.Now = func() time.Time { return time.Unix(0, s.at.Load()) }
		c.Heartbeat, c.Target = time.Millisecond, exit{c.Target, s.left}
	})
	return s
}

func (s *shift) move(seconds int64) { s.at.Add(seconds * int64(time.Second)) }

// want waits for the next time that is told.
func (s *shift) want(seconds int64) {
	s.t.Helper()
	if got := <-s.told; got != time.Duration(seconds)*time.Second {
		s.t.Errorf("told %s, want %d s", got, seconds)
	}
}

// wantNothing checks that everything was told.
func (s *shift) wantNothing() {
	s.t.Helper()
	select {
	case got := <-s.told:
		s.t.Errorf("told %s more", got)
	default:
	}
}

// TestEachSecondOfARunIsToldOnce: a run of 170 s is told with each minute, up to the minute's end,
// and with the rest at its own end.
func TestEachSecondOfARunIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newShift(t, true)
	r := s.create(s.newThread(), "hi", run.Enqueue)
	call := <-s.agent
	s.move(40) // 12:01:10
	s.want(30)
	s.move(50) // 12:02:00, a heartbeat comes in the first moment of a minute
	s.want(60)
	s.move(75) // 12:03:15
	s.want(60)
	s.move(5)
	call <- nil
	s.want(20)
	if got := s.join(r); got.Status != run.Success {
		t.Errorf("the run ended as %s", got.Status)
	}
	s.wantNothing()
}

// TestRunsOfAProcessAreToldTogether: three runs, of which one ends earlier and one begins later.
func TestRunsOfAProcessAreToldTogether(t *testing.T) {
	t.Parallel()
	s := newShift(t, true)
	s.create(s.newThread(), "1", run.Enqueue)
	first := <-s.agent
	s.move(10) // 12:00:40
	s.create(s.newThread(), "2", run.Enqueue)
	(<-s.agent) <- nil
	<-s.left
	s.move(30) // 12:01:10
	s.want(30)
	s.create(s.newThread(), "3", run.Enqueue)
	third := <-s.agent
	s.move(60)      // 12:02:10
	s.want(60 + 50) // the third run began ten seconds into the minute
	third <- nil    // the rest of both is told at the end of the last one
	<-s.left
	s.move(5)
	first <- nil
	s.want(10 + 10 + 5)
	s.wantNothing()
}

// TestTheWorkOfAnInterruptedRunIsToldOnce: the run that takes its place begins its own time. It may
// come to the agent before the interrupted run has left, and then one call tells of both.
func TestTheWorkOfAnInterruptedRunIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newShift(t, true)
	first := s.create(s.newThread(), "hi", run.Enqueue)
	<-s.agent
	s.move(20) // 12:00:50
	second := s.create(first.Ref.Ref, "stop", run.Interrupt)
	call := <-s.agent
	<-s.left
	s.move(25) // 12:01:15
	call <- nil
	<-s.left
	total := time.Duration(0)
	for len(s.told) > 0 {
		total += <-s.told
	}
	if want := (20 + 25) * time.Second; total != want {
		t.Errorf("told %s, want %s", total, want)
	}
	if got := s.join(second); got.Status != run.Success {
		t.Errorf("the run ended as %s", got.Status)
	}
}

// TestTheWorkOfEachAttemptIsToldOnce: the connection of the first attempt breaks, and the next
// attempt begins its own time. A process that dies tells nothing more: the seconds that it has
// not told are lost, and no other process tells them, because each knows only its own.
func TestTheWorkOfEachAttemptIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newShift(t, true)
	r := s.create(s.newThread(), "hi", run.Enqueue)
	call := <-s.agent
	s.move(40) // 12:01:10
	s.want(30)
	call <- graphtest.ErrBreak
	s.want(10)
	call = <-s.agent
	s.move(7)
	call <- nil
	s.want(7)
	if got := s.join(r); got.Attempt != 2 {
		t.Errorf("the run ended in attempt %d", got.Attempt)
	}
	s.wantNothing()
}

// TestWorkOfReleasesThatDoNotScaleIsNotTold, because a metric costs money.
func TestWorkOfReleasesThatDoNotScaleIsNotTold(t *testing.T) {
	t.Parallel()
	s := newShift(t, false)
	r := s.create(s.newThread(), "hi", run.Enqueue)
	call := <-s.agent
	s.move(100)
	call <- nil
	s.join(r)
	<-s.left
	s.wantNothing()
}

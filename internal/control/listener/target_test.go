package listener_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// everywhere is a target whose releases, of any workspace, run at a listener of that
// workspace. It creates the listener when it is needed, with a program.
type everywhere struct {
	*listener.Target
	t       *testing.T
	cluster *cluster
	places  chan map[string]listener.Ref
}

func (e *everywhere) Apply(ctx context.Context, r compute.Release) error {
	places := <-e.places
	at, known := places[r.Workspace]
	if !known {
		request := request("cluster", "agents")
		request.Workspace = r.Workspace
		l, err := e.Create(ctx, request)
		check.Must(e.t, err)
		at = l.Ref
		places[r.Workspace] = at
		for _, holder := range []string{"a", "b"} { // one process works, the other stands by
			(&program{store: e.Store, at: at, holder: holder, cluster: e.cluster}).start(e.t)
		}
	}
	e.places <- places
	return placed{e.Target, at}.Apply(ctx, r)
}

func TestTarget(t *testing.T) {
	t.Parallel()
	computetest.Run(t, func(t *testing.T) compute.Target {
		f := setUpAt(t, nil, clock.System)
		places := make(chan map[string]listener.Ref, 1)
		places <- map[string]listener.Ref{}
		return &everywhere{f.target, t, newCluster(t), places}
	})
}

// TestTargetOfTheRest runs releases that are not placed at a listener on another target, which
// passes the suite through this target.
func TestTargetOfTheRest(t *testing.T) {
	t.Parallel()
	computetest.Run(t, func(t *testing.T) compute.Target {
		f := setUpAt(t, nil, clock.System)
		return f.Target(newCluster(t).Target)
	})
}

// scene is a listener with a cluster of processes, and a release for it.
type scene struct {
	*fixture
	t        *testing.T
	cluster  *cluster
	listener listener.Listener
}

func newScene(t *testing.T) *scene {
	t.Helper()
	f := setUp(t)
	return &scene{f, t, newCluster(t), f.create(t, request("cluster", "agents"))}
}

func (s *scene) program(holder string) *program {
	return &program{store: s.Store, at: s.listener.Ref, holder: holder, cluster: s.cluster}
}

// agent is a release of a real process.
func (s *scene) agent() compute.Release {
	r := computetest.NewRelease(computetest.Serve)
	r.Workspace = workspace
	r.Placement = compute.Placement{Listener: s.listener.Listener, Namespace: "agents"}
	return r
}

func (s *scene) await(r compute.Release, want compute.State) {
	s.t.Helper()
	got, err := s.target.Await(patience(s.t), r.Ref)
	if err != nil || got.State != want {
		s.t.Fatalf("release is %+v, %v; want %s", got, err, want)
	}
}

// serves checks that the agent answers at the address that its listener reports.
func (s *scene) serves(r compute.Release) {
	s.t.Helper()
	endpoint, done, err := s.target.Acquire(patience(s.t), r.Ref)
	check.Must(s.t, err)
	defer done()
	if _, err := computetest.Ask(patience(s.t), endpoint, "pid"); err != nil {
		s.t.Error(err)
	}
}

// gone waits until a release is removed, and checks that nothing of it is left anywhere.
func (s *scene) gone(r compute.Release) {
	s.t.Helper()
	eventually(s.t, func() bool { return s.status(s.t, r).Message == "no listener runs it" })
	s.wantNothingLeft(s.t, s.listener, r)
	if got, err := s.cluster.Await(patience(s.t), r.Ref); err != nil || got.State != compute.Absent {
		s.t.Errorf("in the cluster it is %+v, %v", got, err)
	}
}

func TestTwoProcessesOfOneListener(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, holder := range []string{"a", "b", "c"} {
		s.program(holder).start(t)
	}
	releases := []compute.Release{s.agent(), s.agent(), s.agent(), s.agent()}
	for _, r := range releases {
		s.apply(t, r)
	}
	for _, r := range releases {
		s.await(r, compute.Healthy)
		s.serves(r)
		if n := s.cluster.starts(r.Revision); n != 1 {
			t.Errorf("it was started %d times", n)
		}
		s.remove(t, r)
	}
	for _, r := range releases {
		eventually(t, func() bool { return s.status(t, r).Message == "no listener runs it" })
	}
	for _, r := range releases {
		s.gone(r)
	}
}

// TestAFrozenProcess stops a process between its claim and its first action. It lets the
// process continue when another process has taken its place and done its work, and the release
// has been removed again.
func TestAFrozenProcess(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	frozen, thaw := make(chan struct{}), make(chan struct{})
	a := s.program("a")
	a.before = func(step string, _ listener.Work) {
		if step == "obey" {
			close(frozen)
			<-thaw
		}
	}
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	r := s.agent()
	s.apply(t, r)
	c, err := s.Claim(ctx, listener.ClaimRequest{Ref: a.at, Holder: a.holder})
	check.Must(t, err)
	a.busy = map[string]string{}
	a.begin(ctx, c.Session, one(t, c))
	<-frozen
	s.clock.Pass(time.Minute)
	s.program("b").start(t)
	s.await(r, compute.Healthy)
	s.serves(r)
	s.remove(t, r)
	s.gone(r)
	close(thaw)
	a.work.Wait()
	s.gone(r)
	if n := s.cluster.starts(r.Revision); n != 1 {
		t.Errorf("it was started %d times", n)
	}
	wantFault(t, s.Report(ctx, c.Session, on(one(t, c), 99, compute.Healthy)), fault.Conflict, "is over")
}

// TestAFrozenReporter continues with an old report, when the release is healthy according to
// another process.
func TestAFrozenReporter(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	frozen, thaw := make(chan struct{}), make(chan struct{})
	a := s.program("a")
	a.before = func(step string, _ listener.Work) {
		if step == "report" {
			close(frozen)
			<-thaw
		}
	}
	r := s.agent()
	s.apply(t, r)
	c := s.claim(t, s.listener, "a")
	a.busy = map[string]string{}
	a.begin(t.Context(), c.Session, one(t, c))
	<-frozen
	s.clock.Pass(time.Minute)
	s.program("b").start(t)
	s.await(r, compute.Healthy)
	close(thaw)
	a.work.Wait()
	s.want(t, r, compute.Healthy, "")
	s.serves(r)
	if n := s.cluster.starts(r.Revision); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// TestAKilledProcess dies at each of its steps; the next process repairs the result.
func TestAKilledProcess(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"obey", "report", "report the end"} {
		for _, verb := range []listener.Verb{listener.Apply, listener.Remove} {
			if verb == listener.Remove && at == "report the end" {
				continue
			}
			t.Run(string(verb)+", "+at, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				r := s.agent()
				s.apply(t, r)
				if verb == listener.Remove {
					stop := s.program("first").start(t)
					s.await(r, compute.Healthy)
					stop()
					s.remove(t, r)
					s.clock.Pass(time.Minute)
				}
				dying, dead := make(chan struct{}), make(chan struct{})
				a := s.program("a")
				a.before = func(step string, _ listener.Work) {
					if step == at {
						close(dying)
						<-dead
					}
				}
				ctx, kill := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- a.run(ctx) }()
				<-dying
				kill()
				close(dead)
				check.Must(t, <-ended)
				s.clock.Pass(time.Minute)
				s.program("b").start(t)
				if verb == listener.Apply {
					s.await(r, compute.Healthy)
					s.serves(r)
					if n := s.cluster.starts(r.Revision); n != 1 {
						t.Errorf("it was started %d times", n)
					}
					s.remove(t, r)
				}
				s.gone(r)
			})
		}
	}
}

// TestLostHeartbeats has a process that only claims, and each of its calls takes longer than
// its session.
func TestLostHeartbeats(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	r := s.agent()
	s.apply(t, r)
	var sessions []listener.Session
	for i, holder := range []string{"a", "b", "a", "b"} {
		c := s.claim(t, s.listener, holder)
		sessions = append(sessions, c.Session)
		if w := one(t, c); i == 3 {
			check.Must(t, s.cluster.obey(t.Context(), w))
		}
		for _, over := range sessions[:i] {
			s.wantFenced(t, s.listener, over)
		}
		s.clock.Pass(time.Minute)
	}
	s.program("c").start(t)
	s.await(r, compute.Healthy)
	if n := s.cluster.starts(r.Revision); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

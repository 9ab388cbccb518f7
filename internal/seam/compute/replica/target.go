package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Limits are the limits of a Target. A limit that is zero gets the default named at it.
type Limits struct {
	// ReadyLimit is how long a replica may take to answer GET /ping, unless its release says
	// otherwise (300 s).
	ReadyLimit time.Duration
	// DrainLimit is how long callers may continue with a replica that must stop (10 min).
	DrainLimit time.Duration
	// StopGrace is the time between SIGTERM and SIGKILL (10 s).
	StopGrace time.Duration
	// RestartMin and RestartMax bound the pause before a replica that crashed is started
	// again. The pause doubles from RestartMin (100 ms) to RestartMax (30 s). It begins again
	// with RestartMin when the replica was healthy for longer than RestartMax.
	RestartMin, RestartMax time.Duration
	// ContractLimit is how long a replica that answers may say that it does not know GET
	// /ping, before it counts as one that never will (10 s).
	ContractLimit time.Duration
	// LiveLimit is how long a replica that was healthy may leave GET /ping unanswered while it
	// has no callers. After that, it is stopped and started again (60 s). A replica that has
	// callers may be too busy to answer.
	LiveLimit time.Duration
	// RoomLimit is how long a caller waits for one more replica if the present replicas have
	// as many callers as they are meant for (10 s).
	RoomLimit time.Duration
	// IdleLimit is how long there must have been work for fewer replicas before a replica is
	// taken away (5 min).
	IdleLimit time.Duration
	// SleepAfter is how long nobody must call a release that may go down to no replica, so that
	// it sleeps (never).
	SleepAfter time.Duration
	// Awake is the number of awake releases that may sleep, with and without callers, above which
	// a release sleeps when nobody has called it for YieldAfter (no bound; 30 s). Without
	// SleepAfter they do nothing.
	Awake      int
	YieldAfter time.Duration
}

// OrDefaults returns the limits with the defaults in the place of zeros.
func (l Limits) OrDefaults() Limits {
	l.ReadyLimit = cmp.Or(l.ReadyLimit, 300*time.Second)
	l.DrainLimit = cmp.Or(l.DrainLimit, compute.DrainLimit)
	l.StopGrace = cmp.Or(l.StopGrace, 10*time.Second)
	l.RestartMin = cmp.Or(l.RestartMin, 100*time.Millisecond)
	l.RestartMax = cmp.Or(l.RestartMax, 30*time.Second)
	l.ContractLimit = cmp.Or(l.ContractLimit, 10*time.Second)
	l.LiveLimit = cmp.Or(l.LiveLimit, time.Minute)
	l.RoomLimit = cmp.Or(l.RoomLimit, 10*time.Second)
	l.IdleLimit = cmp.Or(l.IdleLimit, 5*time.Minute)
	l.YieldAfter = cmp.Or(l.YieldAfter, 30*time.Second)
	return l
}

// Target implements compute.Target with the replicas of a Host.
type Target struct {
	host   Host
	limits Limits
	alarm  compute.Alarm
	log    *slog.Logger
	probes *http.Client
	try    Try

	// stop ends all releases. kill ends their grace too.
	stop, kill              context.Context
	stopRelease, killAgents context.CancelFunc
	// supervised counts the goroutines of releases, also of releases that are being removed.
	supervised sync.WaitGroup

	// room serializes the decisions about which release sleeps. It is locked before mu.
	room sync.Mutex

	mu       sync.Mutex
	closed   bool
	releases map[string]*release // by revision
	restarts map[string]*restart // by revision
	// running counts the releases of a revision that have not ended. Beside the serving
	// release there may be its successor, and releases that finish their callers.
	running map[string]int
	// erasing holds, by revision, a channel that is closed when nothing is left of a removed
	// revision.
	erasing map[string]chan struct{}
}

var _ compute.MachineTarget = (*Target)(nil)

// Try does a piece of work, or returns workflow.ErrServerDied; see workflow.Trials.
type Try func(ctx context.Context, name string, work func() error) error

// New returns a target without releases. It connects to replicas by dial to probe them, and
// starts each replica under a trial. alarm and try may be nil, and a nil dial stands for the
// usual one.
func New(host Host, limits Limits, alarm compute.Alarm, log *slog.Logger, dial Dial, try Try) *Target {
	t := &Target{
		host: host, limits: limits.OrDefaults(), alarm: alarm, log: log, probes: newProbeClient(dial), try: try,
		releases: map[string]*release{}, restarts: map[string]*restart{}, running: map[string]int{}, erasing: map[string]chan struct{}{},
	}
	t.stop, t.stopRelease = context.WithCancel(context.Background())
	t.kill, t.killAgents = context.WithCancel(context.Background())
	return t
}

// Apply makes the release run and keeps it running until Remove or Close. If the remains of an
// earlier release of the revision are being erased, Apply waits for that.
func (t *Target) Apply(ctx context.Context, spec compute.Release) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.admit(ctx, spec.Revision); err != nil {
		return fmt.Errorf("apply release %s: %w", spec.Revision, err)
	}
	if r := t.releases[spec.Revision]; r != nil {
		if r.report().State != compute.Failed {
			return nil
		}
		spec.Rested = false
	}
	r := newRelease(t, spec)
	t.releases[spec.Revision] = r
	t.begin(r)
	return nil
}

// begin runs a release until it ends. If the revision was removed meanwhile, the last of its
// releases erases everything that they leave behind. The caller holds t.mu.
func (t *Target) begin(r *release) {
	t.running[r.revision]++
	t.supervised.Go(guard.Func(t.log, "run revision "+r.revision, func() {
		r.guarded(r.run)()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.running[r.revision]--; t.running[r.revision] == 0 {
			delete(t.running, r.revision)
			t.erase(r.spec)
		}
	}))
}

// Await returns the release's status, once it is not Progressing.
func (t *Target) Await(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	r := t.find(ref)
	if r == nil {
		return absent, nil
	}
	for {
		status, changed := r.watch()
		if successor := t.find(ref); successor != nil && successor != r {
			r = successor
			continue
		}
		if status.State != compute.Progressing {
			return status, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status, nil
		}
	}
}

// Serves reports whether the release is healthy. It wakes no release.
func (t *Target) Serves(ctx context.Context, ref compute.Ref) (bool, error) {
	status, err := t.Await(ctx, ref)
	return status.State == compute.Healthy, err
}

// Acquire returns where the release answers and counts the caller in until it calls done.
// Callers queue if one more replica is to come for them.
func (t *Target) Acquire(ctx context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	r := t.find(ref)
	if r == nil {
		return compute.Endpoint{}, nil, &compute.UnavailableError{Ref: ref, Status: absent}
	}
	caller := &visitor{patient: true}
	defer func() { r.giveUp(caller) }()
	patience := time.After(t.limits.RoomLimit)
	for {
		endpoint, leave, status, changed := r.enter(caller)
		if leave != nil {
			return endpoint, leave, nil
		}
		if successor := t.find(ref); successor != nil && successor != r {
			r.giveUp(caller)
			r = successor
			continue
		}
		// The caller gets the reason, but not the agent's output.
		unavailable := &compute.UnavailableError{Ref: ref, Status: compute.Status{State: status.State, Reason: status.Reason, Message: sentence(status.Message)}}
		if status.State != compute.Progressing {
			return compute.Endpoint{}, nil, unavailable
		}
		select {
		case <-changed:
		case <-patience:
			caller.patient = false
		case <-ctx.Done():
			return compute.Endpoint{}, nil, unavailable
		}
	}
}

// Remove takes the release out at once and stops its replicas when their callers have left.
func (t *Target) Remove(_ context.Context, ref compute.Ref) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.releases[ref.Revision]
	if r == nil || t.closed {
		return nil
	}
	delete(t.releases, ref.Revision)
	if restarting := t.restarts[ref.Revision]; restarting != nil {
		delete(t.restarts, ref.Revision)
		restarting.successor.abandon()
	}
	r.drain()
	t.supervised.Go(r.guarded(r.finish))
	if t.running[ref.Revision] == 0 {
		t.supervised.Go(guard.Func(t.log, "erase revision "+r.revision, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.erase(r.spec)
		}))
	}
	return nil
}

// Close stops all replicas and returns when they have ended. Replicas that have not ended when
// ctx ends are killed. Closing again does nothing.
func (t *Target) Close(ctx context.Context) {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stopRelease()
	defer context.AfterFunc(ctx, t.killAgents)()
	t.supervised.Wait()
	t.killAgents()
}

// raise raises the alarm about an agent that ended, or cannot be started. Supervision does not
// wait for the alarm.
func (t *Target) raise(ref compute.Ref, status compute.Status) {
	if t.alarm != nil {
		t.supervised.Go(guard.Func(t.log, "tell of an agent's end", func() { t.alarm(t.stop, ref, status) }))
	}
}

func (t *Target) find(ref compute.Ref) *release {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.releases[ref.Revision]
}

// erase removes everything that the releases of a removed revision have left behind, unless
// the revision was applied again meanwhile. The caller holds t.mu; erase unlocks it in
// between.
func (t *Target) erase(spec compute.Release) {
	if err := t.awaitErased(context.Background(), spec.Revision); err != nil || t.releases[spec.Revision] != nil {
		return
	}
	erased := make(chan struct{})
	t.erasing[spec.Revision] = erased
	// Erasing may take long, and concerns no other release.
	t.mu.Unlock()
	if err := guard.Run(t.log, "erase release", func() error { return t.host.Erase(spec) }); err != nil {
		t.log.Error("erase release", "revision", spec.Revision, "error", err)
	}
	t.mu.Lock()
	delete(t.erasing, spec.Revision)
	close(erased)
}

// admit returns why no release of a revision can be started. It waits until nothing of the revision
// is being erased. The caller holds t.mu; admit unlocks it in between.
func (t *Target) admit(ctx context.Context, revision string) error {
	if !id.Valid(revision) {
		return errors.New("the revision is not an id")
	}
	err := t.awaitErased(ctx, revision)
	if err == nil && t.closed {
		err = errors.New("the server is shutting down")
	}
	return err
}

// awaitErased waits until nothing of a revision is being erased. The caller holds t.mu;
// awaitErased unlocks it in between.
func (t *Target) awaitErased(ctx context.Context, revision string) error {
	for erased := t.erasing[revision]; erased != nil; erased = t.erasing[revision] {
		t.mu.Unlock()
		select {
		case <-erased:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// absent is the status of a release that was never applied here, or removed.
var absent = compute.Status{State: compute.Absent, Message: "it does not run on this server"}

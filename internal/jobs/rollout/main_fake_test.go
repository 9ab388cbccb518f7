package rollout_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// errInjected is the answer of a fake when the test wants it to fail.
var errInjected = errors.New("injected")

// fake holds the common parts of the builder and the target: work that callers wait for, and
// failures that a test injects.
type fake struct {
	mu sync.Mutex
	// changed is closed and replaced at each change.
	changed chan struct{}
	// failing says how many more calls of a method fail; below zero, all calls fail.
	failing map[string]int
	// injected is the error of these calls, errInjected where it is nil.
	injected error
	// entered is called at the beginning of each call, with the method and the revision.
	entered func(method, revision string)
	// held keeps the work unfinished until finish is called.
	held bool
}

func newFake() fake { return fake{changed: make(chan struct{}), failing: map[string]int{}} }

// enter begins a call. When it returns without an error, the caller holds mu.
func (f *fake) enter(method, revision string) error {
	f.mu.Lock()
	entered := f.entered
	f.mu.Unlock()
	if entered != nil {
		entered(method, revision)
	}
	f.mu.Lock()
	if f.failing[method] == 0 {
		return nil
	}
	f.failing[method]--
	err := f.injected
	f.mu.Unlock()
	if err == nil {
		err = errInjected
	}
	return err
}

// fail makes n calls of a method fail, all calls when n is below zero.
func (f *fake) fail(method string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing[method] = n
}

// notify wakes the waiting callers; the caller holds mu.
func (f *fake) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// await calls ready under mu until it answers true or ctx ends. When it returns, the caller holds
// mu.
func (f *fake) await(ctx context.Context, ready func() bool) {
	for !ready() {
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
			f.mu.Lock()
		case <-ctx.Done():
			f.mu.Lock()
			return
		}
	}
}

// hold keeps the work unfinished from now on.
func (f *fake) hold(held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = held
}

// builder is a build.Builder whose builds end at once with the outcome that the test wants. It
// writes a log for each build.
type builder struct {
	fake
	outcome func(build.Spec) build.Result
	builds  map[string]build.Result
	specs   map[string]build.Spec
	logs    *logs
}

func newBuilder(logs *logs) *builder {
	return &builder{fake: newFake(), outcome: built, builds: map[string]build.Result{}, specs: map[string]build.Spec{}, logs: logs}
}

// built is the outcome of a build that succeeds.
func built(spec build.Spec) build.Result {
	artifact := build.Artifact{Dir: "/builds/" + spec.Revision, Start: []string{"./agent"}, Graphs: []string{"agent"}}
	return build.Result{State: build.Succeeded, CommitSHA: "commit-of-" + spec.Ref, Artifact: artifact, Record: build.NewRecord("")}
}

func (b *builder) Start(_ context.Context, spec build.Spec) error {
	if err := b.enter("Start", spec.Revision); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if state := b.builds[spec.Revision].State; state == build.Running || state == build.Succeeded {
		if state == build.Running && b.held { // the build waits for its place
			b.specs[spec.Revision] = spec
			b.notify()
		}
		return nil
	}
	b.logs.write(spec.Revision)
	b.specs[spec.Revision] = spec
	b.builds[spec.Revision] = build.Result{State: build.Running}
	if !b.held {
		b.builds[spec.Revision] = b.outcome(spec)
	}
	b.notify()
	return nil
}

func (b *builder) Await(ctx context.Context, revision string) (build.Result, error) {
	if err := b.enter("Await", revision); err != nil {
		return build.Result{}, err
	}
	defer b.mu.Unlock()
	b.await(ctx, func() bool { return b.builds[revision].State != build.Running })
	result, ok := b.builds[revision]
	if !ok {
		result.State = build.Absent
	}
	return result, nil
}

func (b *builder) Remove(_ context.Context, revision string) error {
	if err := b.enter("Remove", revision); err != nil {
		return err
	}
	defer b.mu.Unlock()
	delete(b.builds, revision)
	b.notify()
	return nil
}

// finish ends the builds that were held.
func (b *builder) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = false
	for revision, result := range b.builds {
		if result.State == build.Running {
			b.builds[revision] = b.outcome(b.specs[revision])
		}
	}
	b.notify()
}

// lose forgets the data that is lost with a process: builds that are not finished.
func (b *builder) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.builds, func(_ string, result build.Result) bool { return result.State == build.Running })
	b.notify()
}

// left returns the revisions that have builds.
func (b *builder) left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.builds))
}

// running is a release as a target stores it.
type running struct {
	release compute.Release
	status  compute.Status
}

// target is a compute.Target whose releases have at once the status that the test wants.
type target struct {
	fake
	health   func(compute.Release) compute.Status
	releases map[string]running
	// applied are all releases that were ever applied.
	applied map[string]compute.Release
	// restarts are the states of the newest restart of each release.
	restarts map[string]restarting
}

// restarting is a restart as a target stores it.
type restarting struct {
	id      string
	release compute.Release
	status  compute.Status
}

var (
	_ compute.Target    = (*target)(nil)
	_ compute.Restarter = (*target)(nil)
)

func newTarget() *target {
	return &target{fake: newFake(), health: healthy, releases: map[string]running{}, applied: map[string]compute.Release{}, restarts: map[string]restarting{}}
}

func healthy(compute.Release) compute.Status { return compute.Status{State: compute.Healthy} }

func (t *target) Apply(_ context.Context, release compute.Release) error {
	if err := t.enter("Apply", release.Revision); err != nil {
		return err
	}
	defer t.mu.Unlock()
	if r, ok := t.releases[release.Revision]; ok && r.status.State != compute.Failed {
		return nil
	}
	status := compute.Status{State: compute.Progressing}
	if !t.held {
		status = t.health(release)
	}
	t.releases[release.Revision] = running{release, status}
	t.applied[release.Revision] = release
	t.notify()
	return nil
}

func (t *target) Restart(_ context.Context, release compute.Release, restartID string) error {
	if err := t.enter("Restart", release.Revision); err != nil {
		return err
	}
	defer t.mu.Unlock()
	if t.restarts[release.Revision].id == restartID {
		return nil
	}
	status := compute.Status{State: compute.Progressing}
	if !t.held {
		status = t.health(release)
	}
	t.restarts[release.Revision] = restarting{restartID, release, status}
	if r, ok := t.releases[release.Revision]; !ok || r.status.State == compute.Failed || status.State == compute.Healthy {
		t.releases[release.Revision] = running{release, status}
		t.applied[release.Revision] = release
	}
	t.notify()
	return nil
}

func (t *target) AwaitRestart(ctx context.Context, ref compute.Ref, restartID string) (compute.Status, error) {
	if err := t.enter("AwaitRestart", ref.Revision); err != nil {
		return compute.Status{}, err
	}
	if t.restarts[ref.Revision].id != restartID || t.releases[ref.Revision].status.State == "" {
		t.mu.Unlock()
		return t.Await(ctx, ref)
	}
	defer t.mu.Unlock()
	t.await(ctx, func() bool { return t.restarts[ref.Revision].status.State != compute.Progressing })
	return t.restarts[ref.Revision].status, nil
}

func (t *target) Await(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	if err := t.enter("Await", ref.Revision); err != nil {
		return compute.Status{}, err
	}
	defer t.mu.Unlock()
	t.await(ctx, func() bool { return t.releases[ref.Revision].status.State != compute.Progressing })
	r, ok := t.releases[ref.Revision]
	if !ok {
		return compute.Status{State: compute.Absent}, nil
	}
	return r.status, nil
}

func (t *target) Acquire(_ context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.releases[ref.Revision]
	if r.status.State != compute.Healthy {
		return compute.Endpoint{}, nil, &compute.UnavailableError{Ref: ref, Status: r.status}
	}
	return compute.Endpoint{URL: "http://agent.test", Token: r.release.Token}, func() {}, nil
}

func (t *target) Serves(_ context.Context, ref compute.Ref) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.releases[ref.Revision].status.State == compute.Healthy, nil
}

// AwaitRelapse waits: no release relapses.
func (t *target) AwaitRelapse(ctx context.Context, _ compute.Ref) (string, error) {
	<-ctx.Done()
	return "", nil
}

func (t *target) Remove(_ context.Context, ref compute.Ref) error {
	if err := t.enter("Remove", ref.Revision); err != nil {
		return err
	}
	defer t.mu.Unlock()
	delete(t.releases, ref.Revision)
	if r, ok := t.restarts[ref.Revision]; ok {
		r.status = compute.Status{State: compute.Absent}
		t.restarts[ref.Revision] = r
	}
	t.notify()
	return nil
}

// finish lets the held releases get the status that the test wants.
func (t *target) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = false
	for revision, r := range t.releases {
		r.status = t.health(r.release)
		t.releases[revision] = r
	}
	for revision, r := range t.restarts {
		r.status = t.health(r.release)
		t.restarts[revision] = r
	}
	t.notify()
}

// lose forgets all releases, because their process has ended.
func (t *target) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.releases)
	clear(t.restarts)
	t.notify()
}

// become changes the status of a release.
func (t *target) become(revision string, status compute.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.releases[revision]
	r.status = status
	t.releases[revision] = r
	t.notify()
}

// left returns the revisions that run.
func (t *target) left() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.releases))
}

// release returns the applied release of a revision.
func (t *target) release(revision string) (compute.Release, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	release, ok := t.applied[revision]
	return release, ok
}

// logs is a rollout.Forgetter that knows which revisions have a log.
type logs struct {
	mu   sync.Mutex
	kept map[string]bool
}

func (l *logs) write(revision string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[revision] = true
}

func (l *logs) Remove(revision string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, revision)
	return nil
}

func (l *logs) left() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.kept))
}

package replica

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// rememberedRestarts is the number of restarts of a release whose ids are remembered.
const rememberedRestarts = 100

// restart is the newest restart of a release. It answers for the earlier restarts that it has
// superseded.
type restart struct {
	// ids are the ids of the restarts that were asked for. The last id is the id of this
	// restart.
	ids       []string
	successor *release
	// over is closed when the successor has taken its place, or never will. After that,
	// failure may be read: it says why the successor has failed.
	over    chan struct{}
	failure *compute.Status
}

// Restart starts a release beside the present release of its revision. The present release
// goes on serving until the new one is healthy. If the release can have one replica only, the
// present release ends first, when its callers have left, and new callers wait for the
// successor. If that successor fails, the present release is started again.
func (t *Target) Restart(ctx context.Context, spec compute.Release, restartID string) error {
	spec.Rested = false
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.admit(ctx, spec.Revision); err != nil {
		return fmt.Errorf("restart release %s: %w", spec.Revision, err)
	}
	before := t.restarts[spec.Revision]
	var ids []string
	if before != nil {
		if ids = before.ids; slices.Contains(ids, restartID) {
			return nil
		}
	}
	next := &restart{ids: append(ids[max(0, len(ids)+1-rememberedRestarts):len(ids):len(ids)], restartID), successor: newRelease(t, spec), over: make(chan struct{})}
	t.restarts[spec.Revision] = next
	present := t.releases[spec.Revision]
	if present == nil || present.report().State == compute.Failed {
		// No release could go on serving.
		if before != nil {
			before.successor.abandon()
		}
		t.releases[spec.Revision] = next.successor
		t.begin(next.successor)
		close(next.over)
		return nil
	}
	next.successor.trying = true
	replaceRelease := func() error { //nolint:unparam // a panic is its error
		start := t.succeed
		if t.host.Lone(spec) {
			start = t.follow
		} else if before != nil {
			before.successor.abandon()
		}
		if before != nil {
			<-before.over
		}
		start(next)
		return nil
	}
	t.supervised.Go(func() {
		defer close(next.over)
		if guard.Run(t.log, "restart revision "+spec.Revision, replaceRelease) != nil {
			next.failure = Failed(compute.ReasonInternal, "the platform could not restart this agent; the server's log says why. Tell its operator.")
		}
	})
	return nil
}

// AwaitRestart returns how the restart has ended, once it has ended. If this process was not
// asked for the restart, AwaitRestart returns the release's status, because the release was
// started after it.
func (t *Target) AwaitRestart(ctx context.Context, ref compute.Ref, restartID string) (compute.Status, error) {
	for {
		t.mu.Lock()
		newest := t.restarts[ref.Revision]
		t.mu.Unlock()
		if newest == nil || !slices.Contains(newest.ids, restartID) {
			return t.Await(ctx, ref)
		}
		select {
		case <-newest.over:
		case <-ctx.Done():
			return compute.Status{State: compute.Progressing, Message: "its successor is starting"}, nil
		}
		t.mu.Lock()
		superseded := t.restarts[ref.Revision] != newest
		t.mu.Unlock()
		switch {
		case superseded:
		case newest.failure != nil:
			return *newest.failure, nil
		default:
			return t.Await(ctx, ref)
		}
	}
}

// succeed starts the successor beside the present release. When the successor is healthy, it
// takes the place of the present release.
func (t *Target) succeed(next *restart) {
	successor := next.successor
	t.mu.Lock()
	if !t.isNewest(next) {
		t.mu.Unlock()
		return
	}
	t.begin(successor)
	t.mu.Unlock()
	if next.failure = successor.awaitStart(); next.failure != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isNewest(next) {
		successor.drain()
		successor.stop()
		return
	}
	t.replace(successor)
	successor.takeOver()
}

// follow ends the present release and starts the successor after it.
func (t *Target) follow(next *restart) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isNewest(next) {
		return
	}
	present := t.replace(next.successor)
	t.mu.Unlock()
	<-present.ended
	t.mu.Lock()
	t.begin(next.successor)
	t.mu.Unlock()
	next.failure = next.successor.awaitStart()
	t.mu.Lock()
	if next.failure == nil {
		next.successor.takeOver()
		return
	}
	if t.closed || t.releases[present.revision] != next.successor {
		return
	}
	again := newRelease(t, present.spec)
	t.releases[present.revision] = again
	t.begin(again)
}

// isNewest reports whether a restart was not superseded, its release was not removed, and the
// target was not closed. The caller holds t.mu.
func (t *Target) isNewest(r *restart) bool {
	revision := r.successor.revision
	return !t.closed && t.restarts[revision] == r && t.releases[revision] != nil
}

// replace gives new callers to the successor, and makes the previous release finish its
// present callers. The caller holds t.mu.
func (t *Target) replace(successor *release) (before *release) {
	before = t.releases[successor.revision]
	t.releases[successor.revision] = successor
	before.drain()
	t.supervised.Go(before.guarded(before.finish))
	return before
}

// awaitStart returns nil when the release is healthy, or else why it will not become healthy.
func (r *release) awaitStart() *compute.Status {
	for {
		status, changed := r.watch()
		switch status.State {
		case compute.Healthy:
			return nil
		case compute.Progressing:
			<-changed // the release ends, at the latest, with its target
		default:
			return &status
		}
	}
}

// takeOver notes that the release serves in the place of the previous release.
func (r *release) takeOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trying = false
}

// abandon stops a successor that has not taken its place yet.
func (r *release) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trying {
		r.stop()
	}
}

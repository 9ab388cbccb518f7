package agenthost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// Restore starts the releases again that were applied and not removed. A release that cannot be
// started does not prevent the others.
func (h *Host) Restore(ctx context.Context) error {
	h.order.Lock()
	defer h.order.Unlock()
	releases, err := h.releases.all(ctx)
	problems := []error{err}
	for _, release := range releases {
		if err := h.cfg.Target.Apply(ctx, release); err != nil {
			problems = append(problems, fmt.Errorf("revision %s: %w", release.Revision, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("restore releases: %w", err)
	}
	return nil
}

func (h *Host) apply(r *http.Request) (any, error) {
	return nil, h.runWithRelease(r, h.cfg.Target.Apply)
}

// runWithRelease passes the release of a request to the target, and stores its present description:
// the host's next start uses this description.
func (h *Host) runWithRelease(r *http.Request, run func(context.Context, compute.Release) error) error {
	release, err := decode[compute.Release](r)
	if err == nil {
		err = checkRef(release.Ref)
	}
	if err != nil {
		return err
	}
	h.order.Lock()
	defer h.order.Unlock()
	// If storing it fails, the caller gets the error and repeats the request, which is
	// harmless.
	if err := run(r.Context(), release); err != nil {
		return err
	}
	if err := h.releases.write(r.Context(), release); err != nil {
		return fmt.Errorf("keep release: %w", err)
	}
	return nil
}

// restart restarts a release's agents.
func (h *Host) restart(r *http.Request) (any, error) {
	restartID := r.PathValue("restart")
	if !id.Valid(restartID) {
		return nil, fault.New(fault.Invalid, "The restart %q is not an id.", restartID)
	}
	return nil, h.runWithRelease(r, func(ctx context.Context, release compute.Release) error {
		if release.Ref != refOf(r) {
			return fault.New(fault.Invalid, "The body is not the release of the path.")
		}
		return h.cfg.Target.Restart(ctx, release, restartID)
	})
}

func (h *Host) awaitRestart(r *http.Request) (any, error) {
	return await(r, func(ctx context.Context) (compute.Status, error) {
		return h.cfg.Target.AwaitRestart(ctx, refOf(r), r.PathValue("restart"))
	})
}

func (h *Host) awaitRelease(r *http.Request) (any, error) {
	return await(r, func(ctx context.Context) (compute.Status, error) { return h.cfg.Target.Await(ctx, refOf(r)) })
}

func (h *Host) awaitRelapse(r *http.Request) (any, error) {
	return await(r, func(ctx context.Context) (wire.Relapsed, error) {
		reason, err := h.cfg.Target.AwaitRelapse(ctx, refOf(r))
		return wire.Relapsed{Reason: reason}, err
	})
}

func (h *Host) remove(r *http.Request) (any, error) {
	ref := refOf(r)
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	h.order.Lock()
	defer h.order.Unlock()
	if err := h.cfg.Target.Remove(r.Context(), ref); err != nil {
		return nil, err
	}
	return nil, h.releases.remove(ref)
}

func refOf(r *http.Request) compute.Ref {
	return compute.Ref{Workspace: r.PathValue("workspace"), Deployment: r.PathValue("deployment"), Revision: r.PathValue("revision")}
}

// checkRef refuses values that could name a file in another directory.
func checkRef(ref compute.Ref) error {
	for what, value := range map[string]string{"workspace": ref.Workspace, "deployment": ref.Deployment, "revision": ref.Revision} {
		if !id.Valid(value) {
			return fault.New(fault.Invalid, "The %s %q is not an id.", what, value)
		}
	}
	return nil
}

func (h *Host) startBuild(r *http.Request, spec build.Spec) (any, error) {
	return nil, h.cfg.Builder.Start(r.Context(), spec)
}

func (h *Host) awaitBuild(r *http.Request) (any, error) {
	return await(r, func(ctx context.Context) (build.Result, error) {
		return h.cfg.Builder.Await(ctx, r.PathValue("revision"))
	})
}

func (h *Host) removeBuild(r *http.Request) (any, error) {
	return nil, h.cfg.Builder.Remove(r.Context(), r.PathValue("revision"))
}

// ends holds the first agent exit of each release that has not been reported to a caller yet.
type ends struct {
	mu    sync.Mutex
	last  int64
	noted []wire.End
}

// Alarm is the compute.Alarm of the host's target. It keeps the end for the next caller that asks.
func (h *Host) Alarm(_ context.Context, ref compute.Ref, status compute.Status) {
	h.ends.mu.Lock()
	defer h.ends.mu.Unlock()
	if slices.ContainsFunc(h.ends.noted, func(e wire.End) bool { return e.Ref == ref }) {
		return
	}
	h.ends.last++
	h.ends.noted = append(h.ends.noted, wire.End{Number: h.ends.last, Ref: ref, Status: status})
}

// listEnds answers with the ends that the caller has not reported, and forgets the reported
// ends.
func (h *Host) listEnds(_ *http.Request, ack wire.AckEnds) (any, error) {
	h.ends.mu.Lock()
	defer h.ends.mu.Unlock()
	h.ends.noted = slices.DeleteFunc(h.ends.noted, func(e wire.End) bool { return e.Number <= ack.Number })
	return append([]wire.End{}, h.ends.noted...), nil
}

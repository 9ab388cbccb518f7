package agenthost

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
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

func (h *Host) apply(w http.ResponseWriter, r *http.Request) error {
	return h.take(w, r, h.cfg.Target.Apply)
}

// take passes the release of a request to the target, and stores its present description: the
// host's next start uses this description.
func (h *Host) take(w http.ResponseWriter, r *http.Request, run func(context.Context, compute.Release) error) error {
	var release compute.Release
	if err := decode(r, &release); err != nil {
		return err
	}
	if err := checkRef(release.Ref); err != nil {
		return err
	}
	h.order.Lock()
	defer h.order.Unlock()
	// If storing it fails, the caller gets the error and repeats the request, which is
	// harmless.
	if err := run(r.Context(), release); err != nil {
		return err
	}
	if err := h.releases.keep(r.Context(), release); err != nil {
		return fmt.Errorf("keep release: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// restart restarts a release's agents.
func (h *Host) restart(w http.ResponseWriter, r *http.Request) error {
	restarter, err := h.restarter()
	if err != nil {
		return err
	}
	restartID := r.PathValue("restart")
	if !id.Valid(restartID) {
		return fault.New(fault.Invalid, "The restart %q is not an id.", restartID)
	}
	return h.take(w, r, func(ctx context.Context, release compute.Release) error {
		if release.Ref != refOf(r) {
			return fault.New(fault.Invalid, "The body is not the release of the path.")
		}
		return restarter.Restart(ctx, release, restartID)
	})
}

func (h *Host) awaitRestart(w http.ResponseWriter, r *http.Request) error {
	restarter, err := h.restarter()
	if err != nil {
		return err
	}
	ctx, cancel, err := waiting(r)
	if err != nil {
		return err
	}
	defer cancel()
	status, err := restarter.AwaitRestart(ctx, refOf(r), r.PathValue("restart"))
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, status)
	return nil
}

func (h *Host) restarter() (compute.Restarter, error) {
	restarter, ok := h.cfg.Target.(compute.Restarter)
	if !ok {
		return nil, fault.New(fault.NotFound, "Nobody restarts the releases of this host.")
	}
	return restarter, nil
}

func (h *Host) awaitRelease(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel, err := waiting(r)
	if err != nil {
		return err
	}
	defer cancel()
	status, err := h.cfg.Target.Await(ctx, refOf(r))
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, status)
	return nil
}

func (h *Host) awaitRelapse(w http.ResponseWriter, r *http.Request) error {
	minder, ok := h.cfg.Target.(compute.Minder)
	if !ok {
		return fault.New(fault.NotFound, "Nobody minds the releases of this host.")
	}
	ctx, cancel, err := waiting(r)
	if err != nil {
		return err
	}
	defer cancel()
	reason, err := minder.AwaitRelapse(ctx, refOf(r))
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, wire.Relapsed{Reason: reason})
	return nil
}

func (h *Host) remove(w http.ResponseWriter, r *http.Request) error {
	ref := refOf(r)
	if err := checkRef(ref); err != nil {
		return err
	}
	h.order.Lock()
	defer h.order.Unlock()
	if err := h.cfg.Target.Remove(r.Context(), ref); err != nil {
		return err
	}
	if err := h.releases.forget(ref); err != nil {
		return fmt.Errorf("forget release: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
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

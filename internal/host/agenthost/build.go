package agenthost

import (
	"net/http"

	"github.com/slipway-run/slipway/internal/seam/build"
)

func (h *Host) startBuild(w http.ResponseWriter, r *http.Request) error {
	var spec build.Spec
	if err := decode(r, &spec); err != nil {
		return err
	}
	if err := h.cfg.Builder.Start(r.Context(), spec); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Host) awaitBuild(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel, err := waiting(r)
	if err != nil {
		return err
	}
	defer cancel()
	result, err := h.cfg.Builder.Await(ctx, r.PathValue("revision"))
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, result)
	return nil
}

func (h *Host) removeBuild(w http.ResponseWriter, r *http.Request) error {
	if err := h.cfg.Builder.Remove(r.Context(), r.PathValue("revision")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

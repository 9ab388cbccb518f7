package agenthost

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/seam/build"
)

func (h *Host) startBuild(r *http.Request) (any, error) {
	spec, err := decode[build.Spec](r)
	if err != nil {
		return nil, err
	}
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

package agenthost

import (
	"net/http"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// Uploads are tarballs that this machine builds.
type Uploads interface {
	upload.Store
	// Handler accepts tarballs from clients with a granted upload. It passes errors of a
	// request to fail.
	Handler(fail func(http.ResponseWriter, *http.Request, error)) http.Handler
}

func (h *Host) grantUpload(r *http.Request, request wire.Upload) (any, error) {
	if ref, ok := upload.Parse(request.Path()); !ok || ref != request.Ref {
		return nil, fault.New(fault.Invalid, "%q is no upload's path.", request.Path())
	}
	return h.cfg.Uploads.Grant(r.Context(), request.Ref, request.Base)
}

func (h *Host) listUploads(r *http.Request) (any, error) {
	workspace, deployment, err := uploadsOf(r)
	if err != nil {
		return nil, err
	}
	return h.cfg.Uploads.List(r.Context(), workspace, deployment)
}

func (h *Host) removeUploads(r *http.Request, refs []upload.Ref) (any, error) {
	workspace, deployment, err := uploadsOf(r)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if _, ok := upload.ParseOf(workspace, deployment, ref.Path()); !ok {
			return nil, fault.New(fault.Invalid, "%q is no upload's path of the deployment.", ref.Path())
		}
	}
	return nil, h.cfg.Uploads.Remove(r.Context(), workspace, deployment, refs)
}

func (h *Host) eraseUploads(r *http.Request) (any, error) {
	workspace, deployment, err := uploadsOf(r)
	if err != nil {
		return nil, err
	}
	return nil, h.cfg.Uploads.Erase(r.Context(), workspace, deployment)
}

// uploadsOf names the deployment that a request is about.
func uploadsOf(r *http.Request) (workspace, deployment string, err error) {
	workspace, deployment = r.PathValue("workspace"), r.PathValue("deployment")
	if !id.Valid(workspace) || !id.Valid(deployment) {
		return "", "", fault.New(fault.Invalid, "workspace %q or deployment %q is not an id.", workspace, deployment)
	}
	return workspace, deployment, nil
}

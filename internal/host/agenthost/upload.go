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

func (h *Host) grantUpload(w http.ResponseWriter, r *http.Request) error {
	var asked wire.Upload
	if err := decode(r, &asked); err != nil {
		return err
	}
	if ref, ok := upload.Parse(asked.Path()); !ok || ref != asked.Ref {
		return fault.New(fault.Invalid, "%q is no upload's path.", asked.Path())
	}
	grant, err := h.cfg.Uploads.Grant(r.Context(), asked.Ref, asked.Base)
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, grant)
	return nil
}

func (h *Host) listUploads(w http.ResponseWriter, r *http.Request) error {
	workspace, deployment, err := uploadsOf(r)
	if err != nil {
		return err
	}
	refs, err := h.cfg.Uploads.List(r.Context(), workspace, deployment)
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, refs)
	return nil
}

func (h *Host) removeUploads(w http.ResponseWriter, r *http.Request) error {
	workspace, deployment, err := uploadsOf(r)
	if err != nil {
		return err
	}
	var refs []upload.Ref
	if err := decode(r, &refs); err != nil {
		return err
	}
	for _, ref := range refs {
		if _, ok := upload.ParseOf(workspace, deployment, ref.Path()); !ok {
			return fault.New(fault.Invalid, "%q is no upload's path of the deployment.", ref.Path())
		}
	}
	if err := h.cfg.Uploads.Remove(r.Context(), workspace, deployment, refs); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// uploadsOf names the deployment that a request is about.
func uploadsOf(r *http.Request) (workspace, deployment string, err error) {
	workspace, deployment = r.PathValue("workspace"), r.PathValue("deployment")
	if !id.Valid(workspace) || !id.Valid(deployment) {
		return "", "", fault.New(fault.Invalid, "workspace %q or deployment %q is not an id.", workspace, deployment)
	}
	return workspace, deployment, nil
}

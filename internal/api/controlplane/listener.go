package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/listener"
)

// ListListeners lists the workspace's listeners, newest first.
func (s server) ListListeners(ctx context.Context, request ListListenersRequestObject) (ListListenersResponseObject, error) {
	query := window(request.Params.Limit, request.Params.Offset, request.Params.Cursor)
	page, err := s.Listeners.List(ctx, auth.Workspace(ctx), query)
	return ListListeners200JSONResponse{
		Resources: web.ShowAll(page.Items, showListener), Offset: query.Offset + len(page.Items), Cursor: optional.Of(page.Cursor),
	}, err
}

// CreateListener creates a listener.
func (s server) CreateListener(ctx context.Context, request CreateListenerRequestObject) (CreateListenerResponseObject, error) {
	body := request.Body
	l, err := s.Listeners.Create(ctx, listener.NewListener{
		Workspace: auth.Workspace(ctx), Version: body.Version,
		Spec: listener.Spec{
			ComputeType: string(body.ComputeType), ComputeID: body.ComputeID,
			ComputeConfig: listener.ComputeConfig{K8sNamespaces: value(body.ComputeConfig.K8SNamespaces)},
		},
	}, web.StoreAnswer(ctx, func(l listener.Listener) (web.Send, string, int64, error) {
		return CreateListener201JSONResponse(showListener(l)).VisitCreateListenerResponse, l.Listener, l.ChangeCount(), nil
	})...)
	web.ShowVersion(ctx, l.Listener, l.ChangeCount())
	return CreateListener201JSONResponse(showListener(l)), err
}

// GetListener reads a listener.
func (s server) GetListener(ctx context.Context, request GetListenerRequestObject) (GetListenerResponseObject, error) {
	l, err := s.Listeners.Get(ctx, listenerRef(ctx, request.ListenerID))
	web.ShowVersion(ctx, l.Listener, l.ChangeCount())
	return GetListener200JSONResponse(showListener(l)), err
}

// PatchListener changes a listener.
func (s server) PatchListener(ctx context.Context, request PatchListenerRequestObject) (PatchListenerResponseObject, error) {
	body := request.Body
	patch := listener.Patch{
		Version: body.Version, ComputeType: (*string)(body.ComputeType), ComputeID: body.ComputeID, Expect: web.ExpectedVersions(ctx),
	}
	if body.ComputeConfig != nil {
		patch.K8sNamespaces = body.ComputeConfig.K8SNamespaces
	}
	l, err := s.Listeners.Patch(ctx, listenerRef(ctx, request.ListenerID), patch)
	web.ShowVersion(ctx, l.Listener, l.ChangeCount())
	return PatchListener200JSONResponse(showListener(l)), err
}

// DeleteListener deletes a listener that is not in use.
func (s server) DeleteListener(ctx context.Context, request DeleteListenerRequestObject) (DeleteListenerResponseObject, error) {
	err := s.Listeners.Delete(ctx, listenerRef(ctx, request.ListenerID), web.ExpectedVersions(ctx))
	return DeleteListener204Response{}, err
}

// showListener converts a listener to the shape of the interface.
func showListener(l listener.Listener) Listener {
	shown := Listener{
		ID: l.Listener, Version: l.Version, ComputeType: ComputeType(l.ComputeType), ComputeID: l.ComputeID,
		CreatedAt: clock.Format(l.Created), UpdatedAt: clock.Format(l.Updated), LastSeenAt: clock.Nullable(l.LastSeen), Online: l.Online(clock.System()),
	}
	if l.ComputeConfig.K8sNamespaces != nil {
		shown.ComputeConfig.K8SNamespaces = &l.ComputeConfig.K8sNamespaces
	}
	return shown
}

func listenerRef(ctx context.Context, id string) listener.Ref {
	return listener.Ref{Workspace: auth.Workspace(ctx), Listener: id}
}

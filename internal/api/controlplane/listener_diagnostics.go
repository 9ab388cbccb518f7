package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/listener"
)

// DiagnoseListener states why a listener does not do its part.
func (s server) DiagnoseListener(ctx context.Context, request DiagnoseListenerRequestObject) (DiagnoseListenerResponseObject, error) {
	d, err := s.Listeners.Diagnose(ctx, listenerRef(ctx, request.ListenerID))
	return DiagnoseListener200JSONResponse(showDiagnosis(d)), err
}

func showDiagnosis(d listener.Diagnosis) ListenerDiagnostics {
	shown := ListenerDiagnostics{
		ListenerID: d.Listener.Listener, CheckedAt: clock.Format(d.At), Online: d.Online(d.At), LastSeenAt: clock.Nullable(d.LastSeen), Version: d.Version,
		K8SNamespaces: append([]string{}, d.ComputeConfig.K8sNamespaces...),
		Orders:        make([]ListenerOrder, len(d.Orders)), Failures: make([]ListenerFailure, len(d.Failures)),
		Misplaced: make([]ListenerMisplaced, len(d.Misplaced)), Checks: make([]ListenerCheck, len(d.Checks)),
	}
	if d.Session != nil {
		shown.Session = new(showSession(*d.Session, d.Until))
	}
	for i, o := range d.Orders {
		shown.Orders[i] = ListenerOrder{
			DeploymentID: o.Deployment, RevisionID: o.Revision, Order: o.Order, Verb: ListenerOrderVerb(o.Verb), OrderedAt: clock.Format(o.Since), Fetched: o.Fetched,
		}
	}
	for i, f := range d.Failures {
		shown.Failures[i] = ListenerFailure{
			DeploymentID: f.Deployment, RevisionID: f.Revision, Namespace: f.Namespace, Reason: f.Reason, Message: f.Message, ReportedAt: clock.Format(f.At),
		}
	}
	for i, m := range d.Misplaced {
		shown.Misplaced[i] = ListenerMisplaced{DeploymentID: m.Deployment, K8SNamespace: m.Namespace}
	}
	for i, c := range d.Checks {
		shown.Checks[i] = ListenerCheck{Code: string(c.Code), Ok: c.OK, Message: c.Message}
	}
	return shown
}

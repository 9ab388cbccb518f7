package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/web"
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
		Orders: web.ShowAll(d.Orders, func(o listener.Order) ListenerOrder {
			return ListenerOrder{
				DeploymentID: o.Deployment, RevisionID: o.Revision, Order: o.Order, Verb: ListenerOrderVerb(o.Verb), OrderedAt: clock.Format(o.Since), Fetched: o.Fetched,
			}
		}),
		Failures: web.ShowAll(d.Failures, func(f listener.Failure) ListenerFailure {
			return ListenerFailure{
				DeploymentID: f.Deployment, RevisionID: f.Revision, Namespace: f.Namespace, Reason: f.Reason, Message: f.Message, ReportedAt: clock.Format(f.At),
			}
		}),
		Misplaced: web.ShowAll(d.Misplaced, func(m listener.Misplaced) ListenerMisplaced {
			return ListenerMisplaced{DeploymentID: m.Deployment, K8SNamespace: m.Namespace}
		}),
		Checks: web.ShowAll(d.Checks, func(c listener.Check) ListenerCheck {
			return ListenerCheck{Code: string(c.Code), Ok: c.OK, Message: c.Message}
		}),
	}
	if d.Session != nil {
		shown.Session = new(showSession(*d.Session, d.Until))
	}
	return shown
}

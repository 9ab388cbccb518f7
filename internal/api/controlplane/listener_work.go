package controlplane

import (
	"context"
	"maps"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// ClaimListenerWork begins or renews the session of a listener's process, and waits for work.
func (s server) ClaimListenerWork(ctx context.Context, request ClaimListenerWorkRequestObject) (ClaimListenerWorkResponseObject, error) {
	body := request.Body
	claim, err := s.Listeners.Claim(ctx, listener.ClaimRequest{
		Ref: listenerRef(ctx, request.ListenerID), Holder: body.Holder, Version: value(body.Version),
		Wait: seconds(optional.Or(body.Wait, int(listener.MaxWait/time.Second))),
	})
	return ClaimListenerWork200JSONResponse{Session: showSession(claim.Session, claim.Until), Work: web.ShowAll(claim.Work, showWork)}, err
}

// RenewListenerSession renews the session while its process does other work than claiming.
func (s server) RenewListenerSession(ctx context.Context, request RenewListenerSessionRequestObject) (RenewListenerSessionResponseObject, error) {
	session := sessionOf(ctx, request.ListenerID, request.Body.Session)
	until, err := s.Listeners.Heartbeat(ctx, session, value(request.Body.Version))
	return RenewListenerSession200JSONResponse(showSession(session, until)), err
}

// ReportListenerRelease takes a listener's report.
func (s server) ReportListenerRelease(ctx context.Context, request ReportListenerReleaseRequestObject) (ReportListenerReleaseResponseObject, error) {
	body := request.Body
	err := s.Deployments.Report(ctx, sessionOf(ctx, request.ListenerID, body.Session), listener.Report{
		Deployment: body.DeploymentID, Revision: body.RevisionID, Order: body.Order, Number: body.Number, State: compute.State(body.State),
		Reason: value(body.Reason), Message: value(body.Message), URL: value(body.URL),
	})
	return ReportListenerRelease204Response{}, err
}

// AppendListenerLogs keeps the output of an agent at a listener.
func (s server) AppendListenerLogs(ctx context.Context, request AppendListenerLogsRequestObject) (AppendListenerLogsResponseObject, error) {
	body := request.Body
	err := s.Logs.Append(ctx, sessionOf(ctx, request.ListenerID, body.Session), listener.Output{
		Deployment: body.DeploymentID, Revision: body.RevisionID, Lines: body.Lines,
	})
	return AppendListenerLogs204Response{}, err
}

// ListListenerReleases lists the releases that a listener must run.
func (s server) ListListenerReleases(ctx context.Context, request ListListenerReleasesRequestObject) (ListListenerReleasesResponseObject, error) {
	releases, err := s.Listeners.Releases(ctx, sessionOf(ctx, request.ListenerID, request.Body.Session), value(request.Body.After))
	return ListListenerReleases200JSONResponse{Resources: web.ShowAll(releases, showWork)}, err
}

// EndListenerSession ends the session.
func (s server) EndListenerSession(ctx context.Context, request EndListenerSessionRequestObject) (EndListenerSessionResponseObject, error) {
	err := s.Listeners.EndSession(ctx, sessionOf(ctx, request.ListenerID, request.Body.Session))
	return EndListenerSession204Response{}, err
}

// sessionOf is the session that a request was sent in. The domain decides whether it is the
// present session.
func sessionOf(ctx context.Context, listenerID string, sent ListenerSession) listener.Session {
	return listener.Session{Ref: listenerRef(ctx, listenerID), Holder: sent.Holder, Epoch: sent.Epoch}
}

func showSession(session listener.Session, until time.Time) ListenerSession {
	return ListenerSession{Holder: session.Holder, Epoch: session.Epoch, ExpiresAt: new(clock.Format(until))}
}

func showWork(w listener.Work) ListenerWork {
	shown := ListenerWork{
		DeploymentID: w.Deployment, RevisionID: w.Revision, Order: w.Order, Verb: ListenerWorkVerb(w.Verb), Namespace: w.Namespace, Labels: w.Labels,
	}
	if w.Release != nil {
		shown.Release = showRelease(*w.Release)
	}
	return shown
}

// showRelease returns the data that a listener needs to run a release, including the agent's
// secrets and token.
func showRelease(r compute.Release) *ListenerRelease {
	env := map[string]string{}
	maps.Copy(env, r.Artifact.Env)
	maps.Copy(env, r.Env)
	env["SLIPWAY_INVOKE_TOKEN"] = r.Token
	shown := ListenerRelease{Image: r.Artifact.Image, Env: env, SecretReferences: showSecretReferences(r.SecretReferences)}
	if len(r.ResourceSpec) > 0 {
		shown.ResourceSpec = &r.ResourceSpec
	}
	if r.ReadyLimit > 0 {
		shown.ReadinessTimeoutSeconds = new(int(r.ReadyLimit / time.Second))
	}
	return &shown
}

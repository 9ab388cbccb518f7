package controlplane

import (
	"context"
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/control/integration"
)

// CreateInstallationLink begins an installation of the GitHub App.
func (s server) CreateInstallationLink(ctx context.Context, _ CreateInstallationLinkRequestObject) (CreateInstallationLinkResponseObject, error) {
	link, err := s.Integrations.BeginInstall(ctx, auth.Workspace(ctx))
	return CreateInstallationLink200JSONResponse{InstallURL: link}, err
}

// AskAboutInstallation shows the user that installed the App the workspace that would get the
// installation, and asks for consent. The link may have come from an attacker who wants other
// people's repositories for a workspace of their own.
func (s server) AskAboutInstallation(ctx context.Context, request AskAboutInstallationRequestObject) (AskAboutInstallationResponseObject, error) {
	p := request.Params
	if p.Error != nil {
		detail := value(p.Error)
		if p.ErrorDescription != nil {
			detail += ": " + *p.ErrorDescription
		}
		return page{
			Title: notConnected, Text: "GitHub did not let the installation be connected. Close this window and open the link again.", Detail: detail, status: http.StatusOK,
		}, nil
	}
	if p.State == nil && (value(p.SetupAction) == updated || p.InstallationID != nil) {
		// The installation was begun at GitHub: there is no workspace to connect it with.
		return installedPage, nil
	}
	workspaceID, err := s.Integrations.Installing(ctx, value(p.State))
	if err == nil {
		err = integration.Callback{State: value(p.State), Code: value(p.Code), InstallationID: value(p.InstallationID)}.Check()
	}
	if err != nil {
		return s.installedAgain(ctx, value(p.State), err)
	}
	w, err := s.Workspaces.Get(ctx, workspaceID)
	if err != nil {
		return refusedPage(err)
	}
	return page{
		Title: "Connect GitHub?",
		Text: fmt.Sprintf("Everybody in the workspace “%s” will be able to deploy, and so to read, the repositories of this installation. "+
			"Go on only if you have come from there yourself.", w.Name),
		Detail: fmt.Sprintf("Workspace %s, GitHub installation %d", w.ID, *p.InstallationID), Button: "Connect", status: http.StatusOK,
	}, nil
}

// ConfirmInstallation connects an installation with the workspace that its link was made for.
func (s server) ConfirmInstallation(ctx context.Context, request ConfirmInstallationRequestObject) (ConfirmInstallationResponseObject, error) {
	p := request.Params
	if err := checkSender(p.SecFetchSite); err != nil {
		return refusedPage(err)
	}
	i, err := s.Integrations.CompleteInstall(ctx, integration.Callback{
		State: value(p.State), Code: value(p.Code), InstallationID: value(p.InstallationID),
	})
	if err != nil {
		return s.installedAgain(ctx, value(p.State), err)
	}
	return page{
		Title: "Connected", Text: "The repositories of " + i.Name + " can be deployed now. You can close this window.",
		Detail: "integration_id " + i.Integration, status: http.StatusOK,
	}, nil
}

// installedAgain shows why a callback was refused. A callback that was used before does nothing; if
// its installation is connected, the page says so.
func (s server) installedAgain(ctx context.Context, state string, refusal error) (page, error) {
	p, err := refusedPage(refusal)
	if err != nil {
		return p, err
	}
	connected, err := s.Integrations.Connects(ctx, state)
	if connected {
		p.Title, p.Text = "Already connected", "This address was used before, and the installation is connected. You can close this window."
	}
	return p, err
}

// VisitAskAboutInstallationResponse implements AskAboutInstallationResponseObject.
func (p page) VisitAskAboutInstallationResponse(w http.ResponseWriter) error { return p.write(w) }

// VisitConfirmInstallationResponse implements ConfirmInstallationResponseObject.
func (p page) VisitConfirmInstallationResponse(w http.ResponseWriter) error { return p.write(w) }

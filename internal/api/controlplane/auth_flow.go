package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// Authenticate returns a token, or the address where the user consents.
func (s server) Authenticate(ctx context.Context, request AuthenticateRequestObject) (AuthenticateResponseObject, error) {
	body := request.Body
	of := authservice.Owner{Workspace: auth.Workspace(ctx)}
	named := cmp.Or(body.UserID, body.LsUserID)
	// An agent without a user may use any account connected to it. A signed-in user may not.
	if signedIn := !mayName(auth.Of(ctx), ""); named != nil || body.AgentID == nil || signedIn {
		var err error
		if of, err = owner(ctx, inBody, named); err != nil {
			return nil, err
		}
	}
	answer, err := s.AuthService.Authenticate(ctx, authservice.AuthRequest{
		Workspace: of.Workspace, User: of.User, Agent: value(body.AgentID), ProviderID: body.Provider, Scopes: body.Scopes,
		ForceNew: value(body.ForceNew), TokenID: value(body.TokenID), Default: optional.Or(body.IsDefault, true),
		RedirectURI: s.callbackURL(ctx, body.Provider),
	})
	if err != nil {
		return nil, err
	}
	shown := Authenticate200JSONResponse{Body: AuthenticateResponse{
		Status: string(answer.Status), URL: optional.Of(answer.URL), AuthID: optional.Of(answer.AuthID), Token: optional.Of(answer.Token),
		TokenID: optional.Of(answer.TokenID), UserID: optional.Of(answer.User), ExpiresAt: clock.Nullable(answer.Expires), Metadata: answer.Metadata,
	}}
	if answer.AuthID == "" {
		// The answer has begun nothing and is valid for a moment: a repeated request gets a new
		// answer.
		shown.Headers.CacheControl = new(web.NoStore)
	}
	return shown, nil
}

// defaultAuthWait is for how many seconds a request waits for a user's consent if it names no time.
const defaultAuthWait = 30

// WaitForAuth waits for a user's consent.
func (s server) WaitForAuth(ctx context.Context, request WaitForAuthRequestObject) (WaitForAuthResponseObject, error) {
	timeout := seconds(optional.Or(request.Params.Timeout, defaultAuthWait))
	wait := timeout
	if s.WaitLimit > 0 {
		wait = min(timeout, s.WaitLimit)
	}
	answer, err := s.AuthService.Wait(ctx, auth.Workspace(ctx), request.AuthID, wait)
	switch {
	case err != nil:
		return nil, err
	case !mayName(auth.Of(ctx), answer.User):
		answer = authservice.Answer{Status: authservice.NotFound}
	case answer.Status == authservice.Timeout && wait < timeout:
		answer.Status = authservice.Pending
	}
	return WaitForAuth200JSONResponse{
		Status: string(answer.Status), Token: optional.Of(answer.Token), UserID: optional.Of(answer.User),
		Error: optional.Of(answer.Error), ErrorDescription: optional.Of(answer.ErrorDescription),
	}, nil
}

// AuthCallback takes the parameters that a provider sends through the user's browser.
func (s server) AuthCallback(ctx context.Context, request AuthCallbackRequestObject) (AuthCallbackResponseObject, error) {
	p := request.Params
	return s.arrive(ctx, authservice.Callback{
		ProviderID: request.ProviderID, State: value(p.State), Code: value(p.Code),
		Error: value(p.Error), ErrorDescription: value(p.ErrorDescription), Issuer: value(p.Iss),
	})
}

// looked answers a HEAD of an address that a user is sent back to. Link scanners and proxies
// send such requests. The code in the address is valid once, so it is left to the browser.
func looked(next StrictHandlerFunc, operation string) StrictHandlerFunc {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		if r.Method == http.MethodHead && (operation == "AuthCallback" || operation == "AuthSetup") {
			return page{status: http.StatusOK}, nil
		}
		return next(ctx, w, r, request)
	}
}

// updated is the setup_action of an installation that was changed; it comes without an
// authorization.
const updated = "update"

// AuthSetup takes the browser of a user who installed an app at the provider.
func (s server) AuthSetup(ctx context.Context, request AuthSetupRequestObject) (AuthSetupResponseObject, error) {
	p := request.Params
	if value(p.SetupAction) == updated || p.State == nil && p.Error == nil {
		return installedPage, nil
	}
	return s.arrive(ctx, authservice.Callback{
		ProviderID: request.ProviderID, State: value(p.State), Code: value(p.Code),
		Error: value(p.Error), ErrorDescription: value(p.ErrorDescription), Issuer: value(p.Iss),
	})
}

// arrive takes a browser that comes back from a provider. A refusal ends the request. A code
// connects nothing yet: the page names the user that would get the account and asks, because the
// link may have come from an attacker who wants other people's accounts.
func (s server) arrive(ctx context.Context, back authservice.Callback) (page, error) {
	if back.Error != "" || back.Code == "" {
		return s.finish(ctx, back)
	}
	owner, provider, err := s.AuthService.Asked(ctx, back)
	if err != nil {
		return s.again(ctx, back, err)
	}
	w, err := s.Workspaces.Get(ctx, owner.Workspace)
	if err != nil {
		return refusedPage(err)
	}
	query := url.Values{"state": {back.State}, "code": {back.Code}}
	if back.Issuer != "" {
		query.Set("iss", back.Issuer)
	}
	return page{
		Title: "Connect your account?",
		Text: fmt.Sprintf("Agents that act for the user “%s” of the workspace “%s” will be able to use your account at “%s”. "+
			"Go on only if you are this user and have asked for this yourself.", owner.User, w.Name, provider.Name),
		Detail: fmt.Sprintf("Workspace %s, user %s, provider %s", w.ID, owner.User, provider.ProviderID),
		Button: "Connect",
		// The address is relative, because the browser may know the server under a path of its own.
		Action: "../setup/" + url.PathEscape(provider.ProviderID) + "?" + query.Encode(), status: http.StatusOK,
	}, nil
}

// ConfirmAuth exchanges the code of a user who has agreed.
func (s server) ConfirmAuth(ctx context.Context, request ConfirmAuthRequestObject) (ConfirmAuthResponseObject, error) {
	p := request.Params
	if err := checkSender(p.SecFetchSite); err != nil {
		return refusedPage(err)
	}
	return s.finish(ctx, authservice.Callback{ProviderID: request.ProviderID, State: value(p.State), Code: value(p.Code), Issuer: value(p.Iss)})
}

// finish takes a callback of a browser. The user in front of the browser gets a page, also when
// the callback is refused.
func (s server) finish(ctx context.Context, back authservice.Callback) (page, error) {
	outcome, err := s.AuthService.Complete(ctx, back)
	if err != nil {
		return s.again(ctx, back, err)
	}
	return outcomePage(outcome), nil
}

// again shows why a callback was refused. A callback that was used before does nothing; if it has
// connected the account, the page says so.
func (s server) again(ctx context.Context, back authservice.Callback, refusal error) (page, error) {
	p, err := refusedPage(refusal)
	if err != nil {
		return p, err
	}
	switch done, underWay := s.AuthService.Connects(ctx, back); {
	case done:
		p.Title, p.Text = "Already connected", "This address was used before, and the account is connected. You can close this window."
	case underWay:
		p.Title, p.Text = "Being connected", "This address was used before, and the account is being connected. Go on where you came from."
	}
	return p, nil
}

// FinishAuth takes the parameters that a provider sent to a page of the client's own.
func (s server) FinishAuth(ctx context.Context, request FinishAuthRequestObject) (FinishAuthResponseObject, error) {
	caller := authservice.Owner{Workspace: auth.Workspace(ctx)}
	if p := auth.Of(ctx); !mayName(p, "") {
		caller.User = p.Subject
	}
	back := authservice.Callback{
		ProviderID: request.ProviderID, State: request.Body.State, Code: value(request.Body.Code), Caller: &caller,
		Error: value(request.Body.Error), ErrorDescription: value(request.Body.ErrorDescription), Issuer: value(request.Body.Iss),
	}
	if back.Code == "" && back.Error == "" {
		return nil, fault.Shape(fault.Detail{Loc: []any{"body", "code"}, Msg: "Field required", Type: "missing"})
	}
	outcome, err := s.AuthService.Complete(ctx, back)
	status := authservice.Completed
	if outcome.Error != "" {
		status = "failed"
	}
	return FinishAuth200JSONResponse{
		Status: string(status), AuthID: outcome.AuthID, ProviderID: outcome.ProviderID,
		Error: optional.Of(outcome.Error), ErrorDescription: optional.Of(outcome.ErrorDescription),
	}, err
}

package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/oauthstate"
)

const (
	kindInstallRequest = "install_request"

	// attrState is the hash of the state while it is good, attrUsed the hash after a callback has
	// used the state up, for the installation of attrInstallation.
	attrState = "state"
	attrUsed  = "used"

	// installTime is how long a person may take to install the App.
	installTime = time.Hour
)

// BeginInstall returns the link at which a person installs the App for the workspace: the
// interface's install_url.
func (s *Service) BeginInstall(ctx context.Context, workspace string) (link string, err error) {
	app, err := s.app(ctx)
	if err != nil {
		return "", err
	}
	now := s.now()
	state := oauthstate.New(workspace, id.New(now))
	put := record.New(requestKey(state), kindInstallRequest, now, table.Attrs{attrState: state.Hash()}, nil)
	put.Item.Expires = now.Add(installTime)
	if err := s.table.Transact(ctx, put); err != nil {
		return "", fmt.Errorf("create install request: %w", err)
	}
	return app.installURL(state.String()), nil
}

// Callback holds the values with which GitHub sends the browser back. They are not trusted.
type Callback struct {
	State, Code    string
	InstallationID int64
}

// Check refuses a callback without an installation that a person consented to, as a
// fault.Invalid.
func (c Callback) Check() error {
	if c.InstallationID <= 0 {
		return fault.New(fault.Invalid, "The GitHub App is not installed yet: an owner of the organization has to approve it. Then open the link again.")
	}
	if c.Code == "" {
		return fault.New(fault.Invalid, "GitHub sent no code: the App has to ask for the user's authorization during installation.")
	}
	return nil
}

// CompleteInstall binds an installation to the workspace that the state belongs to. Every
// callback that is not valid is a fault.Invalid.
func (s *Service) CompleteInstall(ctx context.Context, back Callback) (Installation, error) {
	app, err := s.app(ctx)
	if err != nil {
		return Installation{}, err
	}
	state, ok := oauthstate.Parse(back.State)
	if !ok {
		return Installation{}, badState()
	}
	if err := back.Check(); err != nil {
		return Installation{}, err
	}
	if err := s.claim(ctx, state, back.InstallationID); err != nil {
		return Installation{}, err
	}
	account, err := app.confirm(ctx, back)
	if err != nil {
		return Installation{}, err
	}
	former, err := s.former(ctx, app, state.Workspace, back.InstallationID, account)
	if err != nil {
		return Installation{}, err
	}
	return s.bind(ctx, state.Workspace, back.InstallationID, account, former)
}

// former returns the id of the workspace's integration whose place a new installation at an account
// takes, "" if there is none: GitHub has no longer the installation that the integration is for.
func (s *Service) former(ctx context.Context, app *github, workspace string, installation int64, account string) (string, error) {
	installations, err := s.Installations(ctx, workspace)
	if err != nil {
		return "", err
	}
	client, err := app.asApp()
	if err != nil {
		return "", err
	}
	for _, i := range installations {
		if i.InstallationID == installation || !strings.EqualFold(i.Name, account) || i.leaving {
			continue
		}
		_, _, err = client.Apps.GetInstallation(ctx, i.InstallationID)
		if refused(err).code == http.StatusNotFound {
			return i.Integration, nil
		}
		if err != nil {
			return "", app.trouble(err, account)
		}
	}
	return "", nil
}

// Installing returns the workspace that a callback's installation would be bound to, and does
// not use the state up: the server asks a person about this workspace before CompleteInstall.
// A state that is not valid is a fault.Invalid.
func (s *Service) Installing(ctx context.Context, text string) (workspace string, err error) {
	state, ok := oauthstate.Parse(text)
	if !ok {
		return "", badState()
	}
	item, err := record.Get(ctx, s.table, "install request", requestKey(state), badState())
	if err == nil && !state.Opens(item.Text(attrState)) {
		err = badState()
	}
	return state.Workspace, err
}

// Connects reports whether a callback with the same state came before, and its installation is
// bound to the workspace. A browser repeats a callback when a person reloads the page, goes back or
// presses the button twice.
func (s *Service) Connects(ctx context.Context, text string) (bool, error) {
	state, ok := oauthstate.Parse(text)
	if !ok {
		return false, nil
	}
	request, err := record.Get(ctx, s.table, "install request", requestKey(state), nil)
	if err != nil || request == nil || !state.Opens(request.Text(attrUsed)) {
		return false, err
	}
	binding, err := record.Get(ctx, s.table, "binding of installation", keys.InstallationBinding(state.Workspace, request.Int(attrInstallation)), nil)
	return binding != nil, err
}

// claim uses a state up for an installation. If two callbacks carry the same state, one of them
// claims it.
func (s *Service) claim(ctx context.Context, state oauthstate.State, installation int64) error {
	claimed, err := record.Try(ctx, s.table, table.Update{
		Key: requestKey(state), Set: table.Attrs{attrUsed: state.Hash(), attrInstallation: installation}, Unset: []string{attrState},
		If: table.Equals(attrState, state.Hash()),
	})
	if err == nil && !claimed {
		return badState()
	}
	return err
}

// confirm asks GitHub whether an installation belongs to the App, and whether the person who
// consented may decide about it; it returns the account's name. The existence of the
// installation does not prove anything about the sender of its id. A person who can see the
// installation does not necessarily own everything that it may read.
func (g *github) confirm(ctx context.Context, back Callback) (account string, err error) {
	app, err := g.asApp()
	if err != nil {
		return "", err
	}
	installation, _, err := app.Apps.GetInstallation(ctx, back.InstallationID)
	if refused(err).code == http.StatusNotFound {
		return "", unconfirmed(back.InstallationID)
	}
	if err != nil {
		return "", g.trouble(err, "the account")
	}
	at := installation.GetAccount()
	mine, err := g.owns(ctx, back.Code, at.GetType() == "User", at.GetID(), at.GetLogin())
	if err != nil {
		return "", err
	}
	if !mine || installation.GetID() != back.InstallationID {
		return "", unconfirmed(back.InstallationID)
	}
	return at.GetLogin(), nil
}

// owns reports whether the person of a code is an account, or an owner of an organization.
func (g *github) owns(ctx context.Context, code string, person bool, accountID int64, login string) (bool, error) {
	token, err := g.oauth.Exchange(context.WithValue(ctx, oauth2.HTTPClient, g.http), code)
	if answer := refused(err); answer.code != 0 && answer.code < http.StatusInternalServerError && !answer.limited() {
		return false, fault.New(fault.Invalid, "GitHub does not accept the code that it sent: it was used before, or has expired. Open the link again.")
	}
	if err != nil {
		// The error may quote GitHub's answer.
		return false, fault.New(fault.Unavailable, "GitHub cannot identify you at present. Open the link again later.")
	}
	user, err := g.as(token.AccessToken)
	if err != nil {
		return false, err
	}
	if person {
		me, _, err := user.Users.Get(ctx, "")
		return err == nil && accountID != 0 && me.GetID() == accountID, g.trouble(err, login)
	}
	membership, _, err := user.Organizations.GetOrgMembership(ctx, "", url.PathEscape(login))
	if refused(err).code == http.StatusNotFound {
		return false, nil
	}
	return err == nil && membership.GetState() == "active" && membership.GetRole() == "admin", g.trouble(err, login)
}

func unconfirmed(installation int64) error {
	return fault.New(fault.Invalid,
		"GitHub does not confirm that you may connect installation ID %d: only the account itself, or an owner of the organization, can.", installation)
}

func requestKey(s oauthstate.State) table.Key { return keys.InstallRequest(s.Workspace, s.Request) }

// badState is the fault of every state that is not valid. It is the same for all reasons, so that
// a caller who guesses learns nothing.
func badState() error {
	return fault.New(fault.Invalid, "The state is not valid: it is unknown, was used before, or has expired. Open the link of a new installation.")
}

package controlplane

import (
	"cmp"
	"context"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// self returns the caller as a user: the user that a bearer token names, or the API key itself.
func self(p workspace.Principal) string { return cmp.Or(p.Subject, p.Key) }

// mayName reports whether a caller may act for a user. Programs with keys act for their users,
// and so do admins; a signed-in user acts for no other user.
func mayName(p workspace.Principal, user string) bool {
	return p.Subject == "" || p.Role == workspace.Admin || user == p.Subject
}

// owner returns the owner of the tokens that a request is about: the user that the request
// names, otherwise the caller. in is the part of the request that names the user.
func owner(ctx context.Context, in string, named *string) (authservice.Owner, error) {
	p := auth.Of(ctx)
	user := self(p)
	if named != nil {
		user = *named
	}
	switch {
	case user == "":
		return authservice.Owner{}, fault.Shape(fault.Detail{Loc: []any{in, "user_id"}, Msg: "Field required", Type: "missing"})
	case !mayName(p, user):
		return authservice.Owner{}, fault.New(fault.Forbidden, "The credentials do not allow this for another user.")
	}
	return authservice.Owner{Workspace: p.Workspace, User: user}, nil
}

// Names of query parameters and bodies, in the form that package web uses.
const (
	inQuery = "query"
	inBody  = "body"
)

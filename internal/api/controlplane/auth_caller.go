package controlplane

import (
	"cmp"
	"context"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// self is the user that a caller is: whom a bearer token names, or the API key itself.
func self(p apikey.Principal) string { return cmp.Or(p.Subject, p.Key) }

// mayName tells whether a caller may act for a user. Programs with keys act for their users, as do
// admins; who has signed in acts for nobody else.
func mayName(p apikey.Principal, user string) bool {
	return p.Subject == "" || p.Role == workspace.Admin || user == p.Subject
}

// owner returns whose tokens a request is about: the user whom it names, else the caller. in is
// where it names one.
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

// names of query parameters and bodies, as package web has them.
const (
	inQuery = "query"
	inBody  = "body"
)

package signin

import (
	"context"
	"strings"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// find returns the workspace that a person signs in to, and the person as its member. A workspace
// that does not exist and a workspace of others are the same fault.Forbidden. If the person names
// no workspace, it is the only one that has the person as a member; with several, the error is a
// fault.Conflict, which lists them.
func (s signIn) find(ctx context.Context, token oidc.Token, named string) (workspaceID string, m workspace.Member, err error) {
	members := oidc.Tokens{Workspaces: s.Workspaces}
	stranger := fault.New(fault.Forbidden, "You are not a member of %s.", name(named))
	var all []workspace.Workspace
	if named == "" {
		all, err = s.Workspaces.List(ctx)
	} else if requested, missing := s.Workspaces.Find(ctx, named); !fault.Is(missing, fault.NotFound) {
		all, err = []workspace.Workspace{requested}, missing
	}
	if err != nil {
		return "", m, err
	}
	var names []string
	for _, w := range all {
		member, err := members.Member(ctx, w.ID, token)
		switch {
		case fault.Is(err, fault.Forbidden):
		case err != nil:
			return "", m, err
		default:
			workspaceID, m = w.ID, member
			names = append(names, w.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", m, stranger
	case 1:
		return workspaceID, m, nil
	default:
		return "", m, fault.New(fault.Conflict, "You are a member of several workspaces. Name one of them: %s.", strings.Join(names, ", "))
	}
}

func name(workspace string) string {
	if workspace == "" {
		return "any workspace of this server"
	}
	return "the workspace " + workspace
}

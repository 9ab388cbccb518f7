package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/access"
	"github.com/slipway-run/slipway/internal/api/agentserver/caller"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// A repository's own authentication replaces the platform's key: the handlers in the agent's
// process decide which user sent a request, and this package enforces their decisions. No
// answer of the handlers is used for a second request. Package strangers remembers which
// credentials were let in, but only for its bounds. Everything except an answer that lets a request
// in keeps the request out.

const (
	// maxUser is how many bytes a user may take: each run of the user carries them.
	maxUser = 16 << 10
	// operationOfPlatform is the x-permission of the operator's operations: the platform's key
	// counts there also if the repository has an authentication of its own.
	operationOfPlatform = "platform:read"
)

type ownUserKey struct{}

// ownUser returns the user that the repository's own authentication has let in, or the user
// that its agent acts for; nil if there is no such authentication, and for the agent itself.
func ownUser(ctx context.Context) json.RawMessage {
	user, _ := ctx.Value(ownUserKey{}).(json.RawMessage)
	return user
}

// admitted is a deployment and the sender of a request to it.
type admitted struct {
	deployment.Deployment

	principal workspace.Principal
	// user is the user of the repository's own authentication; nil if there is no such user.
	user json.RawMessage
}

// admit finds the deployment that the path names, and the sender of the request. A deployment
// of another workspace does not exist for a key of the platform.
func (s server) admit(r *http.Request, o web.Operation) (admitted, error) {
	known, err := s.deployment(r, o)
	if o.Permission == operationOfPlatform || (err == nil && !known.Auth) {
		return known, err
	}
	if err == nil && known.principal.Role == workspace.Agent {
		known.user = caller.ActingFor(known.principal, r.Header)
		return known, nil
	}
	own, identified := known.Deployment, err == nil
	if err != nil {
		// The platform may not know the credentials because they belong to the repository.
		var none error
		if own, none = s.withOwnAuth(r, err); none != nil {
			return known, none
		}
	}
	authentication, err := s.strangers.Admit(r, own, identified)
	if err != nil {
		return known, err
	}
	letIn := false
	defer func() { authentication.Answered(letIn) }()
	user, err := s.admitUser(r, own)
	letIn = err == nil
	return user, err
}

// withOwnAuth finds a deployment whose repository has its own authentication, in any
// workspace. If there is no such deployment, the error is refused, with which the platform has
// not let the request in.
func (s server) withOwnAuth(r *http.Request, refused error) (deployment.Deployment, error) {
	refusals := []fault.Kind{fault.Unauthorized, fault.Forbidden, fault.NotFound}
	if !isID(deploymentID(r)) || !slices.ContainsFunc(refusals, func(kind fault.Kind) bool { return fault.Is(refused, kind) }) {
		return deployment.Deployment{}, refused
	}
	d, err := s.Deployments.HeadWithID(r.Context(), deploymentID(r))
	if fault.Is(err, fault.NotFound) || (err == nil && !d.Auth) {
		err = refused
	}
	return d, err
}

// admitUser asks the repository which user sent the request.
func (s server) admitUser(r *http.Request, d deployment.Deployment) (admitted, error) {
	request := graph.Request{
		Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, strings.Replace(base, "{deployment_id}", r.PathValue("deployment_id"), 1)),
		PathParams: access.PathParams(r), Query: r.URL.RawQuery, Headers: caller.Headers(r),
	}
	ruling, err := s.rule(r.Context(), d, graph.Invocation{Operation: graph.OperationAuthenticate, Request: &request})
	if err != nil {
		return admitted{}, err
	}
	if !ruling.Allowed {
		return admitted{}, s.refusal(r.Context(), d, ruling, fault.Unauthorized, "Unauthorized")
	}
	identity, err := identityOf(ruling.User)
	if err != nil {
		return admitted{}, fmt.Errorf("own authentication of deployment %s: %w", d.Deployment, err)
	}
	inbound.Known(r.Context(), d.Workspace)
	// The role has no permissions: the repository decides about the user's rights.
	return admitted{d, workspace.Principal{Workspace: d.Workspace, Subject: identity}, ruling.User}, nil
}

func (s server) rule(ctx context.Context, d deployment.Deployment, invocation graph.Invocation) (graph.Ruling, error) {
	return askAgent(ctx, s, d.Workspace, func(ctx context.Context) (graph.Ruling, error) {
		return s.Agents.Rule(ctx, d.Workspace, d.Deployment, invocation)
	})
}

// identityOf checks a user. The identity may be empty, as on the framework's servers: a repository
// may let in visitors that it has no name for.
func identityOf(user json.RawMessage) (string, error) {
	var known struct {
		Identity *string `json:"identity"`
	}
	if len(user) > maxUser {
		return "", fmt.Errorf("the user takes more than %d bytes", maxUser)
	}
	if err := json.Unmarshal(user, &known); err != nil {
		return "", fmt.Errorf("read the user: %w", err)
	}
	if known.Identity == nil {
		return "", errors.New("the user has no identity")
	}
	return *known.Identity, nil
}

// decide asks the repository whether the user of the request may make an access. The metadata
// of the resource must match the filter; members are the members of the value as the handler
// has left them.
func (s server) decide(ctx context.Context, user json.RawMessage, to access.Access, value map[string]any) (filter match.Filter, members map[string]json.RawMessage, err error) {
	d := served(ctx)
	ruling, err := s.rule(ctx, d, graph.Invocation{
		Operation: graph.OperationAuthorize, Access: &graph.Access{User: user, Resource: to.Resource, Action: to.Action, Value: object(value)},
	})
	if err != nil {
		return filter, nil, err
	}
	if !ruling.Allowed {
		return filter, nil, s.refusal(ctx, d, ruling, fault.Forbidden, "Forbidden")
	}
	if filter, members, err = access.Ruled(ruling); err != nil {
		return filter, nil, fmt.Errorf("own authorization of %s:%s for deployment %s: %w", to.Resource, to.Action, d.Deployment, err)
	}
	if to.Resource == "store" && !filter.Empty() {
		return filter, nil, fault.New(fault.Forbidden, "The repository's own authentication filters by metadata, which items of the store do not have: it can change the namespace.")
	}
	return filter, members, nil
}

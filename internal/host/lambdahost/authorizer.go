package lambdahost

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/slipway-run/slipway/internal/api/agentserver/caller"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// errUnauthorized has the text that API Gateway answers with 401; it answers any other error as a
// fault of the authorizer.
var errUnauthorized = errors.New("Unauthorized")

// Unchecked is the message of the log lines about callers whose credentials could not be checked.
// Alarms of the AWS stack count these lines (template.yaml), because Lambda's own metric counts
// each errUnauthorized, which every stranger can cause, as an error too.
const Unchecked = "credentials not checked"

// errAuthorizer stands for an error that was logged.
var errAuthorizer = errors.New("the request could not be authenticated")

// AuthorizerFunc is the function of API Gateway's REQUEST authorizers.
type AuthorizerFunc func(context.Context, events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error)

// Authorizer returns the function of the API's authorizer.
//
// Any header of a request to an agent server may be a credential of a repository's users, so
// API Gateway cannot know by which headers to keep an answer, and keeps no answer. The callers
// that the platform knows are kept here for a minute: so a revoked key is of no use after a
// minute, on all routes.
//
// A caller of an agent server that the platform does not know is let through if the deployment
// decides about such callers by itself. The function behind the authorizer then gets an empty
// context: it knows that the platform does not know the caller, and asks the deployment.
//
// Browsers send preflights without credentials, and no operation has the method OPTIONS: functions
// answer it to every caller, as on one machine.
func Authorizer(keys auth.Authenticator, agents caller.AgentTokens, deployments Deployments, now clock.Clock, log *slog.Logger) AuthorizerFunc {
	a := authorizer{keys: newPrincipalCache(keys, now), agents: agents, open: newOpeningCache(deployments, now)}
	return func(ctx context.Context, event events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error) {
		principal, err := a.caller(ctx, &event)
		if fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.Forbidden) {
			isOpen, failed := a.isOpen(ctx, &event)
			if isOpen {
				return policy(&event, "Allow", "stranger"), nil
			}
			err = cmp.Or(failed, err)
		}
		switch {
		case fault.Is(err, fault.Unauthorized):
			return events.APIGatewayCustomAuthorizerResponse{}, errUnauthorized
		case fault.Is(err, fault.Forbidden):
			return policy(&event, "Deny", "stranger"), nil
		case err != nil:
			log.ErrorContext(ctx, Unchecked, "error", err)
			return events.APIGatewayCustomAuthorizerResponse{}, errAuthorizer
		}
		answer := policy(&event, "Allow", principal.Workspace)
		answer.Context = contextOf(principal)
		return answer, nil
	}
}

// authorizer is what an AuthorizerFunc asks.
type authorizer struct {
	keys   *principalCache
	agents caller.AgentTokens
	open   *openingCache
}

// isOpen reports whether a caller that the platform does not know is let through.
func (a authorizer) isOpen(ctx context.Context, event *events.APIGatewayCustomAuthorizerRequestTypeRequest) (bool, error) {
	switch {
	case event.HTTPMethod == http.MethodOptions:
		return true, nil
	case isAgentServer(event):
		return a.open.isOpen(ctx, deploymentID(event))
	}
	return false, nil
}

// caller finds the caller that the platform knows. A caller of an agent server may name another
// workspace in X-Tenant-Id: the agent server refuses that by itself.
func (a authorizer) caller(ctx context.Context, event *events.APIGatewayCustomAuthorizerRequestTypeRequest) (workspace.Principal, error) {
	r, err := credentials(ctx, event)
	if err != nil {
		return workspace.Principal{}, err
	}
	if !isAgentServer(event) {
		return auth.Tenant(a.keys, r)
	}
	if a.agents != nil {
		principal, isAgent, err := caller.Agent(r, a.agents, deploymentID(event))
		if isAgent || err != nil {
			return principal, err
		}
	}
	return a.keys.Key(r)
}

// deploymentID returns the id in the path as ids are stored: clients may write capitals.
func deploymentID(event *events.APIGatewayCustomAuthorizerRequestTypeRequest) string {
	return strings.ToLower(event.PathParameters["deployment_id"])
}

// isAgentServer decides by the route, which comes from the gateway and not from the client.
func isAgentServer(event *events.APIGatewayCustomAuthorizerRequestTypeRequest) bool {
	return strings.HasPrefix(cmp.Or(event.Resource, event.Path), "/d/")
}

// credentials returns the headers that an Authenticator reads. A request without credentials is a
// fault.Unauthorized without asking the Authenticator. A credential that comes twice is refused,
// too: parts of the platform could read different ones of the two.
func credentials(ctx context.Context, event *events.APIGatewayCustomAuthorizerRequestTypeRequest) (*http.Request, error) {
	header := http.Header{}
	for name, values := range event.MultiValueHeaders {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	if len(event.MultiValueHeaders) == 0 {
		for name, value := range event.Headers {
			header.Add(name, value)
		}
	}
	for _, name := range []string{auth.HeaderKey, auth.HeaderBearer, auth.HeaderTenant} {
		if len(header.Values(name)) > 1 {
			return nil, fault.New(fault.Unauthorized, "The header %s comes twice.", name)
		}
	}
	if _, hasToken := auth.Bearer(header); header.Get(auth.HeaderKey) == "" && !hasToken {
		return nil, fault.New(fault.Unauthorized, "The header %s is missing.", auth.HeaderKey)
	}
	return (&http.Request{Header: header}).WithContext(ctx), nil
}

// policy covers the whole stage: API Gateway keeps no policy for another request, and functions
// behind the authorizer do nothing for a caller without a workspace.
func policy(event *events.APIGatewayCustomAuthorizerRequestTypeRequest, effect, principal string) events.APIGatewayCustomAuthorizerResponse {
	// arn:aws:execute-api:region:account:api/stage/method/path
	resource := event.MethodArn
	if parts := strings.SplitN(resource, "/", 3); len(parts) == 3 {
		resource = parts[0] + "/" + parts[1] + "/*"
	}
	return events.APIGatewayCustomAuthorizerResponse{
		PrincipalID: principal,
		PolicyDocument: events.APIGatewayCustomAuthorizerPolicy{
			Version:   "2012-10-17",
			Statement: []events.IAMPolicyStatement{{Action: []string{"execute-api:Invoke"}, Effect: effect, Resource: []string{resource}}},
		},
	}
}

package lambdahost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
)

// errUnauthorized has the text that API Gateway answers with 401; any other error is a 500.
var errUnauthorized = errors.New("Unauthorized")

// errAuthorizer stands for an error that was logged.
var errAuthorizer = errors.New("the request could not be authenticated")

// AuthorizerFunc is the function of API Gateway's REQUEST authorizers.
type AuthorizerFunc func(context.Context, events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error)

// Authorizer returns the function of both authorizers of the API.
//
// The authorizer of the agent server's routes reads the key alone, and API Gateway keeps the
// answer. The authorizer of the control plane's routes also takes bearer tokens and checks the
// tenant; its headers are optional, so API Gateway keeps nothing. The result is kept here
// instead, for the same time: so a revoked key is of no use after a minute, on all routes.
func Authorizer(keys auth.Authenticator, agents agentserver.AgentTokens, now clock.Clock, log *slog.Logger) AuthorizerFunc {
	remembered := newMemory(keys, now)
	return func(ctx context.Context, event events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error) {
		r, err := credentials(ctx, &event)
		if err != nil {
			return events.APIGatewayCustomAuthorizerResponse{}, errUnauthorized
		}
		var principal apikey.Principal
		isAgent := false
		if isAgentServer(&event) && agents != nil {
			principal, isAgent, err = agentserver.AgentCaller(r, agents, strings.ToLower(event.PathParameters["deployment_id"]))
		}
		switch {
		case isAgent || err != nil:
		case isAgentServer(&event):
			principal, err = keys.Key(r)
		default:
			principal, err = auth.Tenant(remembered, r)
		}
		switch {
		case fault.Is(err, fault.Unauthorized):
			return events.APIGatewayCustomAuthorizerResponse{}, errUnauthorized
		case fault.Is(err, fault.Forbidden):
			return policy(&event, "Deny", "stranger"), nil
		case err != nil:
			log.ErrorContext(ctx, "authenticate request", "error", err)
			return events.APIGatewayCustomAuthorizerResponse{}, errAuthorizer
		}
		answer := policy(&event, "Allow", principal.Workspace)
		answer.Context = contextOf(principal)
		return answer, nil
	}
}

// isAgentServer decides by the route, which comes from the gateway and not from the client.
func isAgentServer(event *events.APIGatewayCustomAuthorizerRequestTypeRequest) bool {
	return strings.HasPrefix(cmp.Or(event.Resource, event.Path), "/d/")
}

// credentials returns the headers that an Authenticator reads. A request without credentials is
// refused without asking the Authenticator. A credential that comes twice is refused, too: API
// Gateway keeps answers by one of the two, and it is not known by which one.
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
			return nil, fmt.Errorf("the header %s comes twice", name)
		}
	}
	if _, hasToken := auth.Bearer(header); header.Get(auth.HeaderKey) == "" && !hasToken {
		return nil, fmt.Errorf("the header %s is missing", auth.HeaderKey)
	}
	return (&http.Request{Header: header}).WithContext(ctx), nil
}

// policy covers the whole stage: API Gateway keeps it for the credentials, whatever route they
// were first used for.
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

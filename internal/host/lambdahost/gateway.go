package lambdahost

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Members of the authorizer's context: whom the request acts for, and as what. All are strings.
const (
	contextWorkspace = "workspace"
	contextRole      = "role"
	contextKey       = "key_id"
	contextSubject   = "subject"
)

// Gateway tells what API Gateway knows about the request that a handler serves. It is the
// auth.Authenticator of functions behind an authorizer.
type Gateway struct{}

var _ auth.Authenticator = Gateway{}

// origin is what an event says about where its request comes from.
type origin struct {
	principal apikey.Principal
	url       string
}

type originKey struct{}

func originOf(ctx context.Context) origin {
	o, _ := ctx.Value(originKey{}).(origin)
	return o
}

func withOrigin(ctx context.Context, event *events.APIGatewayProxyRequest, header http.Header) context.Context {
	return context.WithValue(ctx, originKey{}, origin{principal: principalOf(event.RequestContext.Authorizer), url: publicURL(event, header)})
}

// principalOf reads what the authorizer found. What it does not say, the principal has not: without
// a role it may do nothing.
func principalOf(said map[string]any) apikey.Principal {
	text := func(name string) string {
		value, _ := said[name].(string)
		return value
	}
	return apikey.Principal{
		Workspace: text(contextWorkspace), Key: text(contextKey), Role: workspace.Role(text(contextRole)), Subject: text(contextSubject),
	}
}

// contextOf is what principalOf reads. API Gateway makes strings of all values, so there are none
// but strings.
func contextOf(p apikey.Principal) map[string]any {
	return map[string]any{
		contextWorkspace: p.Workspace, contextKey: p.Key, contextRole: string(p.Role), contextSubject: p.Subject,
	}
}

// Key returns whom the authorizer let in. A request that came around it is a fault.Unauthorized.
func (Gateway) Key(r *http.Request) (apikey.Principal, error) {
	principal := originOf(r.Context()).principal
	if principal.Workspace == "" {
		return apikey.Principal{}, fault.New(fault.Unauthorized, "The request is not authenticated.")
	}
	return principal, nil
}

// BaseURL returns the function that says where the API is: at the base, or, when that is empty, at
// the address that the request was sent to.
func (Gateway) BaseURL(base string) func(ctx context.Context) string {
	base = strings.TrimSuffix(base, "/")
	return func(ctx context.Context) string { return cmp.Or(base, originOf(ctx).url) }
}

// AgentURL returns the function that says where a deployment's agent server is: below what BaseURL
// says.
func (g Gateway) AgentURL(base string) func(ctx context.Context, deploymentID string) string {
	at := g.BaseURL(base)
	return func(ctx context.Context, deploymentID string) string { return at(ctx) + "/d/" + deploymentID }
}

// publicURL is the address of the API that the client called. The stage is part of it on API
// Gateway's own domain and not on one of ours, where the path of the request begins otherwise.
func publicURL(event *events.APIGatewayProxyRequest, header http.Header) string {
	at := &event.RequestContext
	scheme := "https"
	if header.Get("X-Forwarded-Proto") == "http" {
		scheme = "http"
	}
	stage := ""
	if prefix := "/" + at.Stage; at.Stage != "" && (at.Path == "" || at.Path == prefix || strings.HasPrefix(at.Path, prefix+"/")) {
		stage = prefix
	}
	return scheme + "://" + cmp.Or(at.DomainName, header.Get("Host")) + stage
}

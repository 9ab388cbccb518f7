package lambdahost

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Members of the authorizer's context: the workspace, the caller and its role. All are strings.
const (
	contextWorkspace = "workspace"
	contextRole      = "role"
	contextKey       = "key_id"
	contextSubject   = "subject"
)

// Gateway returns API Gateway's information about the request that a handler serves. It is the
// auth.Authenticator of functions behind an authorizer.
type Gateway struct{}

var _ auth.Authenticator = Gateway{}

// origin is the part of an event that says where its request comes from.
type origin struct {
	principal workspace.Principal
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

// principalOf reads the result of the authorizer. A value that is missing there is missing in
// the principal: without a role the principal may do nothing.
func principalOf(said map[string]any) workspace.Principal {
	text := func(name string) string {
		value, _ := said[name].(string)
		return value
	}
	return workspace.Principal{
		Workspace: text(contextWorkspace), Key: text(contextKey), Role: workspace.Role(text(contextRole)), Subject: text(contextSubject),
	}
}

// contextOf makes the values that principalOf reads. All of them are strings, because API
// Gateway turns all values into strings.
func contextOf(p workspace.Principal) map[string]any {
	return map[string]any{
		contextWorkspace: p.Workspace, contextKey: p.Key, contextRole: string(p.Role), contextSubject: p.Subject,
	}
}

// Key returns the caller that the authorizer admitted. A request that bypassed the authorizer
// is a fault.Unauthorized.
func (Gateway) Key(r *http.Request) (workspace.Principal, error) {
	principal := originOf(r.Context()).principal
	if principal.Workspace == "" {
		return workspace.Principal{}, fault.New(fault.Unauthorized, "The request is not authenticated.")
	}
	return principal, nil
}

// BaseURL returns a function that returns the address of the API: the base, or, if the base is
// empty, the address that the request was sent to.
func (Gateway) BaseURL(base string) func(ctx context.Context) string {
	base = strings.TrimSuffix(base, "/")
	return func(ctx context.Context) string { return cmp.Or(base, originOf(ctx).url) }
}

// AgentURL returns a function that returns the address of a deployment's agent server: below
// the address from BaseURL.
func (g Gateway) AgentURL(base string) func(ctx context.Context, deploymentID string) string {
	at := g.BaseURL(base)
	return func(ctx context.Context, deploymentID string) string { return at(ctx) + "/d/" + deploymentID }
}

// publicURL is the address of the API that the client called. The stage is part of it on API
// Gateway's own domain. On a domain of ours it is not, and the path of the request begins
// differently.
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

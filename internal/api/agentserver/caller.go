package agentserver

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// AgentTokens recognizes the agents of deployments by the tokens with which they are invoked.
type AgentTokens interface {
	// Admit reports whether a token belongs to an agent of the deployment.
	Admit(ctx context.Context, ref deployment.Ref, token string) (bool, error)
}

// caller returns the principal that sent the request: an agent at the server of its own
// deployment, or a principal that the authenticator knows.
func (s server) caller(r *http.Request) (workspace.Principal, error) {
	if s.Tokens != nil {
		principal, ok, err := AgentCaller(r, s.Tokens, deploymentID(r))
		if ok {
			web.UnderWay(r.Context())
		}
		if ok || err != nil {
			return principal, err
		}
	}
	return auth.Tenant(s.Authenticator, r)
}

// AgentCaller reports whether an agent sent a request to the server of a deployment: with its
// invoke token as X-Api-Key or as bearer token, and the workspace in X-Tenant-Id, because
// bearer tokens need it.
func AgentCaller(r *http.Request, tokens AgentTokens, deploymentID string) (_ workspace.Principal, ok bool, err error) {
	token := r.Header.Get(auth.HeaderKey)
	if token == "" {
		token, _ = auth.Bearer(r.Header)
	}
	tenant := strings.ToLower(r.Header.Get(auth.HeaderTenant))
	// Most callers have a key, a session, or a token of an issuer, which has dots: the server
	// does not look these up.
	if token == "" || auth.IsOwn(token) || strings.Contains(token, ".") || !isID(tenant) || !isID(deploymentID) {
		return workspace.Principal{}, false, nil
	}
	ok, err = tokens.Admit(r.Context(), deployment.Ref{Workspace: tenant, Deployment: deploymentID}, token)
	if ok {
		inbound.Known(r.Context(), tenant)
	}
	return workspace.Principal{Workspace: tenant, Role: workspace.Agent, Subject: deploymentID}, ok, err
}

// mayCancel reports whether the loss of the request's connection ends a run. The contract keeps one
// of several values only after the request is authorized, so each of them counts.
func mayCancel(r *http.Request) bool {
	return slices.ContainsFunc(r.URL.Query()["cancel_on_disconnect"], func(value string) bool {
		cancel, err := strconv.ParseBool(value)
		return err == nil && cancel
	})
}

// readingActions are the actions that change nothing. A message of the Agent2Agent protocol and the
// call of a tool at /mcp start runs: these are authorized when the server asks itself for them.
var readingActions = []string{"read", "search", "get", "list_namespaces"}

// onlyReads reports whether a request changes nothing. The routes of a repository's own application
// declare no permission, so the method decides there.
func onlyReads(r *http.Request, o web.Operation) bool {
	if o.Permission == "" {
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return o.Also == "" && slices.Contains(readingActions, accessOf(o.Permission).action)
}

// authorize lets viewers read, lets agents use the server of their own deployment, and lets
// all other callers create runs.
func authorize(principal workspace.Principal, r *http.Request, o web.Operation) error {
	permission := workspace.RunsCreate
	// A request whose lost connection ends a run does more than read.
	if onlyReads(r, o) && !mayCancel(r) {
		permission = workspace.RunsRead
	}
	if principal.Role == workspace.Agent && principal.Subject == deploymentID(r) {
		return nil
	}
	if !principal.May(permission) {
		return fault.New(fault.Forbidden, "The credentials do not allow this: the role %q lacks the permission %s.", principal.Role, permission)
	}
	return nil
}

// Package caller says who sends a request to an agent server, and what agents and repositories may
// learn about the sender.
package caller

import (
	"context"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// AgentTokens recognizes the agents of deployments by the tokens with which they are invoked.
type AgentTokens interface {
	// Admit reports whether a token belongs to an agent of the deployment.
	Admit(ctx context.Context, ref deployment.Ref, token string) (bool, error)
}

// Agent reports whether an agent sent a request to the server of a deployment: with its
// invoke token as X-Api-Key or as bearer token, and the workspace in X-Tenant-Id, because
// bearer tokens need it.
func Agent(r *http.Request, tokens AgentTokens, deploymentID string) (_ workspace.Principal, ok bool, err error) {
	token := r.Header.Get(auth.HeaderKey)
	if token == "" {
		token, _ = auth.Bearer(r.Header)
	}
	tenant := strings.ToLower(r.Header.Get(auth.HeaderTenant))
	// Most callers have a key, a session, or a token of an issuer, which has dots: the server
	// does not look these up.
	if token == "" || auth.IsOwn(token) || strings.Contains(token, ".") || !id.Valid(tenant) || !id.Valid(deploymentID) {
		return workspace.Principal{}, false, nil
	}
	ok, err = tokens.Admit(r.Context(), deployment.Ref{Workspace: tenant, Deployment: deploymentID}, token)
	if ok {
		inbound.Known(r.Context(), tenant)
	}
	return workspace.Principal{Workspace: tenant, Role: workspace.Agent, Subject: deploymentID}, ok, err
}

package agentserver

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/slipway-run/slipway/internal/api/agentserver/access"
	"github.com/slipway-run/slipway/internal/api/agentserver/caller"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// caller returns the principal that sent the request: an agent at the server of its own
// deployment, or a principal that the authenticator knows.
func (s server) caller(r *http.Request) (workspace.Principal, error) {
	if s.Tokens != nil {
		principal, ok, err := caller.Agent(r, s.Tokens, deploymentID(r))
		if ok {
			web.UnderWay(r.Context())
		}
		if ok || err != nil {
			return principal, err
		}
	}
	return auth.Tenant(s.Authenticator, r)
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
	return o.Also == "" && slices.Contains(readingActions, access.Of(o.Permission).Action)
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

type requestKey struct{}

// requestOf returns the request of an operation that needs credentials.
func requestOf(ctx context.Context) *http.Request { return ctx.Value(requestKey{}).(*http.Request) }

// callerOf returns the data of the request that an agent may have.
func callerOf(ctx context.Context) *graph.Caller {
	header, user := requestOf(ctx).Header, ownUser(ctx)
	if user == nil {
		user = caller.User(auth.Of(ctx), header)
	}
	return caller.Of(user, header, served(ctx).Settings.HTTP)
}

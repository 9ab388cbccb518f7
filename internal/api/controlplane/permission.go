package controlplane

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// verbs are what the methods do to a resource.
var verbs = map[string]workspace.Verb{
	http.MethodGet: workspace.Read, http.MethodHead: workspace.Read, http.MethodPost: workspace.Create,
	http.MethodPut: workspace.Update, http.MethodPatch: workspace.Update, http.MethodDelete: workspace.Delete,
}

// permissionFor is what a request takes. The resource is the first word of the path after the
// version: /v2/deployments/...
func permissionFor(r *http.Request) workspace.Permission {
	path := strings.Split(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api-host"), "/"), "/")
	resource, verb := path[min(1, len(path)-1)], verbs[r.Method]
	switch {
	case resource == "projects":
		return workspace.Permit("deployment-logs", workspace.Read) // which is all that an earlier interface is asked for
	case strings.HasPrefix(strings.Join(path, "/"), "v2/auth/wait/"):
		verb = workspace.Create // what it answers is a token, which is not for those who may only look
	case path[len(path)-1] == "push-hook":
		verb = workspace.Update // it has a secret
	case len(path) > 3 && resource == "listeners":
		verb = workspace.Update // who speaks for a listener is given secrets, and says how its releases are; its diagnostics show what agents have printed
	}
	return workspace.Permit(resource, verb)
}

// authorize refuses what the caller's role does not allow, and notes in the audit log that it was
// asked for. It comes after the count of the caller's requests, which bounds what is noted.
func (s server) authorize(mux *web.Mux) web.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			principal, permission := auth.Of(r.Context()), permissionFor(r)
			if principal.May(permission) {
				next.ServeHTTP(w, r)
				return
			}
			err := s.noteRefusal(r, principal, permission)
			if err == nil {
				err = fault.New(fault.Forbidden, "The credentials do not allow this: the role %q lacks the permission %s.", principal.Role, permission)
			}
			mux.Error(w, r, err)
		})
	}
}

// noteRefusal adds a refusal to the audit log. It names the route, as a path may hold what is for
// the caller alone.
func (s server) noteRefusal(r *http.Request, principal apikey.Principal, permission workspace.Permission) error {
	if s.Audit == nil {
		return nil
	}
	detail := fmt.Sprintf("%s: the role %s lacks %s", r.Pattern, principal.Role, permission)
	return s.Audit.AddRefusal(r.Context(), principal.Workspace, audit.Refusal(r.Context(), resourceOf(r), detail))
}

// resourceOf is the id of what a request is about, "" when it names none.
func resourceOf(r *http.Request) string {
	for _, name := range []string{"deployment_id", "listener_id", "integration_id", "webhook_id", "member_id", "rule_id", "key_id", "secret_name"} {
		if id := r.PathValue(name); id != "" {
			return id
		}
	}
	return ""
}

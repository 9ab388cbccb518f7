package controlplane

import (
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// checkPermissions refuses a contract with an operation that takes credentials and declares no
// permission of the table of roles. So a server with such an operation does not start.
func checkPermissions(contract *web.Contract) error {
	for _, o := range contract.Operations() {
		// An admin has every permission.
		switch known := workspace.Admin.May(workspace.Permission(o.Permission)); {
		case o.Public && o.Permission != "":
			return fmt.Errorf("%s takes no credentials, so it must not declare the x-permission %q", o.Pattern, o.Permission)
		case !o.Public && o.Permission == "":
			return fmt.Errorf("%s declares no x-permission", o.Pattern)
		case !o.Public && !known:
			return fmt.Errorf("%s declares the x-permission %q, which no role has", o.Pattern, o.Permission)
		}
	}
	return nil
}

// authorize refuses a caller whose role lacks the operation's permission, and adds the refusal to
// the audit log. It comes after the limit on the caller's requests, which bounds these entries.
func (s server) authorize(mux *web.Mux, o web.Operation) web.Middleware {
	permission := workspace.Permission(o.Permission)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			principal := auth.Of(r.Context())
			if principal.May(permission) {
				next.ServeHTTP(w, r)
				return
			}
			err := s.noteRefusal(r, principal, o)
			if err == nil {
				err = fault.New(fault.Forbidden, "The credentials do not allow this: the role %q lacks the permission %s.", principal.Role, permission)
			}
			mux.Error(w, r, err)
		})
	}
}

// noteRefusal adds a refusal to the audit log. It names the route and the resource, but not the
// whole path: a path may hold text that only the caller may see.
func (s server) noteRefusal(r *http.Request, principal workspace.Principal, o web.Operation) error {
	detail := fmt.Sprintf("%s: the role %s lacks %s", r.Pattern, principal.Role, o.Permission)
	return s.Audit.AddRefusal(r.Context(), principal.Workspace, audit.Refusal(r.Context(), r.PathValue(o.Resource), detail))
}

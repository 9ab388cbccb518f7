package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// maxBody is the most bytes that a request's body may have.
const maxBody = 10 << 20

// loadContract loads the contract once for all servers of this process: its schemas are
// compiled at their first use, which takes longer than most requests.
var loadContract = sync.OnceValues(func() (*web.Contract, error) { return parseContract(openapi.ControlPlane) })

// parseContract loads a contract, and checks that each operation declares a permission.
func parseContract(document []byte) (*web.Contract, error) {
	contract, err := web.Load(document, maxBody)
	if err != nil {
		return nil, err
	}
	return contract, checkPermissions(contract)
}

// Config has the settings and the services of the control plane.
type Config struct {
	Deployments   *deployment.Store
	Listeners     *listener.Store
	Authenticator auth.Authenticator
	// Logs reads the output of builds and agents; only its operations need it.
	Logs *deployment.Logs
	// AgentURL returns the address of a deployment's agent server. It may depend on the address
	// that the request was sent to.
	AgentURL func(ctx context.Context, deploymentID string) string
	// AuthService obtains tokens of users; BaseURL returns the address under which providers
	// send users back to this server.
	AuthService *authservice.Service
	// Webhooks receive the events.
	Webhooks *webhook.Store
	BaseURL  func(ctx context.Context) string
	Tenancy
	// Integrations hold the access for cloning repositories; Push takes the messages of the
	// hosts about pushes.
	Integrations *integration.Service
	Push         *push.Receiver
	// WaitLimit is how long a request may wait for a user's consent; 0 sets no limit.
	WaitLimit time.Duration
	// RedactSecrets hides the values of secrets from all callers. Otherwise callers that may
	// change the values see them.
	RedactSecrets bool
	// Answers keeps the answers to requests that carry an Idempotency-Key; nil ignores the
	// header.
	Answers *idempotency.Store
	// Metrics counts the answers to each workspace; nil counts none, for example behind a
	// gateway that counts.
	Metrics Metrics
	// Room returns a fault when there is no room for more data; it is nil on a platform that
	// always has room.
	Room func() error
}

// server implements StrictServerInterface.
type server struct {
	Config
	// unforeseen logs an error of a part of a request, and returns the message for the client.
	unforeseen func(context.Context, error) string
}

// Register adds the control plane's routes to the mux, at the root and under /api-host, where
// self-hosted clients look for them.
func Register(mux *web.Mux, config Config) error {
	contract, err := loadContract()
	if err != nil {
		return fmt.Errorf("load control plane contract: %w", err)
	}
	s := server{config, mux.Unforeseen}
	strict := NewStrictHandlerWithOptions(s, []StrictMiddlewareFunc{accept, looked}, StrictHTTPServerOptions{
		RequestErrorHandlerFunc: mux.RequestError, ResponseErrorHandlerFunc: mux.Error,
	})
	for _, base := range []string{"", "/api-host"} {
		routes := mux.Routes(contract, base, s.guard(mux))
		if s.Answers != nil {
			routes.Idempotent(s.claim)
		}
		HandlerWithOptions(strict, StdHTTPServerOptions{BaseURL: base, BaseRouter: forgeRoutes{routes}, ErrorHandlerFunc: mux.RequestError})
		mux.Handle("GET "+base+"/openapi.json", contract)
	}
	return nil
}

// forgeRoutes also registers the operations of the GitHub App under the names that later clients
// use.
type forgeRoutes struct{ *web.Routes }

var forgeNames = strings.NewReplacer(
	"/v1/integrations/github/install", "/v1/integrations/forge/github/install",
	"/v1/integrations/github/{integration_id}/", "/v1/integrations/forge/github/{integration_id}/",
	"/v2/integrations/github/installation", "/v2/integrations/forge-github/installation",
)

// HandleFunc adds the route of an operation, and the route of the same operation under its other
// name.
func (r forgeRoutes) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	r.Routes.HandleFunc(pattern, handler)
	if other := forgeNames.Replace(pattern); other != pattern {
		r.Routes.HandleFunc(other, handler)
	}
}

func (s server) authenticate(mux *web.Mux) web.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			principal, err := auth.Tenant(s.Authenticator, r)
			if err != nil {
				mux.Error(w, r, err)
				return
			}
			actor := audit.Actor{Key: principal.Key, Subject: principal.Subject, Request: web.RequestID(r.Context())}
			r = r.WithContext(audit.By(auth.With(r.Context(), principal), actor))
			web.ActsFor(r.Context(), principal.Workspace)
			if s.Metrics != nil {
				s.Metrics.Count(principal.Workspace, w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

package controlplane

import (
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/auth"
	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/web"
)

// maxBody is how large a request may be, in bytes.
const maxBody = 10 << 20

// Config is what the control plane works with.
type Config struct {
	Deployments   *deployment.Store
	Authenticator *auth.Authenticator
	// AgentURL returns the address of a deployment's agent server.
	AgentURL func(deploymentID string) string
}

// server implements StrictServerInterface.
type server struct{ Config }

// Register adds the control plane's routes to the mux, at the root and under /api-host, where self-hosted clients look for them.
func Register(mux *web.Mux, config Config) error {
	contract, err := web.Load(openapi.ControlPlane, maxBody)
	if err != nil {
		return fmt.Errorf("load control plane contract: %w", err)
	}
	s := server{config}
	strict := NewStrictHandlerWithOptions(s, nil, StrictHTTPServerOptions{
		RequestErrorHandlerFunc: mux.RequestError, ResponseErrorHandlerFunc: mux.Error,
	})
	for _, base := range []string{"", "/api-host"} {
		HandlerWithOptions(strict, StdHTTPServerOptions{
			BaseURL: base, BaseRouter: mux.Routes(contract, base, s.authenticate(mux)), ErrorHandlerFunc: mux.RequestError,
		})
		mux.Handle("GET "+base+"/openapi.json", contract)
	}
	return nil
}

func (s server) authenticate(mux *web.Mux) web.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			principal, err := s.Authenticator.Tenant(r)
			if err != nil {
				mux.Error(w, r, err)
				return
			}
			next.ServeHTTP(w, r.WithContext(auth.With(r.Context(), principal)))
		})
	}
}

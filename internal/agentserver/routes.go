package agentserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/auth"
	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/run"
	"github.com/slipway-run/slipway/internal/thread"
	"github.com/slipway-run/slipway/internal/web"
)

// maxBody is how large a request may be, in bytes.
const maxBody = 25 << 20

// base is where each deployment's agent server is.
const base = "/d/{deployment_id}"

// Config is what the agent server works with.
type Config struct {
	Deployments   *deployment.Store
	Threads       *thread.Store
	Runs          *run.Store
	Authenticator *auth.Authenticator
	// Version is that of the server.
	Version string
	// Heartbeat is how long a waiting connection stays silent; default web.HeartbeatInterval.
	Heartbeat time.Duration
}

// server implements StrictServerInterface.
type server struct{ Config }

// Register adds the agent server's routes to the mux, under /d/{deployment_id}.
func Register(mux *web.Mux, config Config) error {
	if config.Heartbeat == 0 {
		config.Heartbeat = web.HeartbeatInterval
	}
	contract, err := web.Load(openapi.AgentServer, maxBody)
	if err != nil {
		return fmt.Errorf("load agent server contract: %w", err)
	}
	s := server{config}
	strict := NewStrictHandlerWithOptions(s, nil, StrictHTTPServerOptions{
		RequestErrorHandlerFunc: mux.RequestError, ResponseErrorHandlerFunc: mux.Error,
	})
	HandlerWithOptions(strict, StdHTTPServerOptions{
		BaseURL: base, BaseRouter: mux.Routes(contract, base, s.authenticate(mux)), ErrorHandlerFunc: mux.RequestError,
	})
	mux.Handle("GET "+base+"/openapi.json", contract)
	return nil
}

type deploymentKey struct{}

// served returns the deployment that the request is addressed to, without its Spec.
func served(ctx context.Context) deployment.Deployment {
	d, ok := ctx.Value(deploymentKey{}).(deployment.Deployment)
	if !ok {
		panic("agentserver: the handler is not behind the authenticator")
	}
	return d
}

// authenticate finds the deployment that the path names in the workspace of the key. One of another workspace does not exist for the caller.
func (s server) authenticate(mux *web.Mux) web.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d, err := s.deployment(r)
			if err != nil {
				mux.Error(w, r, err)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), deploymentKey{}, d)))
		})
	}
}

func (s server) deployment(r *http.Request) (deployment.Deployment, error) {
	principal, err := s.Authenticator.Key(r)
	if err != nil {
		return deployment.Deployment{}, err
	}
	ref := deployment.Ref{Workspace: principal.Workspace, Deployment: r.PathValue("deployment_id")}
	if !id.Valid(ref.Deployment) {
		return deployment.Deployment{}, deployment.NotFound(ref)
	}
	d, err := s.Deployments.Head(r.Context(), ref)
	if err == nil && d.Status == deployment.AwaitingDelete {
		err = deployment.NotFound(ref)
	}
	return d, err
}

// GetOK answers that the server takes requests.
func (s server) GetOK(context.Context, GetOKRequestObject) (GetOKResponseObject, error) {
	return GetOK200JSONResponse{Ok: true}, nil
}

// GetInfo tells which server and which revision this is.
func (s server) GetInfo(ctx context.Context, _ GetInfoRequestObject) (GetInfoResponseObject, error) {
	d := served(ctx)
	return GetInfo200JSONResponse{
		Version:  s.Version,
		Flags:    emptyObject,
		Metadata: object(map[string]any{"deployment_id": d.Deployment, "revision_id": d.Active}),
	}, nil
}

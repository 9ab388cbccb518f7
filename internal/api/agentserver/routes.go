package agentserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/access"
	"github.com/slipway-run/slipway/internal/api/agentserver/caller"
	"github.com/slipway-run/slipway/internal/api/agentserver/description"
	"github.com/slipway-run/slipway/internal/api/agentserver/strangers"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// maxBody is the largest size of a request, in bytes.
const maxBody = 25 << 20

// base is the path of each deployment's agent server.
const base = "/d/{deployment_id}"

// loadContract loads the contract once for all servers of this process: its schemas are compiled at
// their first use, which takes longer than most requests.
var loadContract = sync.OnceValues(func() (*web.Contract, error) {
	return web.Load(openapi.AgentServer, maxBody)
})

// Config has the settings and dependencies of the agent server.
type Config struct {
	Deployments *deployment.Store
	Threads     *thread.Store
	Runs        *run.Store
	Assistants  *assistant.Store
	Store       *store.Store
	Crons       *cron.Store
	// Tokens recognizes the agents of deployments, which may use the agent server of their own
	// deployment; with nil, no agent is recognized.
	Tokens caller.AgentTokens
	// Metrics counts requests and shows the figures of a deployment; with nil, there are no
	// figures.
	Metrics Metrics
	// Agents asks the agents of deployments: for the graphs of an image, to change a state, for
	// the repository's own authentication and HTTP application, and whether an agent serves.
	Agents        *runner.Agents
	Authenticator auth.Authenticator
	// Webhooks checks the addresses that runs name; without it, runs may not name an address.
	Webhooks *webhook.Store
	// Answers keeps the answers to requests that carry an Idempotency-Key; without it, the
	// header has no effect.
	Answers *idempotency.Store
	// Docs is a page about the interface; with nil, there is no page.
	Docs http.Handler
	// Log gets the failures that no answer can tell; default slog.Default.
	Log *slog.Logger
	// Version is the version of the server.
	Version string
	// AgentURL returns the address of a deployment's agent server, which cards of its assistants
	// show. It may depend on the address that the client called.
	AgentURL func(ctx context.Context, deploymentID string) string
	// Origins are the origins whose pages may call the agent server from browsers; default
	// web.AnyOrigin.
	Origins []string
	// Now is the clock of ids and of the counts of strangers; default clock.System.
	Now clock.Clock
	// WebSockets says that connections can become WebSockets.
	WebSockets bool
	// Unnoticed is how long the server goes on for a client that may have gone, where the loss of a
	// connection is not noticed; 0 where it is noticed. Requests of visitors to a repository's own
	// application end then; event streams are ended by the host. A run that is to end with its
	// connection ends if the client has not come back a minute later.
	Unnoticed time.Duration
	// Strangers bounds the requests of strangers to the authentications of repositories.
	Strangers strangers.Limits
	// Patience is how long a request waits for an agent before it takes a place of its workspace;
	// default quota.Patience.
	Patience time.Duration
	// Heartbeat is how long a waiting connection stays silent; default web.HeartbeatInterval.
	Heartbeat time.Duration
}

// server implements StrictServerInterface.
type server struct {
	Config

	descriptions *description.Cache
	strangers    *strangers.Limiter
	// mux has the routes of the server.
	mux *web.Mux
	// visiting hands requests to repositories' own applications: requests of callers that the
	// server knows, and requests to routes that are open to everybody.
	visiting, visitors http.Handler
}

// Register adds the agent server's routes to the mux, under /d/{deployment_id}.
func Register(mux *web.Mux, config Config) error {
	config.Heartbeat = cmp.Or(config.Heartbeat, web.HeartbeatInterval)
	config.Patience = cmp.Or(config.Patience, quota.Patience)
	if config.Origins == nil {
		config.Origins = []string{web.AnyOrigin}
	}
	if config.Now == nil {
		config.Now = clock.System
	}
	config.Log = cmp.Or(config.Log, slog.Default())
	contract, err := loadContract()
	if err != nil {
		return fmt.Errorf("load agent server contract: %w", err)
	}
	s := server{Config: config, descriptions: description.New(config.Log), strangers: strangers.New(config.Strangers, config.Now), mux: mux}
	s.visiting = mux.Counted(nil)(mux.Holding(http.HandlerFunc(s.handOver)))
	s.visitors = mux.Visited(deploymentID)(http.HandlerFunc(s.handOver))
	strict := NewStrictHandlerWithOptions(s, []StrictMiddlewareFunc{s.open}, StrictHTTPServerOptions{
		RequestErrorHandlerFunc: mux.RequestError, ResponseErrorHandlerFunc: s.fail,
	})
	if err := access.CheckContract(contract); err != nil {
		return err
	}
	count := mux.Counted(nil)
	routes := mux.Routes(contract, base, func(o web.Operation) web.Middleware {
		authenticate := s.authenticate(o)
		return func(next http.Handler) http.Handler { return authenticate(count(next)) }
	})
	routes.Deciding(s.askRepository).Refusing(refuseMessage)
	if config.Answers != nil {
		routes.Idempotent(s.claim)
	}
	HandlerWithOptions(strict, StdHTTPServerOptions{
		BaseURL: base, BaseRouter: routes, ErrorHandlerFunc: mux.RequestError,
	})
	mux.Handle("GET "+base+"/openapi.json", s.document(contract))
	if config.Docs != nil {
		mux.Handle("GET "+base+"/docs", s.document(config.Docs))
	}
	for operation := range refusals { // clients add a slash to the addresses of both protocols
		mux.Handle(strings.Replace(operation, " ", " "+base, 1)+"/{$}", http.HandlerFunc(s.withoutSlash))
	}
	mux.Otherwise(base+ownRoutes, s.otherwise)
	mux.AllowOrigins("/d/", s.preflight, config.Origins...)
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

// authenticate finds the deployment that the path names, and the sender of the request.
func (s server) authenticate(o web.Operation) web.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r = s.enter(o, w, r); r == nil {
				return
			}
			if s.Metrics != nil {
				s.Metrics.Count(deploymentID(r), w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// enter returns the request with what it is known to be, or nil if it has been answered. It is a
// function of its own because its variables take 4 KB of stack, which each open stream would keep.
func (s server) enter(o web.Operation, w http.ResponseWriter, r *http.Request) *http.Request {
	known, err := s.admit(r, o)
	if s.yield(w, r, o, known, err) {
		return nil
	}
	if err != nil {
		s.mux.Error(w, r, err)
		return nil
	}
	d := known.Deployment
	ctx := context.WithValue(auth.With(r.Context(), known.principal), requestKey{}, r)
	ctx = context.WithValue(ctx, deploymentKey{}, d)
	web.ActsFor(ctx, d.Workspace)
	ctx = context.WithValue(ctx, ownUserKey{}, known.user)
	if d.Encrypted {
		if ctx, err = encrypting(ctx, known, r.Header); err != nil {
			s.mux.Error(w, r, err)
			return nil
		}
	}
	return r.WithContext(ctx)
}

// deploymentID returns the id that the path has, as ids are stored: clients may write capitals.
func deploymentID(r *http.Request) string { return strings.ToLower(r.PathValue("deployment_id")) }

// deployment finds the deployment that the path names in the workspace of the key. A
// deployment of another workspace does not exist for the caller.
func (s server) deployment(r *http.Request, o web.Operation) (known admitted, err error) {
	if known.principal, err = s.caller(r); err != nil {
		return known, err
	}
	if err := authorize(known.principal, r, o); err != nil {
		return known, err
	}
	ref := deployment.Ref{Workspace: known.principal.Workspace, Deployment: deploymentID(r)}
	if !id.Valid(ref.Deployment) {
		return known, deployment.NotFound(ref)
	}
	known.Deployment, err = s.Deployments.Head(r.Context(), ref)
	if err == nil && known.Status == deployment.AwaitingDelete {
		err = deployment.NotFound(ref)
	}
	return known, err
}

// claim claims the key of a request, whose path names the deployment.
func (s server) claim(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*idempotency.Answer, *idempotency.Attempt, error) {
	d, encrypted := served(ctx), ""
	if d.Encrypted {
		encrypted = d.Deployment
	}
	// A user of the repository's own authentication has keys of its own.
	if user := ownUser(ctx); user != nil {
		identity, err := identityOf(user)
		if err != nil {
			return nil, nil, err
		}
		fingerprint = sha256.Sum256(append(fingerprint[:], identity...))
		key = fmt.Sprintf("%x", sha256.Sum256(record.Encode([]string{d.Deployment, identity, key})))
	}
	return s.Answers.Claim(ctx, idempotency.Request{Workspace: d.Workspace, Key: key, Encrypted: encrypted, Fingerprint: fingerprint})
}

package apigateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
	"github.com/slipway-run/slipway/internal/test/template"
)

const (
	// maxRequest is how long the body of a request may be.
	maxRequest = 10 << 20
	// drainLimit is how much of a longer body is read, so that the client sees the refusal.
	drainLimit = 64 << 20
	// idleLimit is the time without data after which a stream is ended.
	idleLimit = 5 * time.Minute
)

// Functions calls the functions of routes and authorizers, by name or ARN; *lambda.Platform
// implements it.
type Functions interface {
	Invoke(ctx context.Context, function string, payload []byte) ([]byte, error)
	InvokeStream(ctx context.Context, function string, payload []byte) (*lambda.Stream, error)
}

// Config holds the parts and settings of a gateway.
type Config struct {
	API       template.API
	Routes    []template.Route
	Functions Functions
	// Region and Account are part of the ARNs of methods.
	Region, Account string
	// Now is the clock for the expiry of authorizers' answers; the default is the machine's
	// clock.
	Now clock.Clock
	// Log gets the errors that the client does not see: the reason why a function or an
	// authorizer failed.
	Log *slog.Logger
}

// Gateway serves an API.
type Gateway struct {
	api       template.API
	routes    *template.Router
	functions Functions
	region    string
	account   string
	now       clock.Clock
	log       *slog.Logger
	decisions decisions
	buckets   buckets
}

// New makes a gateway. It refuses two routes that contradict each other.
func New(config Config) (*Gateway, error) {
	g := &Gateway{
		api: config.API, functions: config.Functions, region: config.Region, account: config.Account, now: config.Now, log: config.Log,
		decisions: decisions{known: map[string]remembered{}}, buckets: newBuckets(config.API, config.Routes),
	}
	if g.now == nil {
		g.now = clock.System
	}
	if g.log == nil {
		g.log = slog.Default()
	}
	var err error
	g.routes, err = template.NewRouter(config.Routes, config.API.Authorizers)
	return g, err
}

// call is one request on its way.
type call struct {
	id      string
	request *http.Request
	route   template.Route
	// parameters are the values of the path's variables.
	parameters map[string]string
	received   time.Time
	body       []byte
	// authorizer is the authorizer's answer about the caller.
	authorizer map[string]any
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{id: id.New(time.Now()), request: r, received: g.now()}
	w.Header().Set("X-Amzn-RequestId", c.id)
	if refused := g.serve(w, c); refused != nil {
		if refused.cause != nil && r.Context().Err() == nil {
			g.log.Warn("gateway refuses a request", "request", c.id, "method", r.Method, "path", r.URL.Path, "type", refused.kind, "cause", refused.cause)
		}
		g.refuse(w, c, refused)
	}
}

// Streams reports whether a request is for a route with a streaming answer.
func (g *Gateway) Streams(r *http.Request) bool {
	route, _, ok := g.route(r)
	return ok && route.Streaming
}

// route finds a request's route, and the values of the variables in its path.
func (g *Gateway) route(r *http.Request) (template.Route, map[string]string, bool) {
	return g.routes.Find(r.Method, r.URL.EscapedPath())
}

// serve answers a request, or returns the refusal that the gateway itself must send.
func (g *Gateway) serve(w http.ResponseWriter, c *call) *refusal {
	route, parameters, ok := g.route(c.request)
	if !ok {
		return &missingToken
	}
	c.route, c.parameters = route, parameters
	if !g.buckets.take(route, c.received) {
		return &throttled
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, c.request.Body, maxRequest))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return g.tooLarge(c)
	}
	if err != nil {
		return badRequest(err)
	}
	c.body = body
	if route.Authorizer != "" {
		if refused := g.authorize(c, g.api.Authorizers[route.Authorizer]); refused != nil {
			return refused
		}
	}
	if route.Streaming {
		return g.stream(w, c)
	}
	return g.forward(w, c)
}

func (g *Gateway) tooLarge(c *call) *refusal {
	_, err := io.CopyN(io.Discard, c.request.Body, drainLimit)
	if err != nil && !errors.Is(err, io.EOF) {
		g.log.Debug("request body breaks off", "request", c.id, "error", err)
	}
	return &requestTooLarge
}

// failed returns the refusal that the client gets when a function has failed.
func failed(err error) *refusal {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return integrationTimeout(err)
	case errors.Is(err, lambda.ErrTooLarge):
		return &requestTooLarge
	case isFunctionError(err):
		return badGateway(err)
	default:
		return internalError(err) // Lambda did not accept the call
	}
}

func isFunctionError(err error) bool {
	_, ok := errors.AsType[*lambda.FunctionError](err)
	return ok
}

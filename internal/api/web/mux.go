package web

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/inbound"
)

// Middleware wraps a handler.
type Middleware = func(http.Handler) http.Handler

// Guard returns the middleware that stands before an operation.
type Guard = func(Operation) Middleware

// Mux routes requests to operations and gives each of them the common behaviour of this
// package.
type Mux struct {
	routes  http.ServeMux
	log     *slog.Logger
	origins []pathRules
	// others are the patterns that were passed to Otherwise.
	others []string
	// arrival and refused are how long bodies may take to arrive, before and after their requests
	// are answered.
	arrival, refused time.Duration
	// taking is how long a client may take to accept a part of an answer.
	taking time.Duration

	// The fields below are set before the first request.

	// Bodies is the memory budget for the bodies of requests, Reads for the data that requests
	// read, which they hold until it is sent, and Streams for connections that wait: a budget of
	// lasting shares. nil sets no bound.
	Bodies, Reads, Streams *budget.Budget
	// Storage says whether there is room for more data. Without room, requests that add data are
	// refused: requests to operations whose contract names the answer 507, and to handlers behind
	// Storing. nil means that there is room.
	Storage Storage
	// Limiter bounds the requests of workspaces and callers; nil bounds nothing.
	Limiter *Limiter
	// Proxies are believed about the addresses of their clients. Otherwise, each request has the
	// address of its sender.
	Proxies inbound.Proxies
}

// NewMux returns a Mux without routes.
func NewMux(log *slog.Logger) *Mux {
	m := &Mux{log: log, arrival: arrivalTime, refused: refusedTime, taking: writeTimeout}
	m.routes.HandleFunc("/", m.miss)
	return m
}

// Handle adds a route that is not an operation of a contract.
func (m *Mux) Handle(pattern string, handler http.Handler) {
	m.routes.Handle(pattern, handler)
}

// Answering makes a handler of a function. An error that the function returns becomes the answer.
// Clients do not store the answers.
func (m *Mux) Answering(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(headerCacheControl, NoStore)
		if err := serve(w, r); err != nil {
			m.Error(w, r, err)
		}
	})
}

// Otherwise adds a handler for the requests below a pattern that no other route takes. The
// handler reports whether it has answered; a request that it leaves alone is answered as if no
// route took it.
func (m *Mux) Otherwise(pattern string, handler func(http.ResponseWriter, *http.Request) bool) {
	m.others = append(m.others, pattern)
	m.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !handler(w, r) {
			m.miss(w, r)
		}
	}))
}

// Again routes a request once more, after a handler has changed its path.
func (m *Mux) Again(w http.ResponseWriter, r *http.Request) {
	if !m.crossOrigin(w, r) {
		m.routes.ServeHTTP(w, r)
	}
}

// Routes returns the router on which a generated package registers its operations, as the
// BaseRouter and with the same base as BaseURL.
//
// The guard runs before any other part of the request is examined, except for operations that
// the contract declares open to everybody. It may be nil.
func (m *Mux) Routes(contract *Contract, base string, guard Guard) *Routes {
	return &Routes{mux: m, contract: contract, base: base, guard: guard, reads: map[string]http.Handler{}}
}

// Routes registers the operations of one contract.
type Routes struct {
	mux      *Mux
	contract *Contract
	base     string
	guard    Guard
	decide   Guard
	claim    Claim
	refuse   ProblemHandler
	// reads are the handlers of GET whose answers have an ETag, by path, without the middleware
	// before them.
	reads map[string]http.Handler
}

// Idempotent keeps the answers of the operations that take an Idempotency-Key, which are the
// operations whose contract names the header; nil keeps no answers. It affects the operations
// that are registered afterwards.
func (r *Routes) Idempotent(claim Claim) *Routes {
	r.claim = claim
	return r
}

// Deciding puts a guard behind the contract's checks and before everything else, also before
// kept answers. A body that the guard puts in the place of another is checked again. It affects
// the operations that are registered afterwards.
func (r *Routes) Deciding(guard Guard) *Routes {
	r.decide = guard
	return r
}

// ProblemHandler answers a request that does not pass the contract's checks in the form of another
// protocol. It reports whether it has answered. The body can be read if it is JSON.
type ProblemHandler func(o Operation, w http.ResponseWriter, r *http.Request, err error) bool

// Refusing has a function refuse requests; those that it leaves alone are refused as usual. It
// affects the operations that are registered afterwards.
func (r *Routes) Refusing(refuse ProblemHandler) *Routes {
	r.refuse = refuse
	return r
}

// HandleFunc adds the route of an operation. A pattern that is not in the contract is a mistake in
// the program and panics.
func (r *Routes) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	method, path, _ := strings.Cut(pattern, " ")
	o := r.contract.operations[method+" "+strings.TrimPrefix(path, r.base)]
	if o == nil {
		panic("web: operation " + pattern + " is not in the contract")
	}
	inner := r.conditional(o, method, path, http.HandlerFunc(handler))
	if r.claim != nil && o.repeatable {
		inner = r.mux.idempotent(r.claim, inner)
	}
	if o.holding != "" {
		inner = r.mux.holding(o, inner)
	}
	if r.decide != nil && !o.Public {
		inner = r.decide(o.Operation)(r.checking(o, inner, isReplaced))
	}
	checked := r.checking(o, inner, func(*http.Request) bool { return true })
	if o.stores {
		checked = r.mux.Storing(checked)
	}
	if r.guard != nil && !o.Public {
		checked = r.guard(o.Operation)(checked)
	}
	if !o.Public {
		checked = private(checked)
	}
	r.mux.Handle(pattern, checked)
}

// private keeps answers from caches between the client and the server. They would give the answer
// for one key to the next client that asks for the same address: they do not know that X-Api-Key is
// a credential.
func private(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(headerCacheControl, Private)
		next.ServeHTTP(w, r)
	})
}

// checking applies the contract's checks to the requests for which the function returns true.
func (r *Routes) checking(o *operation, next http.Handler, which func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if which(req) {
			if err := o.check(req, w.Header()); err != nil {
				if r.refuse == nil || !r.refuse(o.Operation, w, req, err) {
					r.mux.Error(w, req, err)
				}
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// conditional gives the operation ETags and conditions where the contract says so: by an ETag
// in its own answers, or in the answers of GET to the path that it changes.
func (r *Routes) conditional(o *operation, method, path string, handler http.Handler) http.Handler {
	if method == http.MethodGet && o.tagged {
		r.reads[path] = handler
	}
	read := r.contract.operations[http.MethodGet+" "+strings.TrimPrefix(path, r.base)]
	if !changes(method) || method == http.MethodPost || read == nil || !read.tagged {
		if !o.tagged {
			return handler
		}
		return r.mux.conditional(handler, true, nil)
	}
	// GET may be registered after this operation.
	return r.mux.conditional(handler, o.tagged, func() http.Handler { return r.reads[path] })
}

// ServeHTTP serves all routes of the Mux; the generated packages need this method of a router.
func (r *Routes) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// ServeHTTP answers a request: exactly one response, one log line, and no panic beyond this point.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := m.newExchange(w, r)
	w.Header().Set("X-Request-Id", x.id)
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	if m.Reads != nil {
		x.reads = budget.NewHold(m.Reads, readAllowance, readWait, errNoRoom)
		ctx = budget.Holding(ctx, x.reads)
	}
	r = r.WithContext(ctx)
	r.RemoteAddr = m.Proxies.Client(r)
	if x.body != nil {
		r.Body = x.body
	}
	defer x.end()
	defer x.logTo(m.log, r)
	defer m.recover(x, r)
	if !isClean(r.URL.Path) {
		m.Error(x, r, fault.New(fault.NotFound, "Not Found"))
		return
	}
	m.Again(x, r)
}

// miss answers a request that no route takes: an unknown path, or a known path with another
// method.
func (m *Mux) miss(w http.ResponseWriter, r *http.Request) {
	allowed := m.Allowed(r)
	if len(allowed) == 0 {
		m.Error(w, r, fault.New(fault.NotFound, "Not Found"))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	respond(w, http.StatusMethodNotAllowed, "Method Not Allowed")
}

// Allowed returns the methods that the request's path has routes for.
func (m *Mux) Allowed(r *http.Request) []string {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		probe := *r
		probe.Method = method
		if _, pattern := m.routes.Handler(&probe); pattern != "/" && pattern != "" && !slices.Contains(m.others, pattern) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		allowed = append(allowed, http.MethodOptions)
	}
	slices.Sort(allowed)
	return allowed
}

// isClean reports whether the path has no empty, "." or ".." segments: net/http would answer
// such a path with a redirect to another path, which no client of an API expects.
func isClean(p string) bool {
	clean := path.Clean(p)
	return p == clean || p == clean+"/"
}

package agentserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver/caller"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// A repository may bring an HTTP application of its own. Its routes take precedence over the
// server's, and it gets every request that no route of the server takes. Its routes are open
// to every caller, unless the repository asks for credentials there, too. The agent itself
// always reaches the server's routes.

type mountedKey struct{}

// isMounted reports whether the prefix of all paths was removed from the path of a request.
func isMounted(ctx context.Context) bool { return ctx.Value(mountedKey{}) != nil }

// anyDeployment finds the deployment that the path names, in any workspace.
func (s server) anyDeployment(r *http.Request) (deployment.Deployment, error) {
	if !isID(deploymentID(r)) {
		return deployment.Deployment{}, deployment.NotFound(deployment.Ref{Deployment: deploymentID(r)})
	}
	return s.Deployments.HeadWithID(r.Context(), deploymentID(r))
}

// yield answers a request to a route of the server if the repository's configuration file
// disables this route or has put another route in its place. It reports whether it has
// answered. refused is the reason why the request was not let in; it says nothing about the
// routes of the repository's own application.
func (s server) yield(w http.ResponseWriter, r *http.Request, o web.Operation, known admitted, refused error) bool {
	d := known.Deployment
	if refused != nil {
		var err error
		if d, err = s.anyDeployment(r); err != nil {
			return false // the refusal says enough
		}
	}
	settings := d.Settings.HTTP
	if settings == nil || (refused == nil && known.principal.Role == workspace.Agent) {
		return false
	}
	s.markOrigin(w, r, d)
	if settings.MountPrefix != "" && !isMounted(r.Context()) {
		if !s.otherwise(w, r) {
			s.mux.Error(w, r, fault.New(fault.NotFound, "Not Found"))
		}
		return true
	}
	if settings.App != "" {
		shadowed, err := s.shadows(r, d)
		if err != nil && refused == nil {
			s.mux.Error(w, r, err)
			return true
		}
		if shadowed {
			s.visit(w, r, d)
			return true
		}
	}
	if refused == nil && disabled(settings, o) {
		s.mux.Error(w, r, fault.New(fault.NotFound, "Not Found"))
		return true
	}
	return false
}

// disabled reports whether a group of routes to which an operation belongs is not served.
func disabled(settings *build.HTTP, o web.Operation) bool {
	_, path, _ := strings.Cut(o.Pattern, " ")
	words := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch first := words[0]; {
	case slices.Contains(words, "runs") || slices.Contains(words, "commands"):
		return settings.Disables("runs") || (first == "threads" && settings.Disables("threads"))
	case first == "info" || first == "metrics":
		return settings.Disables("meta")
	case first == ".well-known": // it has the cards of assistants
		return settings.Disables("a2a")
	default:
		return settings.Disables(first)
	}
}

// otherwise serves the requests that no route of the server takes: requests to paths with the
// prefix of all paths, and requests to the repository's own application.
func (s server) otherwise(w http.ResponseWriter, r *http.Request) bool {
	d, err := s.anyDeployment(r)
	if fault.Is(err, fault.NotFound) {
		return false
	}
	if err != nil {
		s.mux.Error(w, r, err)
		return true
	}
	settings := d.Settings.HTTP
	if settings == nil {
		return false
	}
	if settings.MountPrefix != "" && !isMounted(r.Context()) {
		return s.mount(w, r, settings.MountPrefix)
	}
	if settings.App == "" && !settings.IsUI(ownPath(r.URL.Path)) {
		return false
	}
	if len(s.mux.Allowed(r)) > 0 && !web.IsPreflight(r) {
		// The path is the server's, and has another method.
		if shadowed, err := s.shadows(r, d); err != nil || !shadowed {
			return false
		}
	}
	s.visit(w, r, d)
	return true
}

// mount serves a request whose path begins with the prefix of all paths like a request without
// the prefix.
func (s server) mount(w http.ResponseWriter, r *http.Request, prefix string) bool {
	before := strings.TrimSuffix(r.URL.Path, ownPath(r.URL.Path))
	rest, ok := strings.CutPrefix(ownPath(r.URL.Path), prefix)
	if !ok || (rest != "" && rest[0] != '/') {
		return false
	}
	again := r.WithContext(context.WithValue(r.Context(), mountedKey{}, true))
	at := *r.URL
	at.Path, at.RawPath = before+"/"+strings.TrimPrefix(rest, "/"), ""
	if raw, ok := strings.CutPrefix(ownPath(r.URL.RawPath), prefix); ok {
		at.RawPath = before + "/" + strings.TrimPrefix(raw, "/")
	}
	again.URL = &at
	s.mux.Again(w, again)
	return true
}

// withoutSlash serves a request like a request to the path without the slash at its end, unless the
// repository's own application has a route for it.
func (s server) withoutSlash(w http.ResponseWriter, r *http.Request) {
	if s.otherwise(w, r) {
		return
	}
	again, at := r.WithContext(r.Context()), *r.URL
	at.Path, at.RawPath = strings.TrimSuffix(at.Path, "/"), strings.TrimSuffix(at.RawPath, "/")
	again.URL = &at
	s.mux.Again(w, again)
}

// ownPath returns the path below a deployment's URL: "/threads".
func ownPath(path string) string {
	parts := strings.SplitN(path, "/", 4) // "", "d", the deployment's id, the rest
	if len(parts) < 4 {
		return ""
	}
	return "/" + parts[3]
}

// shadows reports whether the repository's own application has a route in the place of a route
// of the server.
func (s server) shadows(r *http.Request, d deployment.Deployment) (bool, error) {
	described, err := s.describe(context.WithValue(r.Context(), deploymentKey{}, d))
	if err != nil {
		return false, err
	}
	return described.Takes(r.Method, d.Settings.HTTP.MountPrefix+ownPath(r.URL.Path))
}

// visit lets the repository's own application answer a request.
func (s server) visit(w http.ResponseWriter, r *http.Request, d deployment.Deployment) {
	web.ActsFor(r.Context(), d.Workspace)
	s.markOrigin(w, r, d)
	if !s.WebSockets && r.Header.Get("Sec-WebSocket-Key") != "" {
		s.mux.Error(w, r, fault.New(fault.NotOffered, "This server does not offer: WebSocket. An application can stream server-sent events instead."))
		return
	}
	below := s.below(r)
	visit := ownVisit{d, graph.Visit{Path: d.Settings.HTTP.MountPrefix + ownPath(r.URL.EscapedPath()), Prefix: (&url.URL{Path: below}).EscapedPath()}}
	visit.Answer = func(answer *http.Response) { s.tame(w, r, d, answer, below) }
	handler := s.visitors
	w.Header().Del(headerCacheControl) // a route of the server, in whose place this is, has set it
	if s.Unnoticed > 0 {
		handler = within(s.Unnoticed, handler)
	}
	if isClosed(r, d) && !web.IsPreflight(r) {
		w.Header().Set(headerCacheControl, web.Private)
		known, err := s.admit(r, web.Operation{})
		if err != nil {
			s.mux.Error(w, r, err)
			return
		}
		if visit.User = known.user; visit.User == nil {
			visit.User = caller.User(known.principal, r.Header)
		}
		handler = s.visiting
	}
	// All such requests are counted together, also requests to routes in the place of a route
	// of the server.
	visited := r.WithContext(context.WithValue(r.Context(), visitKey{}, visit))
	visited.Pattern = base + ownRoutes
	if s.Metrics != nil {
		s.Metrics.Count(d.Deployment, w, visited, handler)
		return
	}
	handler.ServeHTTP(w, visited)
}

// below is the path of the deployment's URL as the client wrote it. The public address may have a
// path that the path of the request lacks: the stage of API Gateway.
func (s server) below(r *http.Request) string {
	path := strings.TrimSuffix(r.URL.Path, ownPath(r.URL.Path))
	at, err := url.Parse(s.AgentURL(r.Context(), deploymentID(r)))
	if err != nil {
		return path
	}
	return strings.TrimSuffix(at.Path, strings.ToLower(path)) + path
}

// isClosed reports whether a request that the agent answers requires the credentials of the
// server. The files of a user interface do not: a page loads them without headers.
func isClosed(r *http.Request, d deployment.Deployment) bool {
	if d.Settings.HTTP.IsUI(ownPath(r.URL.Path)) {
		return r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	return d.Settings.HTTP.RouteAuth
}

// errVisit ends a request of a visitor whose time is over.
var errVisit = fault.New(fault.Unavailable, "A request without a key may not take longer here.")

// within ends each request after a time.
func within(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer time.AfterFunc(limit, func() { cancel(errVisit) }).Stop()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

const headerCacheControl = "Cache-Control"

// ownRoutes is the pattern of the routes of repositories' own applications.
const ownRoutes = "/{rest...}"

type visitKey struct{}

// ownVisit is a request on its way to a repository's own application.
type ownVisit struct {
	deployment.Deployment
	graph.Visit
}

// handOver sends the request of a visit to the application, without the headers that the
// application may not see.
func (s server) handOver(w http.ResponseWriter, r *http.Request) {
	visit, ok := r.Context().Value(visitKey{}).(ownVisit)
	if !ok {
		panic("agentserver: there is no visit")
	}
	d := visit.Deployment
	r = r.Clone(r.Context())
	ofPlatform := !d.Auth && (isClosed(r, d) || r.Header.Get(auth.HeaderTenant) != "")
	if caller.Withhold(r.Header); ofPlatform {
		for _, name := range []string{auth.HeaderBearer, auth.HeaderKey, auth.HeaderTenant} {
			r.Header.Del(name)
		}
	}
	r.Header.Set("X-Request-Id", web.RequestID(r.Context()))
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	var tooLarge *http.MaxBytesError
	err := s.Agents.Visit(r.Context(), d.Workspace, d.Deployment, func(client *graph.Client, endpoint compute.Endpoint, serverURL string) error {
		if visit.ServerURL = serverURL; serverURL == "" {
			visit.ServerURL = s.AgentURL(r.Context(), d.Deployment)
		}
		return client.Visit(w, r, endpoint, visit.Visit)
	})
	switch {
	case r.ContentLength > maxBody, errors.As(err, &tooLarge):
		s.mux.Error(w, r, fault.New(fault.TooLarge, "The body is larger than %d bytes.", maxBody))
	case err != nil:
		s.mux.Error(w, r, err)
	}
}

// ofServer are headers of answers that would affect everything that is served at the server's
// address. With Nel and Report-To, browsers tell a third party the URL of each later request to any
// path. A session of the browser that is registered makes it hold requests to any path back until
// the application has renewed the session. Accept-Ch and Use-As-Dictionary add headers, the latter
// with a text of the application, to later requests to any path.
var ofServer = []string{
	"Accept-Ch", "Alt-Svc", "Clear-Site-Data", "Nel", "Report-To", "Sec-Session-Registration", "Secure-Session-Registration", "Service-Worker-Allowed",
	"Set-Login", "Strict-Transport-Security", "Use-As-Dictionary", "X-Request-Id",
}

// sandbox makes browsers treat a page of a repository's own application as a page of an origin
// that no other page has: the pages of all deployments, and the console, share the server's
// address.
const sandbox = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox allow-scripts"

// tame restricts the effects of an answer of the repository's own application to the
// application's own paths, which are below a path.
func (s server) tame(w http.ResponseWriter, r *http.Request, d deployment.Deployment, answer *http.Response, below string) {
	header := answer.Header
	confine(header, below)
	if header.Get(headerCacheControl) != "" { // the application knows better what may be kept
		w.Header().Del(headerCacheControl)
	}
	header.Add("Content-Security-Policy", sandbox)
	if at, err := url.Parse(header.Get("Location")); err == nil && strings.HasPrefix(at.Path, "/") && (at.Host == "" || at.Host == r.Host) {
		at.Scheme, at.Host, at.Path, at.RawPath = "", "", below+at.Path, ""
		header.Set("Location", at.String())
	}
	web.VaryOnce(w.Header(), header)
	switch own := header.Get("Access-Control-Allow-Origin"); {
	case own != "":
		web.Unmark(w.Header())
	case web.IsPreflight(r):
		rules := s.originsOf(d)
		web.Unmark(w.Header())
		rules.Preflight(w.Header(), r, []string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
		answer.Body.Close()
		answer.StatusCode, answer.Header, answer.Body, answer.ContentLength = http.StatusNoContent, http.Header{}, http.NoBody, 0
	}
}

package agenthost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// Paths of the container contract.
const (
	invocations = "/invocations"
	ping        = "/ping"
)

// agent passes requests on to a release's agent, at the path below the agent's own. The caller
// counts as present until the answer has ended, or the caller has left. The request must have the
// agent's token in a header, unless the header is "". A visit is a request to the repository's
// own application.
func (h *Host) agent(header string, isVisit bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		endpoint, done, err := h.acquire(w, r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		defer done()
		// The agent checks the token itself; but an agent without this check must not be open
		// to all callers that reach the host.
		if header != "" && !isToken(r.Header.Get(header), endpoint.Token) {
			h.mux.Error(w, r, errToken)
			return
		}
		at, err := url.Parse(endpoint.URL + pathBelow(r))
		if err != nil {
			h.fail(w, r, err)
			return
		}
		// Otherwise the server closes the request's body as soon as the answer begins. The
		// proxy may still be about to find the end of that body: it would take the closed body
		// for a broken request and cut the agent off in the middle of its answer.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			h.fail(w, r, err)
			return
		}
		h.proxyTo(at, isVisit).ServeHTTP(w, r)
	}
}

// pathBelow returns the path of a request below the path of its agent, with its escapes.
func pathBelow(r *http.Request) string {
	agent := wire.Path(wire.Agent, r.PathValue("workspace"), r.PathValue("deployment"), r.PathValue("revision"))
	return strings.TrimPrefix(r.URL.EscapedPath(), agent)
}

// acquire returns an agent of the release. As at a load balancer, requests wait for room at an
// agent, but not for an agent.
func (h *Host) acquire(w http.ResponseWriter, r *http.Request) (compute.Endpoint, func(), error) {
	wait, cancel := context.WithTimeout(r.Context(), h.cfg.RoomWait)
	defer cancel()
	now, end := context.WithCancel(r.Context())
	end()
	if serves, err := h.cfg.Target.Serves(now, refOf(r)); err == nil && !serves {
		wait = now
	}
	endpoint, done, err := h.cfg.Target.Acquire(wait, refOf(r))
	if unavailable, ok := errors.AsType[*compute.UnavailableError](err); ok {
		w.Header().Set("Server", graph.ServerOfBalancer)
		err = fault.New(fault.Unavailable, "%s", unavailable.Error())
	}
	return endpoint, done, err
}

// proxyTo returns a proxy that passes each byte of the answer on at once. When the agent's
// answer breaks off, the caller's answer breaks off, too: the caller never takes a part for the
// whole.
func (h *Host) proxyTo(at *url.URL, isVisit bool) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = at, at.Host
			if !isVisit {
				return
			}
			// An own application sees the client's query and host, and the headers about the
			// client that package graph has set.
			at.RawQuery, r.Out.Host = r.In.URL.RawQuery, r.In.Host
			for name, values := range r.In.Header {
				if strings.HasPrefix(name, "X-Forwarded-") {
					r.Out.Header[name] = values
				}
			}
		},
		Transport:     h.agents,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(h.cfg.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				h.mux.Error(w, r, err)
				return
			}
			w.Header().Set("Server", graph.ServerOfBalancer)
			respond(w, http.StatusBadGateway, wire.Problem{Detail: fmt.Sprintf("The agent of revision %s could not be reached: %v.", r.PathValue("revision"), err)})
		},
	}
}

package agenthost

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Paths of the container contract.
const (
	invocations = "/invocations"
	ping        = "/ping"
)

// agent passes requests on to a path of a release's agent. The caller counts as present until
// the answer has ended, or the caller has left.
func (h *Host) agent(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		endpoint, done, err := h.acquire(r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		defer done()
		// The agent checks the token itself; but an agent without this check must not be open
		// to all callers that reach the host.
		if path == invocations && !hasToken(r, endpoint.Token) {
			h.mux.Error(w, r, errToken)
			return
		}
		at, err := url.Parse(endpoint.URL + path)
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
		h.proxyTo(at).ServeHTTP(w, r)
	}
}

func (h *Host) acquire(r *http.Request) (compute.Endpoint, func(), error) {
	wait, cancel := context.WithTimeout(r.Context(), h.cfg.AgentWait)
	defer cancel()
	endpoint, done, err := h.cfg.Target.Acquire(wait, refOf(r))
	if unavailable, ok := errors.AsType[*compute.UnavailableError](err); ok {
		err = fault.New(fault.Unavailable, "%s", unavailable.Error())
	}
	return endpoint, done, err
}

// proxyTo returns a proxy that passes each byte of the answer on at once. When the agent's
// answer breaks off, the caller's answer breaks off, too: the caller never takes a part for the
// whole.
func (h *Host) proxyTo(at *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = at, at.Host
		},
		Transport:     h.agents,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(h.cfg.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				err = fault.New(fault.Unavailable, "The agent of revision %s could not be reached: %v.", r.PathValue("revision"), err)
			}
			h.mux.Error(w, r, err)
		},
	}
}

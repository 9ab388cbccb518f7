package main

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// door is the server for clients if SAM serves the API. It does not change SAM's answers, but
// it serves the streaming routes itself: SAM would wait for the end of the stream and then
// answer 502.
type door struct {
	streams             func(*http.Request) bool
	streaming, buffered http.Handler
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.streams(r) {
		d.streaming.ServeHTTP(w, r)
		return
	}
	d.buffered.ServeHTTP(w, r)
}

// newProxy passes requests to a server unchanged.
func newProxy(target string, log *slog.Logger) (http.Handler, error) {
	address, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(address)
			r.Out.Host = r.In.Host
		},
		// A connection that the server closes while a request is on its way would fail the request.
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A server that closes the request's body when the answer begins would make the proxy
		// cut the answer short, as in package agenthost.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			log.WarnContext(r.Context(), "proxy without full duplex", "error", err)
		}
		proxy.ServeHTTP(w, r)
	}), nil
}

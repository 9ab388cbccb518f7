package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway-run/slipway/internal/host/standalone"
)

// flaky puts a proxy before the server of the data directory and sets $FLAKY to its address,
// and $KEY. It drops every second stream and every fifth other request: in turns before the
// server gets the request, and after the server has answered.
func flaky(ts *testscript.TestScript, _ bool, _ []string) {
	credentials, err := standalone.ReadCredentials(dataDirectory(ts))
	ts.Check(err)
	to, err := url.Parse(credentials.BaseURL)
	ts.Check(err)
	forward := httputil.NewSingleHostReverseProxy(to)
	var requests, streams atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			if streams.Add(1)%2 == 1 {
				panic(http.ErrAbortHandler)
			}
			forward.ServeHTTP(w, r)
			return
		}
		switch requests.Add(1) % 10 {
		case 3:
			panic(http.ErrAbortHandler)
		case 8:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	ts.Defer(proxy.Close)
	ts.Setenv("FLAKY", proxy.URL)
	ts.Setenv("KEY", credentials.APIKey)
}

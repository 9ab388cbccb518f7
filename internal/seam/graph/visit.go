package graph

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Visit is a request to the repository's own HTTP application. An agent serves the application
// beside its graphs, below PathApp.
//
// The headers are the client's. Beside them, X-Slipway-Authorization has the value that
// Authorization has in an invocation, and X-Slipway-Signature is there, too. X-Slipway-Caller,
// a User as JSON in URL-safe base64, names the user that the platform has let in. Without it,
// any client may have sent the request. X-Slipway-Server is the base URL of the deployment's
// own agent server. The application sees none of the headers that begin with X-Slipway-.
type Visit struct {
	// Path is the path as the application sees it, with its escapes: "/hello".
	Path string
	// Prefix is the beginning of the path of the client's request that Path lacks. The
	// application reads it in X-Forwarded-Prefix.
	Prefix string
	// User is {identity, permissions, ...}, nil if the platform did not check who sent the
	// request.
	User json.RawMessage
	// ServerURL is the same as in an Invocation.
	ServerURL string
	// Answer may read and change the application's answer before the client gets it.
	Answer func(*http.Response)
}

// PathApp is the beginning of all paths of an agent's own application.
const PathApp = "/app"

// HeaderVisit is the header of a visit that has the agent's token.
const HeaderVisit = "X-Slipway-Authorization"

const (
	headerCaller = "X-Slipway-Caller"
	headerServer = "X-Slipway-Server"
	headerPrefix = "X-Forwarded-Prefix"
	headersOwn   = "X-Slipway-"
)

// Visit makes the agent's own application answer a request, while both bodies are still on
// their way. An error is one of the errors of Invoke, and says that the client got no answer.
// If the application's answer breaks off, the client's answer breaks off, too.
func (c *Client) Visit(w http.ResponseWriter, r *http.Request, endpoint compute.Endpoint, visit Visit) error {
	at, err := url.Parse(endpoint.URL + PathApp + visit.Path)
	if err != nil {
		return err
	}
	at.RawQuery = r.URL.RawQuery
	// If the connection supports it, the answer may begin before the request has ended.
	_ = http.NewResponseController(w).EnableFullDuplex()
	var failed error
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = at, p.In.Host
			p.SetXForwarded()
			visit.mark(p.Out.Header, endpoint)
		},
		Transport: finalOnly{c.transportTo(endpoint)}, FlushInterval: -1,
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { failed = classify(r.Context(), err) },
		ModifyResponse: func(answer *http.Response) error {
			dropOwn(answer.Header)
			if visit.Answer != nil {
				visit.Answer(answer)
			}
			return nil
		},
	}
	proxy.ServeHTTP(w, r)
	return failed
}

// finalOnly is a transport that keeps informational answers to itself. A ReverseProxy would pass
// them on with headers that Answer has not seen, and then remove all headers that the server has
// set for the final answer.
type finalOnly struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f finalOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	return f.RoundTripper.RoundTrip(r.WithContext(untraced{r.Context()}))
}

// untraced is a context without the trace by which a ReverseProxy learns of informational answers.
type untraced struct{ context.Context }

// Value implements context.Context.
func (c untraced) Value(key any) any {
	value := c.Context.Value(key)
	if _, traces := value.(*httptrace.ClientTrace); traces {
		return nil
	}
	return value
}

// dropOwn removes the platform's own headers.
func dropOwn(header http.Header) {
	maps.DeleteFunc(header, func(name string, _ []string) bool {
		return strings.HasPrefix(http.CanonicalHeaderKey(name), headersOwn)
	})
}

// mark sets the headers of a request that only the platform may set.
func (v Visit) mark(header http.Header, endpoint compute.Endpoint) {
	dropOwn(header)
	header.Set(headerPrefix, v.Prefix)
	identify(header, endpoint, HeaderVisit)
	if v.ServerURL != "" {
		header.Set(headerServer, v.ServerURL)
	}
	if v.User != nil {
		header.Set(headerCaller, base64.URLEncoding.EncodeToString(v.User))
	}
}

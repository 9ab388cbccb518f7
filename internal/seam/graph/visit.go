package graph

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Visit is a request to the HTTP application of the repository's own that an agent serves beside
// its graphs, below PathApp.
//
// The headers are the client's. Beside them, X-Slipway-Authorization has what Authorization has in
// an invocation, and X-Slipway-Signature is there, too. X-Slipway-Caller, a User as JSON in
// URL-safe base64, says whom the platform has let in; without it, anybody may have sent this.
// X-Slipway-Server is the base URL of the deployment's own agent server.
// The application sees none of the headers that begin with X-Slipway-.
type Visit struct {
	// Path is the path as the application sees it, with its escapes: "/hello".
	Path string
	// User is {identity, permissions, ...}, nil where nobody was asked.
	User json.RawMessage
	// ServerURL is as in an Invocation.
	ServerURL string
	// Answer looks at the application's answer, and may change it, before the client gets it.
	Answer func(*http.Response)
}

// PathApp is what the paths of an agent's own application begin with.
const PathApp = "/app"

const (
	headerApp    = "X-Slipway-Authorization"
	headerCaller = "X-Slipway-Caller"
	headerServer = "X-Slipway-Server"
	headersOwn   = "X-Slipway-"
)

// Visit has the agent's own application answer a request, while both bodies are still on their way.
// An error, which is one of Invoke's, says that nothing was answered. When the application's answer
// breaks off, so does the client's.
func (c *Client) Visit(w http.ResponseWriter, r *http.Request, endpoint compute.Endpoint, visit Visit) error {
	at, err := url.Parse(endpoint.URL + PathApp + visit.Path)
	if err != nil {
		return err
	}
	at.RawQuery = r.URL.RawQuery
	// Where the connection can, the answer may begin before the request has ended.
	_ = http.NewResponseController(w).EnableFullDuplex()
	var failed error
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = at, p.In.Host
			p.SetXForwarded()
			visit.mark(p.Out.Header, endpoint)
		},
		Transport: c.transportTo(endpoint), FlushInterval: -1,
		ErrorLog:     slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { failed = classify(r.Context(), err) },
		ModifyResponse: func(answer *http.Response) error {
			for name := range answer.Header {
				if strings.HasPrefix(name, headersOwn) {
					answer.Header.Del(name)
				}
			}
			if visit.Answer != nil {
				visit.Answer(answer)
			}
			return nil
		},
	}
	proxy.ServeHTTP(w, r)
	return failed
}

// mark puts what only the platform says into the headers of a request.
func (v Visit) mark(header http.Header, endpoint compute.Endpoint) {
	for name := range header {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), headersOwn) {
			header.Del(name)
		}
	}
	if endpoint.Revision != "" {
		header.Set(headerRevision, endpoint.Revision)
	}
	if endpoint.Token != "" {
		header.Set(headerApp, "Bearer "+endpoint.Token)
		header.Set(headerSignature, signNow(endpoint.Token))
	}
	if v.ServerURL != "" {
		header.Set(headerServer, v.ServerURL)
	}
	if v.User != nil {
		header.Set(headerCaller, base64.URLEncoding.EncodeToString(v.User))
	}
}
